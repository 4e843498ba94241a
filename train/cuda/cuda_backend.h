/* cuda_backend.h: the internals of the CUDA backend, for its own files only.
 *
 * B rows of T tokens are N = B*T positions. Activations and the parameters' working copies have the
 * same type, `type`. Master parameters, gradients, moments and statistics are float32. All of them
 * are in one allocation, the arena, which is made when the backend is opened.
 *
 * A step is two CUDA graphs. The micro-step's graph reads ids, targets and its control values from
 * device memory, and adds to the gradients. The update's graph runs the optimizer, which also
 * zeroes the gradients. The host runs ahead of the device. It waits only for the metrics of the
 * previous step, and for the copy of an old row buffer, which has usually ended long before. It
 * never waits for the step that it has just queued. */
#ifndef SGT_CUDA_BACKEND_H
#define SGT_CUDA_BACKEND_H

#include "train/backend.h"
#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"

#define SGT_CUDA_SLOTS 2 /* row buffers on the device */
#define SGT_CUDA_RING 4  /* latest steps and copies whose events and results are kept */
/* maximum number of rows in a chunk of the head: 38 MB of bf16 logits, less than an H100's cache
 * holds */
#define SGT_CUDA_CHUNK 384

/* One block: the offsets of its tensors in the flat arrays, and the activations that its forward
 * pass keeps for the backward pass. All blocks that recompute activations share the memory of the
 * first such block. */
typedef struct sgt_cuda_block {
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];
    /* (N, C), except qkv (N, 3C), fc and gelu (N, 4C) */
    void *ln1, *qkv, *att, *mid, *ln2, *fc, *gelu, *out;
    float *mean1, *rstd1, *mean2, *rstd2, *lse; /* (N) each, except lse (B, H, T) */
    void *probs;                                /* (B, H, T, T); only with naive attention */
} sgt_cuda_block;

/* A planned matrix product, and its name in profiles. */
typedef struct sgt_cuda_planned {
    const sgt_cuda_gemm *gemm;
    const char *name;
} sgt_cuda_planned;

/* The three matrix products of a weight: `forward` with its input, and dx and dw of the backward
 * pass. dw adds to the gradient in float32. */
typedef struct sgt_cuda_linear {
    sgt_cuda_planned forward, dx, dw;
} sgt_cuda_linear;

enum { SGT_CUDA_QKV, SGT_CUDA_PROJ, SGT_CUDA_FC, SGT_CUDA_FCPROJ, SGT_CUDA_HEAD, SGT_CUDA_LINEARS };

/* Describes one weight of a block, for planning, launches, Muon's update and names in profiles
 * (plan.c). */
typedef struct sgt_cuda_layer {
    size_t rows, columns;          /* W is (rows*C, columns*C) */
    size_t tensor;                 /* W's index among a block's tensors; its bias is next */
    const char *forward, *dx, *dw; /* names of its matrix products */
} sgt_cuda_layer;
extern const sgt_cuda_layer sgt_cuda_layers[SGT_CUDA_HEAD];

typedef enum sgt_cuda_path {
    SGT_PATH_OWN,
    SGT_PATH_CUDNN,
    SGT_PATH_NAIVE,
    SGT_PATH_HOPPER
} sgt_cuda_path;

/* The matrix products of naive attention, batched over B*H heads, each used in both passes; and its
 * buffers. */
typedef struct sgt_cuda_naive {
    /* forms of product, with s (T, T) and x, y (T, D): outer: x y^T; rows: s y; columns: s^T y */
    sgt_cuda_planned outer, rows, columns;
    void *q, *k, *v, *o, *dq, *dk, *dv; /* (B, H, T, D) each */
    void *dscores;                      /* (B, H, T, T) */
} sgt_cuda_naive;

