/* cuda_backend.h: internals of the CUDA backend. Only files in train/cuda include it.
 *
 * A micro-step processes B rows of T tokens, which are N = B*T positions. Activations and working
 * copies of parameters have the number format shape.type. Master parameters, gradients, moments and
 * statistics are float32. All of these are in a single allocation, the arena, which is allocated
 * when the backend is opened.
 *
 * A step runs as two CUDA graphs. The graph of a micro-step reads ids, targets and control values
 * from device memory, and adds to the gradients. The graph of the update runs the optimizer, and
 * sets the gradients to 0. The host enqueues work ahead of the device. It waits only for the
 * metrics of the previous step, and until the batch of several micro-steps ago has been copied,
 * which has usually happened by then. It never waits for the step that it has just enqueued. */
#ifndef SGT_CUDA_BACKEND_H
#define SGT_CUDA_BACKEND_H

#include "train/backend.h"
#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"

#define SGT_CUDA_SLOTS 2 /* row buffers on the device */
/* Length of the ring buffers: those with the events and results of the latest steps, and the one
 * with the events of the latest batch copies. */
#define SGT_CUDA_RING 4
/* With the variant head-chunks, the head (output layer) computes logits for at most this many
 * positions at a time. In bf16, these logits take 38 MB, so they fit in the L2 cache of an H100. */
#define SGT_CUDA_CHUNK 384

/* A transformer block: offsets of its tensors, and activations that the backward pass needs. All
 * blocks that recompute an activation store it at the same address, in the memory of the first such
 * block. */
typedef struct sgt_cuda_block {
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];
    /* activations: qkv is (N, 3C), fc and gelu are (N, 4C), and all others are (N, C) */
    void *ln1, *qkv, *att, *mid, *ln2, *fc, *gelu, *out;
    float *mean1, *rstd1, *mean2, *rstd2, *lse; /* (N) each, except lse (B, H, T) */
    void *probs; /* attention probabilities (B, H, T, T); used only by naive attention */
} sgt_cuda_block;

/* A planned matrix product, and its name in profiles. */
typedef struct sgt_cuda_planned {
    const sgt_cuda_gemm *gemm;
    const char *name;
} sgt_cuda_planned;

/* The matrix products that involve one weight:
 *   forward  computes the layer's output
 *   dx       computes the gradient of the layer's input
 *   dw       adds to the weight's gradient (float32), or overwrites it if plan.written is set */
typedef struct sgt_cuda_linear {
    sgt_cuda_planned forward, dx, dw;
} sgt_cuda_linear;

enum { SGT_CUDA_QKV, SGT_CUDA_PROJ, SGT_CUDA_FC, SGT_CUDA_FCPROJ, SGT_CUDA_HEAD, SGT_CUDA_LINEARS };

/* One of the four weight matrices of a block. The table sgt_cuda_layers (plan.c) has an entry for
 * each of them, which is used to plan and launch matrix products, for Muon's update, and for the
 * names in profiles. */
