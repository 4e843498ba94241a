/* cuda_backend.h: internals of the CUDA backend. Only files in train/cuda include it.
 *
 * B rows of T tokens are N = B*T positions. Activations and the working copies of parameters have
 * the same number format, `type`. Master parameters, gradients, moments and statistics are float32.
 * All of them are in one allocation, the arena, which is made when the backend is opened.
 *
 * A step runs as two CUDA graphs. The graph of a micro-step reads ids, targets and control values
 * from device memory, and adds to the gradients. The graph of the update runs the optimizer, which
 * also sets the gradients to 0. The host runs ahead of the device. It waits only for the metrics of
 * the previous step, and for the copy of a batch from several micro-steps ago, which is usually
 * complete. It never waits for the step that it has just enqueued. */
#ifndef SGT_CUDA_BACKEND_H
#define SGT_CUDA_BACKEND_H

#include "train/backend.h"
#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"

#define SGT_CUDA_SLOTS 2 /* row buffers on the device */
/* Number of elements of the ring buffers that hold the events and results of the latest steps, and
 * the events of the latest copied batches. */
#define SGT_CUDA_RING 4
/* With the variant head-chunks, the maximum number of rows for which the head computes logits at a
 * time. The logits of this many rows take 38 MB in bf16, so that they fit in an H100's L2 cache. */
#define SGT_CUDA_CHUNK 384

/* One transformer block: where its tensors begin, and the activations that the backward pass needs.
 * Blocks that recompute activations store these in the memory of the first such block. */
typedef struct sgt_cuda_block {
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];
    /* activations: qkv (N, 3C); fc and gelu (N, 4C); all others (N, C) */
    void *ln1, *qkv, *att, *mid, *ln2, *fc, *gelu, *out;
    float *mean1, *rstd1, *mean2, *rstd2, *lse; /* (N) each, except lse (B, H, T) */
    void *probs; /* attention probabilities (B, H, T, T), only with naive attention */
} sgt_cuda_block;

/* A planned matrix product, and the name by which profiles show it. */
typedef struct sgt_cuda_planned {
    const sgt_cuda_gemm *gemm;
    const char *name;
} sgt_cuda_planned;

/* The matrix products that involve one weight:
 *   forward  computes the layer's output
 *   dx       computes the gradient of the layer's input
 *   dw       adds to the gradient of the weight (float32), or overwrites it if plan.written is
 * set */
typedef struct sgt_cuda_linear {
    sgt_cuda_planned forward, dx, dw;
} sgt_cuda_linear;

enum { SGT_CUDA_QKV, SGT_CUDA_PROJ, SGT_CUDA_FC, SGT_CUDA_FCPROJ, SGT_CUDA_HEAD, SGT_CUDA_LINEARS };

/* One of the four weights of a block. The table sgt_cuda_layers (plan.c) has one row for each
 * weight; it is used for planning, for launches, for Muon's update and for names in profiles. */
typedef struct sgt_cuda_layer {
    size_t rows, columns; /* W is (rows*C, columns*C) */
    /* index of the weight W among the block's tensors; the index of its bias is one higher */
    size_t tensor;
    const char *forward, *dx, *dw; /* names of its matrix products */
} sgt_cuda_layer;
extern const sgt_cuda_layer sgt_cuda_layers[SGT_CUDA_HEAD];

typedef enum sgt_cuda_path {
    SGT_PATH_OWN,
    SGT_PATH_CUDNN,
    SGT_PATH_NAIVE,
    SGT_PATH_HOPPER
} sgt_cuda_path;

/* The matrix products of naive attention, and their buffers. Each product is batched over the B*H
 * heads of a micro-step. Both passes together have six products, but only three plans: products of
 * the same shape use the same plan. */