/* Sizes that are fixed for the whole run by the model, the options and the number of ranks. */
typedef struct sgt_cuda_shape {
    sgt_cuda_type type;
    size_t width; /* bytes of a number of type `type` */
    size_t B, T, N, C, H, D, L, V;
    /* V, padded: rows_v is the number of rows that wte has in memory, ldv the row stride of the
     * logits */
    size_t rows_v, ldv;
    float scale; /* 1/sqrt(D), for attention */
    size_t ranks, rank;
} sgt_cuda_shape;

/* The flat arrays: parameters, gradients, moments and working copies, all with the same layout.
 * Matrices come first, then vectors. Each tensor is 256-byte aligned.
 *
 * With several ranks, the arrays are divided into buckets, and each rank owns a part of every
 * bucket. params, m, v, own_grads and own_copy hold only the rank's parts, one after the other. A
 * single rank owns everything. */
typedef struct sgt_cuda_flat {
    size_t *tensor_at; /* offset of each of the model's tensors, in numbers */
    /* count: numbers in each array; decayed: how many of the first of them have weight decay */
    size_t count, decayed;
    size_t wte, wpe, lnf_w, lnf_b, head; /* offsets of tensors outside the blocks, in numbers */
    float *params, *grads, *m;
    /* Second moments; NULL with SGD. With Muon, the matrices of blocks have none, and v is shorter:
     * sgt_cuda_second returns the address of a number's second moment. */
    float *v;
    /* begin and end, in this rank's parts, of the numbers that Muon updates; 0 and 0: none */
    size_t muon_at, muon_end;
    /* working copies: the parameters in `type`; the same array as params if that is float32 */
    void *copy;
    /* the vectors in float32, from number `decayed` on, if several ranks train in a 16-bit type;
     * otherwise NULL, because params or copy has them */
    float *vectors;
    /* offset of each bucket (there are sgt_cuda_buckets of them), then the end of the last */
    size_t *bucket_at;
    /* own: numbers in this rank's parts; own_decayed: how many of the first of them have weight
     * decay */
    size_t own, own_decayed;
    /* gradients summed over ranks; the same array as grads if there is one rank */
    float *own_grads;
    /* working copies of this rank's parts, in `type`; NULL if params serves as such */
    void *own_copy;
    int stale; /* 1: parameters were put, so the working copies must be recomputed */
} sgt_cuda_flat;

/* Muon's matrix products (kernels/muon.h), each batched over one matrix of every layer: gram = X X'
 * or X'X, square = gram gram, product = square X or X square. The arrays are indexed by
 * SGT_CUDA_QKV to SGT_CUDA_FCPROJ. Then Muon's buffers, which hold one kind of matrix at a time. */
typedef struct sgt_cuda_muon {
    const sgt_cuda_gemm *gram[SGT_CUDA_HEAD], *square, *product[SGT_CUDA_HEAD];
    void *x, *y; /* (L, 4C*C) each, padded: X before and after an iteration of Newton-Schulz */
    void *a, *b; /* (L, C*C) each, padded: gram, and the matrix that X is multiplied by */
} sgt_cuda_muon;

/* The kernels and library calls that compute a step, chosen when the backend is opened. */
typedef struct sgt_cuda_plan {
    uint32_t variants; /* SGT_VARIANT_* flags; none with --no-fuse */
    int norm_rows;     /* 1: LayerNorm's kernels keep rows in registers, forward and backward */
    /* 1: a step has only one micro-step, which overwrites the weight gradients, so the update need
     * not zero them */
    int written;
    sgt_cuda_gemms *gemms;
    sgt_cuda_linear linear[SGT_CUDA_LINEARS];
    /* matrix products with GELU, or with GELU's slope, fused in; if gemm is NULL, separate kernels
     * compute these */
    sgt_cuda_planned fc_gelu, dgelu;
    int bias_apart; /* 1: separate kernels add the biases, not the matrix products */
    /* number of rows whose logits linear[SGT_CUDA_HEAD].forward computes: with the variant
     * head-chunks, the rows of a chunk; otherwise N */
    size_t head_rows;
    sgt_cuda_path path;
    char path_text[64];
    sgt_cudnn_attention *cudnn;
    sgt_cuda_naive naive;
    sgt_cuda_muon muon;
} sgt_cuda_plan;