typedef struct sgt_cuda_layer {
    size_t rows, columns; /* W is (rows*C, columns*C) */
    /* index of the weight W among the block's tensors; the bias of W has the next index */
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
 * heads of a micro-step. The forward and backward pass have six products in all, but only three
 * plans, because products with the same shapes share a plan. */
typedef struct sgt_cuda_naive {
    /* Plans of matrix products. s is a (T, T) matrix, x and y are (T, D) matrices:
     *   outer    x y^T, for example the scores q k^T
     *   rows     s x, for example probs v
     *   columns  s^T x, for example probs^T dout */
    sgt_cuda_planned outer, rows, columns;
    void *q, *k, *v, *o, *dq, *dk, *dv; /* (B, H, T, D) each */
    void *dscores;                      /* (B, H, T, T) */
} sgt_cuda_naive;

/* Sizes that follow from the model, the options and the number of ranks. They do not change while
 * the backend is open. */
typedef struct sgt_cuda_shape {
    sgt_cuda_type type;
    size_t width; /* bytes per element of type `type` */
    size_t B, T, N, C, H, D, L, V;
    /* rows_v: number of rows of wte in memory, which is V rounded up; ldv: distance in elements
     * between the logits of successive positions */
    size_t rows_v, ldv;
    float scale; /* 1/sqrt(D), for attention */
    size_t ranks, rank;
} sgt_cuda_shape;

/* The flat arrays: parameters, gradients, moments and working copies of parameters. Each array
 * contains all matrices, followed by all vectors, and each tensor is aligned to 256 bytes. A tensor
 * has the same offset in each complete array.
 *
 * With several ranks, the arrays are divided into buckets (groups of tensors), and each rank owns
 * an equal share of every bucket. On every rank, `grads` and `copy` contain all tensors. The arrays
 * params, m, v, own_grads and own_copy contain only the shares that this rank owns, one after
 * another. A single rank owns all elements. */
typedef struct sgt_cuda_flat {
    /* for each tensor of the model, the offset of its first element in `grads` and `copy` */
    size_t *tensor_at;
    /* count: number of elements of `grads`; decayed: number of elements with weight decay, which
     * are the first elements of `grads` */
    size_t count, decayed;
    /* offsets, in elements, of the tensors outside of blocks */
    size_t wte, wpe, lnf_w, lnf_b, head;
    float *params, *grads, *m;
    /* Second moments; NULL with SGD. With Muon, v is shorter than m, because the matrices that Muon
     * updates have no second moments. sgt_cuda_second returns the address of a second moment. */
    float *v;
    /* Muon updates elements muon_at .. muon_end - 1 of this rank's arrays params, m and own_grads.
     * If Muon is not used, both are 0. */
    size_t muon_at, muon_end;
    /* working copies of all parameters in the number format shape.type, for matrix products; the
     * same array as `params` if this format is float32 and there is only one rank */
    void *copy;
    /* Float32 copies of all vectors, that is, of the elements from offset `decayed` on. They are
     * needed only if several ranks train in a 16-bit format, because `params` then contains only
     * this rank's shares. Otherwise NULL. */
    float *vectors;
    /* array of sgt_cuda_buckets + 1 offsets: the beginning of each bucket, followed by the end of
     * the last bucket */
    size_t *bucket_at;
    /* own: number of elements that this rank owns; own_decayed: number of the owned elements with
     * weight decay, which come first */
    size_t own, own_decayed;
    /* gradients of the elements that this rank owns, summed over all ranks; the same array as
     * `grads` if there is only one rank */
    float *own_grads;
    /* working copies, in the number format shape.type, of the parameters that this rank owns; NULL
     * if this format is float32, because no conversion is needed */
    void *own_copy;
    /* 1: parameters have been loaded, so the working copies are out of date and must be updated
     * before they are used; otherwise 0 */
    int stale;
} sgt_cuda_flat;

/* Matrix products and buffers for Muon's Newton-Schulz iterations (kernels/muon.h). An iteration
 * computes a new matrix X in three products:
 *   gram     the Gram matrix X X' or X'X, whichever is smaller
 *   square   B, a weighted sum of the Gram matrix and its square
 *   product  X times B, from the left or from the right, plus a multiple of X
 *
 * Each product is computed for the matrices of all layers at once, but for one kind of matrix at a
 * time (first qkv, then proj, and so on), so that all kinds use the same buffers. The arrays `gram`
 * and `product` have one element per kind, from SGT_CUDA_QKV to SGT_CUDA_FCPROJ. */
typedef struct sgt_cuda_muon {
    const sgt_cuda_gemm *gram[SGT_CUDA_HEAD], *square, *product[SGT_CUDA_HEAD];
    /* x and y: matrix X before and after a Newton-Schulz iteration; each has the shape (L, 4C*C),
     * plus padding */
    void *x, *y;
    /* a: Gram matrix of X; b: matrix by which X is multiplied; each has the shape (L, C*C), plus
     * padding */
    void *a, *b;
} sgt_cuda_muon;

/* The kernels and library calls of a step. They are chosen when the backend is opened. */
typedef struct sgt_cuda_plan {
    uint32_t variants; /* bit set of the kernel variants in use (SGT_VARIANT_*); 0 with --no-fuse */
    /* 1: each step has a single micro-step. Matrix products then overwrite the gradients of weights
     * instead of adding to them, so the update does not set these gradients to 0. 0: matrix
     * products add to the gradients. */
    int written;
    sgt_cuda_gemms *gemms;
    sgt_cuda_linear linear[SGT_CUDA_LINEARS];
    /* Matrix products that compute GELU (fc_gelu), or multiply by GELU's derivative (dgelu), in
     * their epilogue. If `gemm` of a product is NULL, a separate kernel does the GELU operation. */
    sgt_cuda_planned fc_gelu, dgelu;
    int bias_apart; /* 1: separate kernels add the biases; 0: matrix products add them */
    /* number of positions for which the head computes logits at a time: N, or fewer with the
     * variant head-chunks */
    size_t head_rows;
    sgt_cuda_path path;
    char path_text[96];
    sgt_cudnn_attention *cudnn;
    /* 1: set cuDNN's accumulated sums of dQ to 0 before each backward pass; 0: not needed */
    int clear_dq;
    sgt_cuda_naive naive;
    sgt_cuda_muon muon;
} sgt_cuda_plan;

/* Addresses of buffers in device memory. The flat arrays are not here, but in sgt_cuda_flat. */
typedef struct sgt_cuda_buffers {
    /* the backend's only allocation for data: all buffers and the flat arrays are inside it */
    unsigned char *arena;
    size_t used; /* bytes of the arena laid out so far */
    sgt_cuda_block *blocks;
    /* Blocks that recompute activations, which they store in the same memory; NULL if none does:
     *   share_cheap   first block that recomputes any of its activations
     *   share_inside  first block that recomputes all of its activations
     *   share_last    last block that recomputes activations; it can skip this, because the shared
     *                 memory still holds its activations when the backward pass begins */
    sgt_cuda_block *share_cheap, *share_inside, *share_last;
    void *x0, *lnf; /* x0: embeddings (N, C); lnf: output of the final LayerNorm (N, C) */
    float *meanf, *rstdf;
    void *logits; /* (N, ldv) */
    /* With the variant head-chunks, a buffer for the logits of SGT_CUDA_CHUNK positions, with shape
     * (SGT_CUDA_CHUNK, ldv); otherwise NULL. The gradients of the logits of all positions are in
     * the buffer logits. */
    void *chunk;
    float *loss; /* (N) */
    /* Gradients of activations:
     *   dx     gradient of the residual stream (N, C)
     *   dln    gradient of a LayerNorm's output (N, C)
     *   dwide  gradient of the MLP's hidden layer (N, 4C), or of qkv (N, 3C)
     *   ddrop  gradient of a residual branch's output (N, C); used only with dropout */
    void *dx, *dln, *dwide, *ddrop;
    /* array (B, H, T) for the backward pass of attention: the dot product of each query's output
     * with the gradient of this output, for each head */
    float *delta;
    int32_t *ids, *targets, *sorted, *order;
    /* for each position, where its document begins and ends; used only with --document-mask */
    sgt_cuda_documents documents;
    /* buffers to which batches are copied, each (2, N): the N inputs, followed by the N targets */
    int32_t *batch[SGT_CUDA_SLOTS];
    /* for each buffer in `batch`, an array of N elements: for each position, where its document
     * begins */
    int32_t *starts[SGT_CUDA_SLOTS];
    /* scratch memory for kernels on the stream `compute`, which run one at a time */
    void *scratch;
    void *beside_scratch; /* scratch memory for the stream `beside` */
    void *cudnn_space;
    sgt_cuda_control *control, *eval_control;
    sgt_outliers *outliers; /* losses and gradient norms of recent steps, for detecting spikes */
    sgt_cuda_place *place;
} sgt_cuda_buffers;

/* Streams, events, graphs and pinned memory, and the state of the steps that the host has
 * enqueued. */
typedef struct sgt_cuda_queue {
    sgt_cuda_stream compute, copies;
    /* Second stream, on which bias gradients are computed while `compute` does other work, because
     * no other kernel of the backward pass reads bias gradients. With --no-fuse, `beside` is NULL,
     * and bias gradients are computed on `compute`. */
    sgt_cuda_stream beside;
    sgt_cuda_event forked, rejoined;
    /* 1: a kernel has been enqueued on `beside`, and `compute` has not been made to wait for it yet
     * (see rejoin); otherwise 0 */
    int branches;
    sgt_cuda_event copied[SGT_CUDA_RING], taken[SGT_CUDA_SLOTS], measured[SGT_CUDA_RING];
    /* Graphs of the kernels of a micro-step or of an update. If there are several ranks, a step's
     * last micro-step, in which the ranks reduce gradients, uses last_graph instead of
     * micro_graph. */
    sgt_cuda_graph micro_graph, last_graph, update_graph;
    /* Pinned ring buffer of SGT_CUDA_RING control blocks. At the end of each step, the control
     * block is copied from the device to the next element, from which the host reads the step's
     * metrics. */
    sgt_cuda_control *seen;
    unsigned char *staging; /* pinned memory for copies between host and device */
    size_t staging_bytes;
    /* pinned arrays of N elements: for each position, where its document begins; used only with
     * --document-mask */
    int32_t *staged[SGT_CUDA_RING];
    uint64_t micro_steps; /* number of micro-steps run so far */
    /* steps[i]: index, plus 1, of the step whose metrics are in seen[i]; 0 if seen[i] holds no
     * metrics */
    uint64_t steps[SGT_CUDA_RING];
    /* State of the current step. 0: no micro-step has been enqueued; 1: at least one; 2: all. The
     * value 2 is used only with several ranks, whose last micro-step differs from the others. */
    int open_step;
    unsigned launched_micro; /* number of kernel launches per micro-step */
} sgt_cuda_queue;

typedef struct sgt_cuda_backend {
    /* must be the first member, because an sgt_backend * is cast to an sgt_cuda_backend * */
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
    /* CUPTI, which records kernels for the trace; NULL if there is no trace */
    sgt_cupti *cupti;
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* in which parts of a step each buffer is in use */
    char library[96], peak_name[300];
} sgt_cuda_backend;

/* ---- layout.c ---- */
/* Compute all sizes, and all offsets in the flat arrays, from the options. If the CUDA backend does
 * not support an option, return SGT_EUNSUPPORTED with a message that names the option. */
int sgt_cuda_decide(sgt_cuda_backend *c, const sgt_backend_options *o, sgt_error *err);
/* Assign an address in the arena to every buffer. The first call, which precedes the allocation of
 * the arena, only computes the arena's size. */
void sgt_cuda_lay_out(sgt_cuda_backend *c);
/* Return the largest number of rows per micro-step, below o->batch, for which all buffers fit in
 * `bytes` bytes of device memory, or 0 if not even one row fits. */
uint32_t sgt_cuda_most_rows(const sgt_backend_options *o, uint64_t bytes);

/* For tests: overwrite the buffers that are no longer in use after part number `part` of a step. A
 * part is, for example, the forward pass of one layer (see sgt_live). sgt_cuda_part_ends calls this
 * function at the end of each part. */
void sgt_cuda_scrub(sgt_cuda_backend *c, unsigned part);
static inline void sgt_cuda_part_ends(sgt_cuda_backend *c, unsigned part)
{
    if (c->o.scrub) sgt_cuda_scrub(c, part);
}

/* Return 1 if the kernel of the next LayerNorm adds the bias of the matrix product `which`; return
 * 0 if the product itself adds it. The result is 1 with the variant norm-bias, for the last product
 * of each residual branch. */
static inline int sgt_cuda_norm_bias(const sgt_cuda_backend *c, int which)
{
    return c->plan.variants & SGT_VARIANT_NORM_BIAS &&
           (which == SGT_CUDA_PROJ || which == SGT_CUDA_FCPROJ);
}

/* ---- plan.c ---- */
/* Return the shape of the matrix product D (m, n) = A (m, k) B (k, n) with operands in the number
 * format shape.type. */
sgt_cuda_gemm_shape sgt_cuda_product_shape(const sgt_cuda_backend *c, size_t m, size_t n, size_t k);
int sgt_cuda_plan_products(sgt_cuda_backend *c, sgt_error *err);
/* sgt_cuda_choose_gelu chooses whether matrix products or separate kernels compute GELU.
 * sgt_cuda_choose_head chooses for how many positions the head computes logits at a time. Both
 * functions may time the alternatives, so call them after the arena has been allocated. Every rank
 * must call both. */
int sgt_cuda_choose_gelu(sgt_cuda_backend *c, sgt_error *err);
int sgt_cuda_choose_head(sgt_cuda_backend *c, sgt_error *err);
/* Set *ms to the time in milliseconds that work(c) takes on the compute stream. It is the mean of
 * ten timed runs, before which work(c) runs once without being timed. The function waits for the
 * device. */
int sgt_cuda_time(sgt_cuda_backend *c, void (*work)(sgt_cuda_backend *), float *ms, sgt_error *err);

/* ---- peak.c ---- */
/* Set base.peak_flops to the measured speed of a large matrix product in operations per second, or
 * to 0 if it cannot be measured. Also set base.datasheet_flops and base.peak_name. */
void sgt_cuda_find_peak(sgt_cuda_backend *c);

/* ---- attention.c ---- */
int sgt_cuda_choose_attention(sgt_cuda_backend *c, sgt_error *err);
/* If both sgt's attention and cuDNN's can be used, time both, and choose the one that is faster on
 * rank 0. Call this function after the arena has been allocated. */
int sgt_cuda_time_attention(sgt_cuda_backend *c, sgt_error *err);
/* Fill cuDNN's workspace with NaN. An engine that accumulates sums in the workspace without first
 * setting it to 0 then computes NaN. */
void sgt_cuda_spoil_cudnn(sgt_cuda_backend *c);
void sgt_cuda_attend(sgt_cuda_backend *c, size_t layer, int training);
/* Return the name of an attention implementation, for messages. Set *instead to advice for users
 * whose gradients become infinite or NaN with this implementation, or to NULL if there is no
 * advice. */
const char *sgt_cuda_attention_name(sgt_cuda_path path, const char **instead);
/* Compute the backward pass of attention. Read dln (N, C), the gradient of attention's output, and
 * write the gradient of qkv (N, 3C) to dwide. */
void sgt_cuda_attend_backward(sgt_cuda_backend *c, size_t layer);

/* ---- forward.c, backward.c ---- */
void sgt_cuda_forward(sgt_cuda_backend *c, int training); /* compute lnf from ids */
/* Recompute the activations of a layer that its backward pass needs and that are not in memory. */
void sgt_cuda_forward_again(sgt_cuda_backend *c, size_t layer);
/* Compute logits and losses from lnf. If `training` is set, also store the gradient of the logits
 * in buf.logits. */
void sgt_cuda_head(sgt_cuda_backend *c, int training);
void sgt_cuda_backward(sgt_cuda_backend *c);

/* ---- ranks.c ---- */

/* Functions for training with several ranks. With only one rank, sgt_cuda_ranks_open, _leave,
 * _follow, _last and _reduce do nothing, and the other functions must not be called. */

/* Indexes of buckets (groups of parameters): a bucket for the embeddings, one for each block, one
 * for the head if it is not tied to wte, and a last one for all vectors. */
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
/* Copy the `n` bytes at `choice` from rank 0 to every rank. Without this, ranks might choose
 * differently, because their timings differ, but all ranks must choose the same. */
int sgt_cuda_ranks_follow(const sgt_cuda_backend *c, void *choice, size_t n, sgt_error *err);
/* Disconnect from the other ranks. All enqueued work must have completed, unless a rank has failed
 * and the others have given up. In that case, NCCL's communicator is aborted. */
void sgt_cuda_ranks_leave(sgt_cuda_backend *c);
/* Return 1 if there are several ranks and `micro` is the index of a step's last micro-step, in
 * which the ranks reduce gradients while they compute; otherwise return 0. */
int sgt_cuda_ranks_last(const sgt_cuda_backend *c, uint32_t micro);
/* Call these functions in the last micro-step of a step: sgt_cuda_ranks_begin at its start,
 * sgt_cuda_ranks_reduce when all gradients of a bucket are complete, and sgt_cuda_ranks_end at its
 * end. */
void sgt_cuda_ranks_begin(sgt_cuda_backend *c);
void sgt_cuda_ranks_reduce(sgt_cuda_backend *c, size_t bucket);
void sgt_cuda_ranks_end(sgt_cuda_backend *c);
/* Call sgt_cuda_ranks_norm before the update: it sums the loss, the number of targets and the
 * squared gradient norm over all ranks. Call sgt_cuda_ranks_share after the update: it all-gathers
 * the working copies of the parameters and, if `forget` is set, sets the gradients to 0. */
void sgt_cuda_ranks_norm(sgt_cuda_backend *c);
void sgt_cuda_ranks_share(sgt_cuda_backend *c, int forget);
/* For the matrices that Muon updates, all-gather own_grads of all ranks into `grads`. */
void sgt_cuda_ranks_gather_steps(sgt_cuda_backend *c);
/* sgt_cuda_ranks_put writes, and sgt_cuda_ranks_get reads, elements at .. at + count - 1 of the
 * complete flat array, which is divided among the ranks. `state` is this rank's array, which
 * contains only the elements that this rank owns. sgt_cuda_ranks_put stores those of the `count`
 * floats that this rank owns. sgt_cuda_ranks_get returns all `count` floats on every rank. All
 * ranks must make the same calls. */
int sgt_cuda_ranks_put(sgt_cuda_backend *c, float *state, size_t at, size_t count,
                       const float *from, sgt_error *err);
int sgt_cuda_ranks_get(sgt_cuda_backend *c, const float *state, size_t at, size_t count, float *to,
                       sgt_error *err);

/* ---- muon.c ---- */
/* Return 1 if Muon updates the tensor with index `tensor`, otherwise 0. If the optimizer is Muon,
 * it updates the four weight matrices of each block. */
int sgt_cuda_by_muon(const sgt_cuda_backend *c, size_t tensor);
/* Return the distance, in elements, between successive matrices in Muon's buffers: the number n of
 * elements in a matrix, rounded up for alignment. */
static inline size_t sgt_cuda_muon_stride(size_t n) { return (n + 63) / 64 * 64; }
/* Plan the matrix products of the optimizer Muon. Do nothing if a different optimizer is used. */
int sgt_cuda_muon_plan(sgt_cuda_backend *c, sgt_error *err);
/* Update the matrices of all blocks with Muon. Call this after the gradient norm has been
 * computed. */
void sgt_cuda_muon_step(sgt_cuda_backend *c);
/* Return the address in flat.v of the second moment of the parameter that has the offset `at` in
 * this rank's flat.params. */
static inline float *sgt_cuda_second(const sgt_cuda_backend *c, size_t at)
{
    return c->flat.v + at - (at < c->flat.muon_end ? 0 : c->flat.muon_end - c->flat.muon_at);
}

/* ---- trace.c ---- */
/* Prepare for tracing if the user requested a trace. CUPTI's records are added to the trace after
 * the last traced step. Call this function before a CUDA graph is captured. */
int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_trace_close(sgt_cuda_backend *c);
/* Begin a range with the name "h.LAYER PASS" in traces (see sgt_cupti_push). */
void sgt_cuda_push_layer(const char *pass, size_t layer);
/* Run a matrix product on the compute stream, under its name in traces. */
void sgt_cuda_product(const sgt_cuda_backend *c, const sgt_cuda_planned *p, void *d, const void *a,
                      const void *b, void *bias, void *aux);

/* ---- functions for several files ---- */
/* Return the address of the working copy of the parameter at offset `at` of the flat arrays. */
static inline const void *sgt_cuda_weight(const sgt_cuda_backend *c, size_t at)
{
    return (const unsigned char *)c->flat.copy + at * c->shape.width;
}

/* Return the address of the parameter at offset `at`, which must belong to a vector, in float32.
 * LayerNorm kernels use this address instead of a bf16 working copy. The weights of a LayerNorm are
 * near 1, where successive bf16 numbers are 1/256 or 1/128 apart. A single update changes a weight
 * much less, so most updates would not change the bf16 copy. */
static inline const float *sgt_cuda_vector(const sgt_cuda_backend *c, size_t at)
{
    if (c->flat.vectors) return c->flat.vectors + (at - c->flat.decayed);
    return (c->flat.own_copy ? c->flat.params : (const float *)c->flat.copy) + at;
}

/* Copy `count` floats from the device array `device` to the host array `to` or, if `to` is NULL,
 * from the host array `from` to `device`. Copy through the pinned staging buffer, and return after
 * the copy is complete. */
int sgt_cuda_stage(sgt_cuda_backend *c, float *device, float *to, const float *from, size_t count,
                   sgt_error *err);

/* Set *d to the parameters of the dropout at the place `site` of layer `layer`, and return d.
 * Return NULL if there is no dropout. */
const sgt_cuda_dropout *sgt_cuda_drop(const sgt_cuda_backend *c, sgt_cuda_dropout *d, size_t layer,
                                      uint32_t site, int training);

/* Open the CUDA device with index `card`. If there is no such device, open device 0: if a launcher
 * makes only one device visible to each rank, this device has index 0. */
int sgt_cuda_open_card(sgt_cuda_device *d, int card, sgt_error *err);
/* Open the CUDA backend (see backend.h). If no device can be used, return the error of
 * sgt_cuda_device_open (see runtime.h). */
int sgt_cuda_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);
/* Compute how many bytes of memory the backend would allocate, by kind and in total. This needs no
 * device. */