typedef struct sgt_cuda_naive {
    /* Plans of products, where s is (T, T), and x and y are (T, D):
     *   outer    x y^T, for example the scores q k^T
     *   rows     s x, for example probs v
     *   columns  s^T x, for example probs^T dout */
    sgt_cuda_planned outer, rows, columns;
    void *q, *k, *v, *o, *dq, *dk, *dv; /* (B, H, T, D) each */
    void *dscores;                      /* (B, H, T, T) */
} sgt_cuda_naive;

/* Sizes that follow from the model, the options and the number of ranks. They are constant once the
 * backend is open. */
typedef struct sgt_cuda_shape {
    sgt_cuda_type type;
    size_t width; /* bytes per element of type `type` */
    size_t B, T, N, C, H, D, L, V;
    /* rows_v: V rounded up, the number of rows of wte in memory; ldv: distance in elements between
     * successive rows of logits */
    size_t rows_v, ldv;
    float scale; /* 1/sqrt(D), for attention */
    size_t ranks, rank;
} sgt_cuda_shape;

/* The flat arrays: parameters, gradients, moments and working copies. In each array, a tensor
 * begins at the same offset. Matrices come first, then vectors. Each tensor is aligned to 256
 * bytes.
 *
 * With several ranks, the arrays are divided into buckets, and each rank owns a part of every
 * bucket. `grads` and `copy` contain all tensors on every rank. `params`, m, v, own_grads and
 * own_copy contain only the parts that this rank owns, one after another. A single rank owns
 * everything. */
typedef struct sgt_cuda_flat {
    /* for each tensor of the model, the index of its first element in the arrays `grads` and
     * `copy` */
    size_t *tensor_at;
    /* count: number of elements in grads; decayed: number of elements to which weight decay
     * applies, which come first in grads */
    size_t count, decayed;
    /* offsets of the tensors that do not belong to a block, in elements */
    size_t wte, wpe, lnf_w, lnf_b, head;
    float *params, *grads, *m;
    /* Second moments; NULL with SGD. v is shorter than m if Muon updates the matrices of blocks,
     * because these have no second moments. sgt_cuda_second returns the address of a second
     * moment. */
    float *v;
    /* Muon updates elements muon_at .. muon_end - 1 of this rank's arrays (`params`, m, own_grads);
     * both are 0 if Muon updates none. */
    size_t muon_at, muon_end;
    /* working copies of all parameters in the number format `type`, for matrix products; the same
     * array as params if `type` is float32 and there is only one rank */
    void *copy;
    /* Float32 copies of all vectors, which begin at offset `decayed`. NULL unless several ranks
     * train in a 16-bit type; with these, `params` has only this rank's parts. */
    float *vectors;
    /* array of sgt_cuda_buckets + 1 offsets: for each bucket, where it begins; then where the last
     * one ends */
    size_t *bucket_at;
    /* own: number of elements in this rank's parts; own_decayed: number of these elements to which
     * weight decay applies, which come first */
    size_t own, own_decayed;
    /* gradients of this rank's parts, summed over all ranks; the same array as grads if there is
     * only one rank */
    float *own_grads;
    /* working copies, in the number format `type`, of the parameters that this rank owns. NULL if
     * `type` is float32, because matrix products need no copy in another format */
    void *own_copy;
    /* 1: the working copies are out of date, because parameters have been loaded, and must be
     * computed again before they are used */
    int stale;
} sgt_cuda_flat;

/* Matrix products and buffers for Muon's Newton-Schulz iterations (kernels/muon.h). An iteration
 * computes a new matrix X in three products:
 *   gram     the Gram matrix X X' or X'X, whichever is smaller
 *   square   B, a weighted sum of the Gram matrix and its square
 *   product  X times B, from the left or from the right, plus a multiple of X
 *
 * Each product is computed for all layers at once, but for one kind of matrix at a time (first qkv,
 * then proj, and so on), in the same buffers. The arrays `gram` and `product` have one element for
 * each kind, from SGT_CUDA_QKV to SGT_CUDA_FCPROJ. */
