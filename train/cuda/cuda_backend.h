/* cuda_backend.h: the internals of the CUDA backend, for its own files only.
 *
 * B rows of T tokens are N = B*T positions. Activations and the parameters' working copies have one
 * type, `type`. Master parameters, gradients, moments and statistics are float32. Everything lies
 * in one allocation, made at open.
 *
 * A step is two CUDA graphs. The micro-step's graph reads ids, targets and its control values from
 * device memory, and adds to the gradients. The update's graph runs the optimizer, which also
 * zeroes the gradients. The host runs ahead of the device. It waits for the metrics of the previous
 * step, and until a row buffer is copied, which was long before. It never waits for the step that
 * it has just queued. */
#ifndef SGT_CUDA_BACKEND_H
#define SGT_CUDA_BACKEND_H

#include "train/backend.h"
#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/cupti.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"

#define SGT_CUDA_SLOTS 2 /* row buffers on the device */
#define SGT_CUDA_RING 4  /* steps and copies that the host keeps events and results of */

/* One block: the places of its tensors in the flat arrays, and what its forward pass keeps for the
 * backward pass. Recomputed activations lie in the memory of the first block that recomputes
 * them. */
typedef struct sgt_cuda_block {
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];
    /* (N, C), except qkv (N, 3C), fc and gelu (N, 4C) */
    void *ln1, *qkv, *att, *mid, *ln2, *fc, *gelu, *out;
    float *mean1, *rstd1, *mean2, *rstd2, *lse; /* (N) each, but lse (B, H, T) */
    void *probs;                                /* (B, H, T, T), with naive attention only */
} sgt_cuda_block;

/* A weight's product with its input, and the two products of its backward pass. dw adds to the
 * gradient, in float32. */
typedef struct sgt_cuda_linear {
    const sgt_cuda_gemm *forward, *dx, *dw;
    /* `forward` that also adds the residual stream; NULL: the next LayerNorm's kernel adds it */
    const sgt_cuda_gemm *residual;
} sgt_cuda_linear;

enum { SGT_CUDA_QKV, SGT_CUDA_PROJ, SGT_CUDA_FC, SGT_CUDA_FCPROJ, SGT_CUDA_HEAD, SGT_CUDA_LINEARS };

typedef enum sgt_cuda_path {
    SGT_PATH_OWN,
    SGT_PATH_TILED,
    SGT_PATH_CUDNN,
    SGT_PATH_NAIVE,
    SGT_PATH_HOPPER
} sgt_cuda_path;

/* Products of naive attention, batched over B*H heads, each used forward and backward; and its
 * buffers. */
typedef struct sgt_cuda_naive {
    /* (T, T) = x y^T;  (T, D) = s y;  (T, D) = s^T y */
    const sgt_cuda_gemm *outer, *rows, *columns;
    void *q, *k, *v, *o, *dq, *dk, *dv; /* (B, H, T, D) each */
    void *dscores;                      /* (B, H, T, T) */
} sgt_cuda_naive;

/* What model, options and ranks fix for the whole run. */
typedef struct sgt_cuda_shape {
    sgt_cuda_type type;
    size_t width; /* bytes of a number of type `type` */
    size_t B, T, N, C, H, D, L, V;
    /* rows of wte in memory, and stride of the logits' rows in numbers: V, padded */
    size_t rows_v, ldv;
    float scale; /* attention's 1/sqrt(D) */
    size_t ranks, rank;
} sgt_cuda_shape;

/* The flat arrays of parameters and their like: matrices first, then vectors. Each tensor is
 * 256-byte aligned.
 *
 * With several ranks the arrays are cut into buckets, and each rank owns a part of every bucket.
 * params, m, v, own_grads and own_copy hold only the rank's parts, one after the other. With one
 * rank, its parts are everything. */
typedef struct sgt_cuda_flat {
    size_t *tensor_at;     /* offset of each of the model's tensors, in numbers */
    size_t count, decayed; /* numbers in each array; those that weight decay applies to */
    size_t wte, wpe, lnf_w, lnf_b, head; /* offsets, in numbers */
    float *params, *grads, *m, *v;
    /* the parameters in `type`; params itself if that is float32 */
    void *copy;
    /* where each bucket begins (sgt_cuda_buckets), and the end of the last one */
    size_t *bucket_at;
    size_t own, own_decayed; /* numbers in this rank's parts; those that weight decay applies to */
    float *own_grads;        /* gradients summed over ranks; grads itself with one rank */
    void *own_copy;          /* params in `type`; NULL if that is params itself */
    int stale;               /* parameters were put, so the working copies must be made anew */
} sgt_cuda_flat;