/* Everything in device memory except the flat arrays. */
typedef struct sgt_cuda_buffers {
    unsigned char *arena; /* the only allocation; the flat arrays are in it too */
    size_t used;          /* bytes of the arena laid out so far */
    sgt_cuda_block *blocks;
    /* share_cheap: the first block that recomputes the outputs of GELU and LayerNorm. share_inside:
     * the first that recomputes everything inside a block. share_last: the last that recomputes
     * anything. When the backward pass begins, its activations are still in the buffers that all
     * recomputing blocks use in turn. NULL: there is no such block. */
    sgt_cuda_block *share_cheap, *share_inside, *share_last;
    void *x0, *lnf; /* embeddings, and the last LayerNorm's output: (N, C) each */
    float *meanf, *rstdf;
    void *logits; /* (N, ldv) */
    void *chunk;  /* (SGT_CUDA_CHUNK, ldv): logits of a chunk, for the variant head-chunks */
    float *loss, *row_lse; /* (N) each; row_lse: only with --no-fuse */
    /* gradients: dx (N, C) of the residual stream; dln (N, C) of a LayerNorm's output; dwide (N,
     * 4C) inside the MLP, or (N, 3C) of qkv; ddrop (N, C) of a branch with dropout */
    void *dx, *dln, *dwide, *ddrop;
    /* (B, H, T): sums of dout * out over each head's columns, for attention's backward pass */
    float *delta;
    int32_t *ids, *targets, *sorted, *order;
    /* start and end of each position's document, if attention is limited to documents */
    sgt_cuda_documents documents;
    int32_t *batch[SGT_CUDA_SLOTS]; /* (2, N) each: a batch's inputs and targets */
    /* (N) each: start of each position's document, from the batch */
    int32_t *starts[SGT_CUDA_SLOTS];
    void *scratch; /* scratch memory on `compute`, for one kernel at a time */
    size_t scratch_bytes;
    void *beside_scratch; /* scratch memory of the stream `beside` */
    void *cudnn_space;
    sgt_cuda_control *control, *eval_control;
    sgt_outliers *outliers; /* history of losses and gradient norms that detects spikes */
    sgt_cuda_place *place;
} sgt_cuda_buffers;

/* Streams, graphs and pinned memory, and counters of the steps. */
typedef struct sgt_cuda_queue {
    sgt_cuda_stream compute, copies;
    /* Second stream for bias gradients, whose results no other kernel of the backward pass needs.
     * NULL with --no-fuse: they are then computed on `compute`. */
    sgt_cuda_stream beside;
    sgt_cuda_event forked, rejoined;
    int branches; /* 1: work was queued on `beside` after the last rejoin */
    sgt_cuda_event copied[SGT_CUDA_RING], taken[SGT_CUDA_SLOTS], measured[SGT_CUDA_RING];
    /* last_graph: the graph for the last micro-step of a step, if it differs from the others */
    sgt_cuda_graph micro_graph, last_graph, update_graph;
    /* pinned (SGT_CUDA_RING): the control block at the end of each step */
    sgt_cuda_control *seen;
    unsigned char *staging; /* pinned memory for copies in both directions */
    size_t staging_bytes;
    int32_t *staged[SGT_CUDA_RING]; /* pinned (N), only with documents: the batch's starts */
    uint64_t micro_steps;           /* number of micro-steps run so far */
    uint64_t steps[SGT_CUDA_RING];  /* [i]: number + 1 of the step whose end is in seen[i] */
    /* 1: micro-steps were run since the last update; 2: including the last micro-step of the
     * step */
    int open_step;
    unsigned launched_micro; /* number of kernels launched per micro-step */
} sgt_cuda_queue;