typedef struct sgt_cuda_muon {
    const sgt_cuda_gemm *gram[SGT_CUDA_HEAD], *square, *product[SGT_CUDA_HEAD];
    /* x, y: matrix X before and after a Newton-Schulz iteration; (L, 4C*C) each, padded */
    void *x, *y;
    /* a: Gram matrix of X; b: matrix by which X is multiplied; (L, C*C) each, padded */
    void *a, *b;
} sgt_cuda_muon;

/* The kernels and library calls for a step, which are chosen when the backend is opened. */
typedef struct sgt_cuda_plan {
    uint32_t variants; /* bit set of the variants in use (SGT_VARIANT_*); 0 with --no-fuse */
    /* 1: a step consists of a single micro-step, so that matrix products overwrite the gradients of
     * weights instead of adding to them, so that the update need not set these gradients to 0. */
    int written;
    sgt_cuda_gemms *gemms;
    sgt_cuda_linear linear[SGT_CUDA_LINEARS];
    /* Matrix products whose epilogue computes GELU (fc_gelu) or multiplies by GELU's derivative
     * (dgelu). If `gemm` in one of them is NULL, a separate kernel does this. */
    sgt_cuda_planned fc_gelu, dgelu;
    int bias_apart; /* 1: separate kernels add the biases; 0: the matrix products add them */
    /* number of rows for which logits are computed at a time: all N rows, or fewer with the variant
     * head-chunks */
    size_t head_rows;
    sgt_cuda_path path;
    char path_text[64];
    sgt_cudnn_attention *cudnn;
    /* 1: set cuDNN's sums of dQ to 0 before each backward pass; 0: this is not needed */
    int clear_dq;
    sgt_cuda_naive naive;
    sgt_cuda_muon muon;
} sgt_cuda_plan;

/* Addresses of all buffers in device memory, except the flat arrays, which are in sgt_cuda_flat. */
typedef struct sgt_cuda_buffers {
    /* the backend's allocation in device memory, which contains all buffers and the flat arrays */
    unsigned char *arena;
    size_t used; /* bytes of the arena laid out so far */
    sgt_cuda_block *blocks;
    /* Blocks that recompute activations, all in the same memory; NULL if there is no such block:
     *   share_cheap   first block that recomputes anything
     *   share_inside  first block that recomputes all its activations
     *   share_last    last block that recomputes anything; it need not do so, because this memory
     *                 still holds its activations when the backward pass begins */
    sgt_cuda_block *share_cheap, *share_inside, *share_last;
    void *x0, *lnf; /* x0: embeddings (N, C); lnf: output of the last LayerNorm (N, C) */
    float *meanf, *rstdf;
    void *logits; /* (N, ldv) */
    /* With the variant head-chunks, the logits of one chunk of rows (SGT_CUDA_CHUNK, ldv), else
     * NULL. The gradients of the logits go to `logits`, which holds all rows. */
    void *chunk;
    float *loss; /* (N) */
    /* gradients:
     *   dx     of the residual stream (N, C)
     *   dln    of a LayerNorm's output (N, C)
     *   dwide  of the MLP's hidden layer (N, 4C), or of qkv (N, 3C)
     *   ddrop  of a branch's output (N, C), only with dropout */
    void *dx, *dln, *dwide, *ddrop;
    /* (B, H, T) array for attention's backward pass: for each query of each head, the dot product
     * of its output and that output's gradient */
    float *delta;
    int32_t *ids, *targets, *sorted, *order;
    /* where the document of each position begins and ends; used only if attention stays within
     * documents */
    sgt_cuda_documents documents;
    /* row buffers to which batches are copied, (2, N) each: N inputs, then N targets */
    int32_t *batch[SGT_CUDA_SLOTS];
    /* for each row buffer, an array of N elements: where the document of each position begins */
    int32_t *starts[SGT_CUDA_SLOTS];
    /* scratch memory for kernels on the stream `compute`, of which only one runs at a time */
    void *scratch;
    void *beside_scratch; /* scratch memory for the stream `beside` */
    void *cudnn_space;
    sgt_cuda_control *control, *eval_control;
    sgt_outliers *outliers; /* history of losses and gradient norms, for the detection of spikes */
    sgt_cuda_place *place;
} sgt_cuda_buffers;