/* Which kernels and library calls compute the step: decided at open. */
typedef struct sgt_cuda_plan {
    uint32_t variants; /* switches of variants.h; none with --no-fuse */
    int norm_rows;     /* LayerNorm keeps rows in registers, forward and backward */
    int bulk_loss;     /* the loss kernel reads logits by bulk copies */
    /* The step has only one micro-step. It overwrites the weight gradients, and the update does not
     * zero them. */
    int written;
    sgt_cuda_gemms *gemms;
    size_t gemm_space; /* bytes of the matrix products' workspace */
    sgt_cuda_linear linear[SGT_CUDA_LINEARS];
    /* Products with GELU, with its slope, or with slope and bias gradient fused in. NULL: separate
     * kernels do it. */
    const sgt_cuda_gemm *fc_gelu, *dgelu, *dgelu_bias;
    int bias_apart;                   /* a kernel adds biases instead of the products */
    const sgt_cuda_gemm *qkv_dw_bias; /* qkv's dw with bias gradient; NULL: separate kernels */
    sgt_cuda_path path;
    char path_text[64];
    sgt_cudnn_attention *cudnn;
    sgt_cuda_naive naive;
} sgt_cuda_plan;

/* Everything in the device's memory but the flat arrays. */
typedef struct sgt_cuda_buffers {
    unsigned char *arena; /* the one allocation, which the flat arrays lie in too */
    size_t used;          /* bytes of the arena laid out so far */
    sgt_cuda_block *blocks;
    /* The first block that recomputes GELU and LayerNorm outputs, the first that recomputes all of
     * a block, and the last that recomputes anything. The backward pass finds the last one's
     * activations still in the shared memory. NULL: no such block. */
    sgt_cuda_block *share_cheap, *share_inside, *share_last;
    void *x0, *lnf; /* embeddings and the last LayerNorm's output, (N, C) each */
    float *meanf, *rstdf;
    void *logits;          /* (N, ldv) */
    float *loss, *row_lse; /* (N) each; row_lse only without fusion */
    /* Gradients: of the residual stream and of a LayerNorm (N, C), of the MLP or qkv (N, 4C), of a
     * branch with dropout (N, C). */
    void *dx, *dln, *dwide, *ddrop;
    float *delta; /* (B, H, T): for attention's backward pass */
    /* (4C): a bias gradient that a product computed, in the type of the product's output */
    void *bias_sums;
    int32_t *ids, *targets, *sorted, *order;
    sgt_cuda_documents documents; /* bounds of the rows' documents, if attention masks them */
    uint16_t *tokens[SGT_CUDA_SLOTS];
    int32_t *given[SGT_CUDA_SLOTS];  /* (N): targets that the batch gives explicitly */
    int32_t *starts[SGT_CUDA_SLOTS]; /* (N): the batch's start of each position's document */
    void *scratch;                   /* scratch of one kernel at a time */
    size_t scratch_bytes;
    void *beside_scratch; /* scratch of the stream `beside` */
    void *cudnn_space;
    sgt_cuda_control *control, *eval_control;
    sgt_outliers *outliers; /* statistics of past steps that detect spikes */
    sgt_cuda_place *place;
} sgt_cuda_buffers;

/* Streams, graphs and pinned memory, and how far the steps in them have come. */
typedef struct sgt_cuda_queue {
    sgt_cuda_stream compute, copies;
    /* stream for bias gradients that nothing waits for; NULL: they run on `compute` */
    sgt_cuda_stream beside;
    sgt_cuda_event forked, rejoined;
    int branches; /* work was queued on `beside` since the last join */
    sgt_cuda_event copied[SGT_CUDA_RING], taken[SGT_CUDA_SLOTS], measured[SGT_CUDA_RING];
    /* last_graph: a step's last micro-step, if it differs from the other micro-steps */
    sgt_cuda_graph micro_graph, last_graph, update_graph;
    sgt_cuda_control *seen; /* pinned (SGT_CUDA_RING): the control block at the end of each step */
    unsigned char *staging; /* pinned memory for copies in both directions */
    size_t staging_bytes;
    /* pinned (N): targets given; with documents, N starts follow */
    int32_t *staged[SGT_CUDA_RING];
    uint64_t micro_steps;          /* micro-steps run so far */
    uint64_t steps[SGT_CUDA_RING]; /* number + 1 of the step whose end is in seen[i] */
    int open_step;           /* micro-steps wait for their update; 2: the step's last one has run */
    unsigned launched_micro; /* kernels launched per micro-step */
} sgt_cuda_queue;