typedef struct sgt_cuda_backend {
    sgt_backend base; /* first, so that an sgt_backend * can be cast to an sgt_cuda_backend * */
    sgt_backend_options o;
    sgt_model model;
    sgt_cuda_device device;
    sgt_cuda_shape shape;
    sgt_cuda_flat flat;
    sgt_cuda_plan plan;
    sgt_cuda_buffers buf;
    sgt_cuda_queue queue;
    struct sgt_cuda_group *group; /* state of NCCL; NULL with one rank */
    sgt_cupti *cupti;             /* for the trace; NULL: no trace was requested */
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* when each buffer is in use; filled when memory is allocated */
    char library[96], peak_name[300];
    char *choices;
} sgt_cuda_backend;

/* ---- layout.c ---- */
/* Compute sizes and the flat layout from the options. If CUDA does not support an option, returns
 * SGT_EUNSUPPORTED with its name. */
int sgt_cuda_decide(sgt_cuda_backend *c, const sgt_backend_options *o, sgt_error *err);
/* Compute the address of everything in the arena. First call it without an arena, to compute how
 * many bytes are needed, then with one. */
void sgt_cuda_lay_out(sgt_cuda_backend *c);
/* Return the largest batch of a micro-step, in rows of T tokens, that fits into `bytes` bytes of
 * device memory; 0 if none does. */
uint32_t sgt_cuda_most_rows(const sgt_backend_options *o, uint64_t bytes);

/* Note that a part of a step (sgt_live) has ended. In tests, this overwrites the buffers that are
 * no longer in use. */
void sgt_cuda_scrub(sgt_cuda_backend *c, unsigned part);
static inline void sgt_cuda_part_ends(sgt_cuda_backend *c, unsigned part)
{
    if (c->o.scrub) sgt_cuda_scrub(c, part);
}

/* Return whether LayerNorm's kernel adds the bias of a matrix product. With the variant norm-bias
 * it does so for the products that end a residual branch. */
static inline int sgt_cuda_norm_bias(const sgt_cuda_backend *c, int which)
{
    return c->plan.variants & SGT_VARIANT_NORM_BIAS &&
           (which == SGT_CUDA_PROJ || which == SGT_CUDA_FCPROJ);
}

/* ---- plan.c ---- */
/* Return the shape of D (m, n) = A (m, k) B (k, n) with the types of a step. */
sgt_cuda_gemm_shape sgt_cuda_product_shape(const sgt_cuda_backend *c, size_t m, size_t n, size_t k);
int sgt_cuda_plan_products(sgt_cuda_backend *c, sgt_error *err);
/* Call these two once memory is allocated. If there are several ranks, all of them must call
 * sgt_cuda_choose_head. */
int sgt_cuda_choose_gelu(sgt_cuda_backend *c, sgt_error *err);
int sgt_cuda_choose_head(sgt_cuda_backend *c, sgt_error *err);
/* Set *ms to the milliseconds that some work on the compute stream takes: the mean of ten runs,
 * after one that is not timed. Waits for the device. */
int sgt_cuda_time(sgt_cuda_backend *c, void (*work)(sgt_cuda_backend *), float *ms, sgt_error *err);

/* ---- peak.c ---- */
/* Set base.peak_flops, measured with a large matrix product (0 if it cannot be measured),
 * base.datasheet_flops and base.peak_name. */
void sgt_cuda_find_peak(sgt_cuda_backend *c);

/* ---- attention.c ---- */
int sgt_cuda_choose_attention(sgt_cuda_backend *c, sgt_error *err);
/* Time our attention and cuDNN's, if both can be used, and keep the one that is faster on rank 0.
 * Call it once memory is allocated. */