/* Streams, events, graphs and pinned memory, and counters of steps and micro-steps. */
typedef struct sgt_cuda_queue {
    sgt_cuda_stream compute, copies;
    /* Second stream, on which bias gradients are computed while `compute` does other work. This is
     * possible because no kernel of the backward pass reads bias gradients. With --no-fuse, this is
     * NULL, and they are computed on `compute`. */
    sgt_cuda_stream beside;
    sgt_cuda_event forked, rejoined;
    /* 1: a kernel has been enqueued on `beside`, and nothing makes `compute` wait for it yet (see
     * rejoin) */
    int branches;
    sgt_cuda_event copied[SGT_CUDA_RING], taken[SGT_CUDA_SLOTS], measured[SGT_CUDA_RING];
    /* The kernels of a micro-step or of an update. If there are several ranks, last_graph replaces
     * micro_graph in a step's last micro-step, because the ranks reduce gradients in it. */
    sgt_cuda_graph micro_graph, last_graph, update_graph;
    /* Pinned ring buffer of SGT_CUDA_RING control blocks. At the end of each step, the device's
     * control block is copied to one of its elements, where the host reads the step's metrics. */
    sgt_cuda_control *seen;
    unsigned char *staging; /* pinned memory through which data is copied to and from the device */
    size_t staging_bytes;
    /* pinned arrays of N elements: where the document of each position begins; used only if
     * attention stays within documents */
    int32_t *staged[SGT_CUDA_RING];
    uint64_t micro_steps; /* number of micro-steps run so far */
    /* for each element of `seen`: 1 + the index of the step whose control block it holds; 0:
     * none */
    uint64_t steps[SGT_CUDA_RING];
    /* Which micro-steps of the current step have been enqueued. 0: none; 1: at least one; 2: all;
     * set only with several ranks, because with them the last micro-step differs from the
     * others. */
    int open_step;
    unsigned launched_micro; /* number of kernels launched per micro-step */
} sgt_cuda_queue;

typedef struct sgt_cuda_backend {
    /* the first member, because an sgt_backend * is cast to an sgt_cuda_backend * */
    sgt_backend base;
    sgt_backend_options o;
    sgt_model model;
    sgt_cuda_device device;
    sgt_cuda_shape shape;
    sgt_cuda_flat flat;
    sgt_cuda_plan plan;
    sgt_cuda_buffers buf;
    sgt_cuda_queue queue;
    struct sgt_cuda_group *group; /* state of NCCL; NULL without ranks */
    sgt_cupti *cupti;             /* CUPTI, which records kernels for the trace; NULL: no trace */
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* when each buffer is in use; filled in when memory is allocated */
    char library[96], peak_name[300];
} sgt_cuda_backend;

/* ---- layout.c ---- */
/* Compute all sizes, and the offsets in the flat arrays, from the options. If the CUDA backend does
 * not support an option, return SGT_EUNSUPPORTED with a message that names it. */
int sgt_cuda_decide(sgt_cuda_backend *c, const sgt_backend_options *o, sgt_error *err);
/* Assign every buffer an address in the arena. The first call, before the arena is allocated, only
 * computes its size. */
void sgt_cuda_lay_out(sgt_cuda_backend *c);
/* Return the largest number of rows per micro-step, less than o->batch, for which all buffers fit
 * in `bytes` bytes of device memory. Return 0 if not even one row fits. */
uint32_t sgt_cuda_most_rows(const sgt_backend_options *o, uint64_t bytes);

/* In tests, overwrite the buffers that are no longer in use after part `part` of a step, such as
 * the forward pass of a layer (sgt_live). sgt_cuda_part_ends calls it at the end of each part. */
void sgt_cuda_scrub(sgt_cuda_backend *c, unsigned part);
static inline void sgt_cuda_part_ends(sgt_cuda_backend *c, unsigned part)
{
    if (c->o.scrub) sgt_cuda_scrub(c, part);
}