typedef struct sgt_cuda_backend {
    sgt_backend base; /* first, so that a sgt_backend * can be cast to a sgt_cuda_backend * */
    sgt_backend_options o;
    sgt_model model;
    sgt_cuda_device device;
    sgt_cuda_shape shape;
    sgt_cuda_flat flat;
    sgt_cuda_plan plan;
    sgt_cuda_buffers buf;
    sgt_cuda_queue queue;
    struct sgt_cuda_group *group; /* NCCL's state; NULL with one rank */
    sgt_cupti *cupti;             /* NULL: no trace was asked for */
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* filled once memory is allocated */
    char library[96], peak_name[300];
    char *choices;
} sgt_cuda_backend;

/* ---- layout.c ---- */
/* Decide sizes and the flat layout from the options. SGT_EUNSUPPORTED names an option that CUDA
 * does not support. */
int sgt_cuda_decide(sgt_cuda_backend *c, const sgt_backend_options *o, sgt_error *err);
/* Place everything in the arena. Called twice: first to measure (arena NULL), then with memory. */
void sgt_cuda_lay_out(sgt_cuda_backend *c);
/* Return the largest number of rows of a micro-step that fits into so many bytes; 0 if none
 * fits. */
uint32_t sgt_cuda_most_rows(const sgt_backend_options *o, uint64_t bytes);

/* ---- live.c ---- */
/* Declare when each buffer is in use, after layout; and count the bytes in use in a part
 * (live.h). */
void sgt_cuda_live(sgt_cuda_backend *c);
void sgt_cuda_live_count(const sgt_backend *b, unsigned part, int again,
                         uint64_t in[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS]);
/* End a part of a step (live.h). In tests, overwrite the buffers that are no longer in use. */
void sgt_cuda_scrub(sgt_cuda_backend *c, unsigned part);
static inline void sgt_cuda_part_ends(sgt_cuda_backend *c, unsigned part)
{
    if (c->o.scrub) sgt_cuda_scrub(c, part);
}

/* ---- plan.c ---- */
int sgt_cuda_plan_products(sgt_cuda_backend *c, sgt_error *err);
int sgt_cuda_choose_gelu(sgt_cuda_backend *c, sgt_error *err); /* called once memory is allocated */
/* Measure the milliseconds that some work takes on the compute stream: the mean of ten, after one
 * that does not count. Waits for the device. */
int sgt_cuda_time(sgt_cuda_backend *c, void (*work)(sgt_cuda_backend *), float *ms, sgt_error *err);

/* ---- peak.c ---- */
/* Fill in base.peak_flops, measured with a large matrix product (0 if it cannot be measured),
 * base.datasheet_flops and base.peak_name. */
void sgt_cuda_find_peak(sgt_cuda_backend *c);

/* ---- attention.c ---- */
int sgt_cuda_choose_attention(sgt_cuda_backend *c, sgt_error *err);
/* Time our attention and cuDNN's, if both could serve, and keep the faster. Called once memory is
 * allocated. */