int sgt_cuda_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                              size_t *count, uint64_t *bytes, sgt_error *err);

/* Run work(c), which enqueues kernels on streams. Without CUDA graphs, every call launches the
 * kernels directly. With graphs, the first call launches the kernels directly and, while the device
 * computes, captures a graph; later calls run this graph. The first launch must be direct, because
 * the driver loads kernels and libraries allocate memory during it, which is impossible during a
 * capture. */
int sgt_cuda_run(sgt_cuda_backend *c, sgt_cuda_graph *graph, void (*work)(sgt_cuda_backend *),
                 sgt_error *err);

/* ---- state.c ---- */
int sgt_cuda_put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 const float *from, sgt_error *err);
int sgt_cuda_get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 float *to, sgt_error *err);
int sgt_cuda_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);
void sgt_cuda_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
/* Copy the control block at the device address `control` to the staging buffer, and wait for the
 * copy. */
int sgt_cuda_read_control(sgt_cuda_backend *c, sgt_cuda_control *control, sgt_error *err);
/* Initialize the device's control block before the first step: set the fields whose values carry
 * over from step to step. */
int sgt_cuda_start_control(sgt_cuda_backend *c, const sgt_scaler *s, sgt_error *err);

/* ---- update.c ---- */
int sgt_cuda_update(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
int sgt_cuda_metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

#endif