/* Return whether the LayerNorm kernel adds the bias of the preceding matrix product `which`,
 * instead of the product itself. This is so with the variant norm-bias, for the products that end a
 * residual branch. */
static inline int sgt_cuda_norm_bias(const sgt_cuda_backend *c, int which)
{
    return c->plan.variants & SGT_VARIANT_NORM_BIAS &&
           (which == SGT_CUDA_PROJ || which == SGT_CUDA_FCPROJ);
}

/* ---- plan.c ---- */
/* Return the shape of the matrix product D (m, n) = A (m, k) B (k, n), whose operands have the
 * number format of this run. */
sgt_cuda_gemm_shape sgt_cuda_product_shape(const sgt_cuda_backend *c, size_t m, size_t n, size_t k);
int sgt_cuda_plan_products(sgt_cuda_backend *c, sgt_error *err);
/* sgt_cuda_choose_gelu chooses how GELU is computed; sgt_cuda_choose_head chooses how many rows of
 * logits are computed at a time. Both may time the choices, so call them after the arena is
 * allocated. If there are several ranks, every rank must call both. */
int sgt_cuda_choose_gelu(sgt_cuda_backend *c, sgt_error *err);
int sgt_cuda_choose_head(sgt_cuda_backend *c, sgt_error *err);
/* Set *ms to the time in milliseconds that work(c) takes on the compute stream: the mean of ten
 * runs after one that is not timed. The function waits for the device. */
int sgt_cuda_time(sgt_cuda_backend *c, void (*work)(sgt_cuda_backend *), float *ms, sgt_error *err);

/* ---- peak.c ---- */
/* Set base.peak_flops to the measured speed of a large matrix product, or to 0 if it cannot be
 * measured. Also set base.datasheet_flops and base.peak_name. */
void sgt_cuda_find_peak(sgt_cuda_backend *c);

/* ---- attention.c ---- */
int sgt_cuda_choose_attention(sgt_cuda_backend *c, sgt_error *err);
/* If both our attention and cuDNN's can be used, time both and choose the one that is faster on
 * rank 0. Call it when memory is allocated. */