int sgt_cuda_time_attention(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_attend(sgt_cuda_backend *c, size_t layer, int training);
/* Backward through attention: dln (N, C) is the gradient of att; writes dqkv into dwide (N, 3C). */
void sgt_cuda_attend_backward(sgt_cuda_backend *c, size_t layer);

/* ---- forward.c, backward.c ---- */
void sgt_cuda_forward(sgt_cuda_backend *c, int training); /* compute lnf from ids */
/* Recompute what the layer's backward pass needs and the forward pass did not keep. */
void sgt_cuda_forward_again(sgt_cuda_backend *c, size_t layer);
/* Compute the losses from lnf. When training, also overwrite the logits with their gradient. */
void sgt_cuda_head(sgt_cuda_backend *c, int training);
void sgt_cuda_backward(sgt_cuda_backend *c);

/* ---- ranks.c: with one rank, only open, leave, last and reduce may be called; they do nothing */
/* followed by one bucket per block, one for an untied head, and one for all vectors */
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
/* Leave the group. The work queued on streams must be done, unless the ranks have given up; then
 * NCCL's part is aborted. */
void sgt_cuda_ranks_leave(sgt_cuda_backend *c);
/* Return whether `micro` is a step's last micro-step, which reduces gradients while it computes. */
int sgt_cuda_ranks_last(const sgt_cuda_backend *c, uint32_t micro);
/* For that micro-step: it begins; the gradients of a bucket are complete; it ends. */
void sgt_cuda_ranks_begin(sgt_cuda_backend *c);
void sgt_cuda_ranks_reduce(sgt_cuda_backend *c, size_t bucket);
void sgt_cuda_ranks_end(sgt_cuda_backend *c);
/* norm: sum the control block and the norm over all ranks, before the update. share: gather all
 * ranks' working copies after it. If `forget` is set, also zero the gradients at the same time. */
void sgt_cuda_ranks_norm(sgt_cuda_backend *c);
void sgt_cuda_ranks_share(sgt_cuda_backend *c, int forget);
/* Access floats at .. at + count of the flat arrays; `state` holds this rank's parts. put stores
 * the floats that this rank owns. get returns all of them on every rank. Collective. */
int sgt_cuda_ranks_put(sgt_cuda_backend *c, float *state, size_t at, size_t count,
                       const float *from, sgt_error *err);
int sgt_cuda_ranks_get(sgt_cuda_backend *c, const float *state, size_t at, size_t count, float *to,
                       sgt_error *err);

/* ---- trace.c ---- */
/* Prepare the trace, if one was asked for. The device's part is added when the trace's window
 * closes. Must be called before anything is captured. */
int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_trace_close(sgt_cuda_backend *c);
/* Name a range: the kernels launched until range_end belong to it, in traces and in Nsight. A
 * layer's range is "h.LAYER PASS". Ranges nest, and a captured graph keeps them. */
void sgt_cuda_range(sgt_cuda_backend *c, const char *name);
void sgt_cuda_range_layer(sgt_cuda_backend *c, const char *pass, size_t layer);
void sgt_cuda_range_end(sgt_cuda_backend *c);

/* ---- shared by the above ---- */
/* Return the working copies from number `at` on. */
static inline const void *sgt_cuda_weight(const sgt_cuda_backend *c, size_t at)
{
    return (const unsigned char *)c->flat.copy + at * c->shape.width;
}

/* Copy between device and host through pinned memory, piece by piece: to `to` or from `from`,
 * whichever is not NULL. Waits for the device. */
int sgt_cuda_stage(sgt_cuda_backend *c, float *device, float *to, const float *from, size_t count,
                   sgt_error *err);

/* Return the dropout of a layer's site, stored in *d; NULL if there is none. */
const sgt_cuda_dropout *sgt_cuda_drop(const sgt_cuda_backend *c, sgt_cuda_dropout *d, size_t layer,
                                      uint32_t site, int training);

/* Open the CUDA backend (backend.h). Errors have the messages of runtime.h. */
int sgt_cuda_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);
/* Return the memory that the backend would hold, by kind and in all, without a device. */
int sgt_cuda_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                              size_t *count, uint64_t *bytes, sgt_error *err);

/* Run some work. Without graphs it is launched directly. With graphs it is launched directly the
 * first time, then captured while the device computes; later calls run the graph. The first launch
 * loads a kernel's code and lets libraries allocate, which must not happen while a stream
 * captures. */
int sgt_cuda_run(sgt_cuda_backend *c, sgt_cuda_graph *graph, void (*work)(sgt_cuda_backend *),
                 sgt_error *err);

/* In state.c: four of the backend's functions (backend.h). */
int sgt_cuda_put(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 const float *from, sgt_error *err);
int sgt_cuda_get(sgt_backend *b, sgt_state what, size_t tensor, size_t first, size_t count,
                 float *to, sgt_error *err);
int sgt_cuda_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);
void sgt_cuda_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
/* Copy a control block to the staging buffer, and wait for it. */
int sgt_cuda_read_control(sgt_cuda_backend *c, sgt_cuda_control *control, sgt_error *err);
/* Set the control block's fields that outlive a step. */
int sgt_cuda_start_control(sgt_cuda_backend *c, const sgt_scaler *s, sgt_error *err);

/* In update.c: two of the backend's functions (backend.h). */
int sgt_cuda_update(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
int sgt_cuda_metrics(sgt_backend *b, uint64_t step, sgt_step_metrics *m, sgt_error *err);

#endif