int sgt_cuda_time_attention(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_attend(sgt_cuda_backend *c, size_t layer, int training);
/* Return a path's name. Set *instead to what to try if its gradients are not finite (NULL:
 * nothing). */
const char *sgt_cuda_attention_name(sgt_cuda_path path, const char **instead);
/* Compute attention's backward pass: read dln (N, C), the gradient of att, and write dqkv to dwide
 * (N, 3C). */
void sgt_cuda_attend_backward(sgt_cuda_backend *c, size_t layer);

/* ---- forward.c, backward.c ---- */
void sgt_cuda_forward(sgt_cuda_backend *c, int training); /* compute lnf from ids */
/* Recompute the activations that the layer's backward pass needs and that the forward pass did not
 * keep. */
void sgt_cuda_forward_again(sgt_cuda_backend *c, size_t layer);
/* Compute the losses from lnf. When training, also overwrite the logits with their gradient. */
void sgt_cuda_head(sgt_cuda_backend *c, int training);
void sgt_cuda_backward(sgt_cuda_backend *c);

/* ---- ranks.c: with one rank, only open, leave, follow, last and reduce may be called; they do
 * nothing ---- */
/* Buckets: one for the embeddings, one per block, one for an untied head, and one for all
 * vectors. */
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
/* Replace a choice of n bytes, which this rank made by timing, by rank 0's choice. */
int sgt_cuda_ranks_follow(const sgt_cuda_backend *c, void *choice, size_t n, sgt_error *err);
/* Leave the group. Work queued on streams must be done, unless the ranks have given up; then NCCL's
 * communicator is aborted. */
void sgt_cuda_ranks_leave(sgt_cuda_backend *c);
/* Return whether `micro` is the last micro-step of a step, which reduces gradients while it
 * computes. */
int sgt_cuda_ranks_last(const sgt_cuda_backend *c, uint32_t micro);
/* Call these in a step's last micro-step: begin at its start, reduce whenever the gradients of a
 * bucket are complete, end at its end. */
void sgt_cuda_ranks_begin(sgt_cuda_backend *c);
void sgt_cuda_ranks_reduce(sgt_cuda_backend *c, size_t bucket);
void sgt_cuda_ranks_end(sgt_cuda_backend *c);
/* Before the update, sgt_cuda_ranks_norm sums the fields of the control block and the squared
 * gradient norm over all ranks. After the update, sgt_cuda_ranks_share gathers the working copies
 * of all ranks; if `forget` is set, it zeroes the gradients at the same time. */
void sgt_cuda_ranks_norm(sgt_cuda_backend *c);
void sgt_cuda_ranks_share(sgt_cuda_backend *c, int forget);
/* Gather own_grads of all ranks into grads, for the matrices that Muon updates. */
void sgt_cuda_ranks_gather_steps(sgt_cuda_backend *c);
/* Write or read the floats at .. at + count of a flat array. `state` holds this rank's parts of
 * that array. put stores those floats that this rank owns. get returns all of them on every rank.
 * All ranks must call these together. */
int sgt_cuda_ranks_put(sgt_cuda_backend *c, float *state, size_t at, size_t count,
                       const float *from, sgt_error *err);
int sgt_cuda_ranks_get(sgt_cuda_backend *c, const float *state, size_t at, size_t count, float *to,
                       sgt_error *err);

/* ---- muon.c ---- */
/* Return whether Muon updates a tensor. */
int sgt_cuda_by_muon(const sgt_cuda_backend *c, size_t tensor);
/* Return how many numbers apart matrices of n numbers begin in Muon's buffers, in which they are
 * aligned. */
static inline size_t sgt_cuda_muon_stride(size_t n) { return (n + 63) / 64 * 64; }
/* Plan Muon's matrix products. With another optimizer, this does nothing. */
int sgt_cuda_muon_plan(sgt_cuda_backend *c, sgt_error *err);
/* Update all matrices of blocks. The gradient's norm must be known. */
void sgt_cuda_muon_step(sgt_cuda_backend *c);
/* Return the address in `v` of the second moment of number `at` of this rank's parts. */
static inline float *sgt_cuda_second(const sgt_cuda_backend *c, size_t at)
{
    return c->flat.v + at - (at < c->flat.muon_end ? 0 : c->flat.muon_end - c->flat.muon_at);
}

/* ---- trace.c ---- */
/* Prepare the trace, if one was requested. CUPTI's records are added to it after its last step.
 * Call this before anything is captured. */
int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_trace_close(sgt_cuda_backend *c);
/* Begin a range "h.LAYER PASS" of traces (sgt_cupti_push). */
void sgt_cuda_push_layer(const char *pass, size_t layer);
/* Run a matrix product on the compute stream, under a label that names it. */
void sgt_cuda_product(const sgt_cuda_backend *c, const sgt_cuda_planned *p, void *d, const void *a,
                      const void *b, void *bias, void *aux);

/* ---- functions that several of these files use ---- */
/* Return the address of number `at` in the working copies. */
static inline const void *sgt_cuda_weight(const sgt_cuda_backend *c, size_t at)
{
    return (const unsigned char *)c->flat.copy + at * c->shape.width;
}

/* Return the address, in float32, of parameter number `at`, which must belong to a vector.
 * LayerNorm's parameters are read from here. As bf16, numbers near 1 would be 1/256 or 1/128 apart,
 * many times what an update adds. */
static inline const float *sgt_cuda_vector(const sgt_cuda_backend *c, size_t at)
{
    if (c->flat.vectors) return c->flat.vectors + (at - c->flat.decayed);
    return (c->flat.own_copy ? c->flat.params : (const float *)c->flat.copy) + at;
}

/* Copy `count` floats between device and host through pinned memory, in pieces: from the device to
 * `to`, or if that is NULL, from `from` to the device. Waits for the device. */
int sgt_cuda_stage(sgt_cuda_backend *c, float *device, float *to, const float *from, size_t count,
                   sgt_error *err);

/* Store the dropout of a layer and site in *d and return d, or return NULL if there is no
 * dropout. */
const sgt_cuda_dropout *sgt_cuda_drop(const sgt_cuda_backend *c, sgt_cuda_dropout *d, size_t layer,
                                      uint32_t site, int training);

/* Open device `card`. If it does not exist, open device 0, because a launcher may make only a
 * rank's own device visible to it. */
int sgt_cuda_open_card(sgt_cuda_device *d, int card, sgt_error *err);
/* Open the CUDA backend (backend.h). Errors have the messages of sgt_cuda_device_open
 * (runtime.h). */
int sgt_cuda_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);
/* Compute the memory that the backend would allocate, by kind and in total, without a device. */
int sgt_cuda_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                              size_t *count, uint64_t *bytes, sgt_error *err);

/* Run some work. Without graphs, launch it directly. With graphs, launch it directly the first
 * time, then capture it while the device computes; later calls run the graph. The first launch
 * loads the code of kernels and lets libraries allocate memory, which must not happen while a
 * stream captures. */
int sgt_cuda_run(sgt_cuda_backend *c, sgt_cuda_graph *graph, void (*work)(sgt_cuda_backend *),
                 sgt_error *err);

/* ---- state.c: four of the backend's functions (backend.h) ---- */
int sgt_cuda_put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 const float *from, sgt_error *err);
int sgt_cuda_get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 float *to, sgt_error *err);
int sgt_cuda_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);
void sgt_cuda_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
/* Copy a control block to the staging buffer, and wait for the copy. */
int sgt_cuda_read_control(sgt_cuda_backend *c, sgt_cuda_control *control, sgt_error *err);
/* Set the fields of the control block that keep their values from step to step. */
int sgt_cuda_start_control(sgt_cuda_backend *c, const sgt_scaler *s, sgt_error *err);

/* ---- update.c: two of the backend's functions (backend.h) ---- */
int sgt_cuda_update(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
int sgt_cuda_metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

#endif