int sgt_cuda_time_attention(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_attend(sgt_cuda_backend *c, size_t layer, int training);
/* Return the name of an attention implementation, for messages. Set *instead to advice for users
 * whose gradients are infinite or NaN with it, or to NULL if there is none. */
const char *sgt_cuda_attention_name(sgt_cuda_path path, const char **instead);
/* Compute attention's backward pass. It reads dln (N, C), the gradient of attention's output, and
 * writes the gradient of qkv (N, 3C) to dwide. */
void sgt_cuda_attend_backward(sgt_cuda_backend *c, size_t layer);

/* ---- forward.c, backward.c ---- */
void sgt_cuda_forward(sgt_cuda_backend *c, int training); /* compute lnf from ids */
/* Recompute a layer's activations that its backward pass needs and that the forward pass has not
 * kept in memory. */
void sgt_cuda_forward_again(sgt_cuda_backend *c, size_t layer);
/* Compute logits and losses from lnf. When training, store the gradient of the logits in
 * buf.logits. */
void sgt_cuda_head(sgt_cuda_backend *c, int training);
void sgt_cuda_backward(sgt_cuda_backend *c);

/* ---- ranks.c ---- */

/* Functions for several ranks (ranks.c). With only one rank, the functions that end in open, leave,
 * follow, last or reduce do nothing, and the others must not be called. */

/* Indexes of the buckets into which parameters are divided: one bucket for the embeddings, one for
 * each block, one for the head if it is not tied to wte, and one for all vectors. */
enum { SGT_BUCKET_EMBEDDINGS, SGT_BUCKET_BLOCKS };
static inline size_t sgt_cuda_buckets(const sgt_cuda_backend *c)
{
    return c->shape.L + 2 + (c->model.untied != 0);
}
static inline size_t sgt_cuda_bucket_vectors(const sgt_cuda_backend *c)
{
    return sgt_cuda_buckets(c) - 1;
}
int sgt_cuda_ranks_open(sgt_cuda_backend *c, sgt_error *err); /* connect to the other ranks */
/* Replace the `n` bytes of *choice by rank 0's. All ranks must make the same choices, but timings
 * differ between ranks. */
int sgt_cuda_ranks_follow(const sgt_cuda_backend *c, void *choice, size_t n, sgt_error *err);
/* Disconnect from the other ranks. All work enqueued on streams must be complete, unless a rank has
 * failed. In that case, the other ranks have given up, and NCCL's communicator is aborted. */
void sgt_cuda_ranks_leave(sgt_cuda_backend *c);
/* Return whether there are several ranks and `micro` is the last micro-step of a step. In that
 * micro-step, the ranks reduce gradients while they compute. */
int sgt_cuda_ranks_last(const sgt_cuda_backend *c, uint32_t micro);
/* Call these functions in the last micro-step of a step: sgt_cuda_ranks_begin at its start,
 * sgt_cuda_ranks_reduce when the gradients of a bucket are complete, sgt_cuda_ranks_end at its
 * end. */
void sgt_cuda_ranks_begin(sgt_cuda_backend *c);
void sgt_cuda_ranks_reduce(sgt_cuda_backend *c, size_t bucket);
void sgt_cuda_ranks_end(sgt_cuda_backend *c);
/* Before the update, sgt_cuda_ranks_norm sums the loss, the number of targets and the squared
 * gradient norm over all ranks. After the update, sgt_cuda_ranks_share all-gathers the working
 * copies of the parameters and, if `forget` is set, sets the gradients to 0. */
void sgt_cuda_ranks_norm(sgt_cuda_backend *c);
void sgt_cuda_ranks_share(sgt_cuda_backend *c, int forget);
/* For the matrices that Muon updates, all-gather the ranks' parts in own_grads into grads. */
void sgt_cuda_ranks_gather_steps(sgt_cuda_backend *c);
/* sgt_cuda_ranks_put writes, and sgt_cuda_ranks_get reads, elements at .. at + count - 1 of the
 * complete flat array, which is divided among the ranks. `state` is this rank's array, with only
 * the parts that it owns. Of the `count` floats, put stores those that this rank owns. get returns
 * all of them on every rank. All ranks must make the same calls. */
int sgt_cuda_ranks_put(sgt_cuda_backend *c, float *state, size_t at, size_t count,
                       const float *from, sgt_error *err);
int sgt_cuda_ranks_get(sgt_cuda_backend *c, const float *state, size_t at, size_t count, float *to,
                       sgt_error *err);

/* ---- muon.c ---- */
/* Return whether Muon updates the tensor with index `tensor`. With Muon, these are the four weight
 * matrices of each block. */
int sgt_cuda_by_muon(const sgt_cuda_backend *c, size_t tensor);
/* Return the distance in elements between two successive matrices of n elements in Muon's buffers.
 * It is n, rounded up for alignment. */
static inline size_t sgt_cuda_muon_stride(size_t n) { return (n + 63) / 64 * 64; }
/* Plan Muon's matrix products. Do nothing if the optimizer is not Muon. */
int sgt_cuda_muon_plan(sgt_cuda_backend *c, sgt_error *err);
/* Update the matrices of all blocks by Muon. The gradient norm must have been computed before. */
void sgt_cuda_muon_step(sgt_cuda_backend *c);
/* Return the address in flat.v of the second moment of the parameter at offset `at` in this rank's
 * parts. */
static inline float *sgt_cuda_second(const sgt_cuda_backend *c, size_t at)
{
    return c->flat.v + at - (at < c->flat.muon_end ? 0 : c->flat.muon_end - c->flat.muon_at);
}

/* ---- trace.c ---- */
/* Prepare the trace, if the user requested one. CUPTI's records are added to it after its last
 * step. Call this before a CUDA graph is captured. */
int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_trace_close(sgt_cuda_backend *c);
/* Begin a range named "h.LAYER PASS" in traces (see sgt_cupti_push). */
void sgt_cuda_push_layer(const char *pass, size_t layer);
/* Run a matrix product on the compute stream, labelled with its name for traces. */
void sgt_cuda_product(const sgt_cuda_backend *c, const sgt_cuda_planned *p, void *d, const void *a,
                      const void *b, void *bias, void *aux);

/* ---- functions that several files of train/cuda use ---- */
/* Return the address of the working copy of the parameter at offset `at`. */
static inline const void *sgt_cuda_weight(const sgt_cuda_backend *c, size_t at)
{
    return (const unsigned char *)c->flat.copy + at * c->shape.width;
}

/* Return the address of the parameter at offset `at` in float32. The parameter must belong to a
 * vector. LayerNorm's kernels read their parameters from here, because a LayerNorm's weights are
 * near 1. There, successive bf16 numbers are 1/256 or 1/128 apart, far more than a weight changes
 * in one update. So with working copies in bf16, most updates would have no effect. */
static inline const float *sgt_cuda_vector(const sgt_cuda_backend *c, size_t at)
{
    if (c->flat.vectors) return c->flat.vectors + (at - c->flat.decayed);
    return (c->flat.own_copy ? c->flat.params : (const float *)c->flat.copy) + at;
}

/* Copy `count` floats from the device array `device` to the host array `to`. If `to` is NULL, copy
 * them from the host array `from` to `device`. The copy goes through the pinned staging buffer.
 * Return when it is complete. */
int sgt_cuda_stage(sgt_cuda_backend *c, float *device, float *to, const float *from, size_t count,
                   sgt_error *err);

/* Fill in *d for the dropout at site `site` of layer `layer`, and return d. Return NULL if there is
 * no dropout. */
const sgt_cuda_dropout *sgt_cuda_drop(const sgt_cuda_backend *c, sgt_cuda_dropout *d, size_t layer,
                                      uint32_t site, int training);

/* Open CUDA device `card`. If there is no such device, open device 0, because a launcher may make
 * only one device visible to each rank, which then has index 0. */
int sgt_cuda_open_card(sgt_cuda_device *d, int card, sgt_error *err);
/* Open the CUDA backend (see backend.h). If no device can be used, the error is that of
 * sgt_cuda_device_open (runtime.h). */
int sgt_cuda_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);
/* Compute how much memory the backend would allocate, by kind and in total. No device is needed. */
int sgt_cuda_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                              size_t *count, uint64_t *bytes, sgt_error *err);

/* Run work(c) on the streams. Without CUDA graphs, work(c) launches its kernels directly. With
 * graphs, only the first call does so, and then captures a graph while the device computes; later
 * calls run the graph. In the direct launch, the driver loads the code of kernels, and libraries
 * allocate memory. Neither is possible during a capture. */
int sgt_cuda_run(sgt_cuda_backend *c, sgt_cuda_graph *graph, void (*work)(sgt_cuda_backend *),
                 sgt_error *err);

/* ---- state.c: the functions put, get, get_scaler and put_scaler of backend.h ---- */
int sgt_cuda_put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 const float *from, sgt_error *err);
int sgt_cuda_get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 float *to, sgt_error *err);
int sgt_cuda_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);
void sgt_cuda_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
/* Copy a control block from the device to the staging buffer, and wait for the copy. */
int sgt_cuda_read_control(sgt_cuda_backend *c, sgt_cuda_control *control, sgt_error *err);
/* Initialize the device's control block at the beginning of a call: set the fields whose values are
 * carried from step to step. */
int sgt_cuda_start_control(sgt_cuda_backend *c, const sgt_scaler *s, sgt_error *err);

/* ---- update.c: the functions update and metrics of backend.h ---- */
int sgt_cuda_update(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
int sgt_cuda_metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

#endif
