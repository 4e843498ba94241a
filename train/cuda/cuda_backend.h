/* cuda_backend.h: the inside of the CUDA backend, shared by its files and by nobody else.
 *
 * B rows of T tokens are N = B*T positions. Activations and the parameters' working copies are of
 * one type, `type`; master parameters, gradients, moments and statistics are float32. Everything
 * lies in one allocation, made at open.
 *
 * A step is two graphs. The micro-step's reads ids, targets and what steers it from device memory
 * and adds to the gradients; the optimizer's updates, and zeroes them in passing. The host runs
 * ahead of the device: it waits for a row buffer to be copied (long before) and for metrics of the
 * step before, never for the step it has just queued. */
#ifndef SGT_CUDA_BACKEND_H
#define SGT_CUDA_BACKEND_H

#include "backend.h"
#include "cuda/attention_cudnn.h"
#include "cuda/cuda.h"
#include "cuda/cupti.h"
#include "cuda/gemm.h"
#include "cuda/runtime.h"

#define SGT_CUDA_SLOTS 2 /* row buffers on the device */
#define SGT_CUDA_RING 4  /* steps and copies that the host may look back on */

/* One block: its tensors' places in the flat arrays, and what its forward pass leaves for the
 * backward pass. What is computed again lies in the memory of the first block that does so. */
typedef struct sgt_cuda_block {
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];
    /* (N, C), but qkv (N, 3C), fc and gelu (N, 4C) */
    void *ln1, *qkv, *att, *mid, *ln2, *fc, *gelu, *out;
    float *mean1, *rstd1, *mean2, *rstd2, *lse; /* (N) four times, (B, H, T) */
    void *probs;                                /* naive attention alone: (B, H, T, T) */
} sgt_cuda_block;

/* A weight's product with its input, and the two of its backward pass; the last adds, in
 * float32. */
typedef struct sgt_cuda_linear {
    const sgt_cuda_gemm *forward, *dx, *dw;
    /* forward with what it is added to; NULL: that is done by the LayerNorm behind it */
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

typedef struct sgt_cuda_backend {
    sgt_backend base; /* first: a sgt_backend * is a sgt_cuda_backend * */
    sgt_backend_options o;
    sgt_model model;
    sgt_cuda_device device;
    sgt_cuda_type type;
    size_t width; /* bytes of a number of `type` */
    size_t B, T, N, C, H, D, L, V;
    /* rows of wte in memory and numbers from row to row of the logits: V, padded */
    size_t rows_v, ldv;
    float scale;       /* attention's 1/sqrt(D) */
    uint32_t variants; /* of variants.h; none with --no-fuse */
    size_t gemm_space; /* bytes of the products' workspace */
    int norm_rows;     /* LayerNorm keeps rows in registers, both ways */
    int bulk_loss;     /* the loss takes logits by bulk copies */
    /* a step's only micro-step writes weight gradients, and the update leaves them there */
    int written;

    /* the flat arrays: matrices first, then vectors, each tensor 256-byte aligned */
    size_t *tensor_at;    /* of tensor i of the model, in numbers */
    size_t flat, decayed; /* numbers: all; those that decay */
    size_t wte, wpe, lnf_w, lnf_b, head;
    float *params, *grads, *m, *v;
    /* the parameters in `type`; params themselves where that is float32 */
    void *copy;

    /* Several ranks: the flat arrays are cut into buckets, and each rank keeps its part of every
     * bucket, one after the other: of params, m and v, which are no longer than that, and of two
     * more. One rank's part is all. */
    size_t ranks, rank;
    /* where each bucket begins (sgt_cuda_buckets), and the end of the last */
    size_t *bucket_at;
    size_t own, own_decayed;      /* numbers of this rank's part, and those that decay */
    float *own_grads;             /* summed over ranks; grads themselves for one rank */
    void *own_copy;               /* of params in `type`; NULL where that is params themselves */
    struct sgt_cuda_group *group; /* NULL: one rank */
    int stale;                    /* params were put: copy is to be made anew */

    unsigned char *arena;
    size_t used; /* bytes of the arena laid out so far */
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* once there is memory */

    sgt_cuda_block *blocks;
    /* The first that computes GELU and LayerNorm outputs again, the first that does so with all of
     * a block, and the last that does either, whose own the backward pass finds still there. NULL:
     * none. */
    sgt_cuda_block *share_cheap, *share_inside, *share_last;
    void *x0, *lnf; /* embeddings, the last LayerNorm's output: (N, C) */
    float *meanf, *rstdf;
    void *logits;          /* (N, ldv) */
    float *loss, *row_lse; /* (N); the second without fusion alone */
    /* gradients: residual stream, a LayerNorm (N, C); MLP or qkv (N, 4C); a branch */
    void *dx, *dln, *dwide, *ddrop;
    float *delta; /* (B, H, T): attention's backward */
    /* (4C): a bias gradient that a product wrote, in the type of what else it writes */
    void *bias_sums;
    int32_t *ids, *targets, *sorted, *order;
    sgt_cuda_documents documents; /* of the rows, where they are masked from one another */
    uint16_t *tokens[SGT_CUDA_SLOTS];
    int32_t *given[SGT_CUDA_SLOTS];  /* targets of their own */
    int32_t *starts[SGT_CUDA_SLOTS]; /* of documents, as the rows have them */
    void *scratch;                   /* of one kernel at a time */
    size_t scratch_bytes;
    void *beside_scratch; /* of the stream `beside` */
    void *cudnn_space;
    sgt_cuda_control *control, *eval_control;
    sgt_outliers *outliers; /* what spikes are told by */
    sgt_cuda_place *place;

    sgt_cuda_gemms *gemms;
    sgt_cuda_linear linear[SGT_CUDA_LINEARS];
    /* with GELU, its slope, or that and the bias gradient, in the product; NULL: by themselves */
    const sgt_cuda_gemm *fc_gelu, *dgelu, *dgelu_bias;
    int bias_apart;                   /* a kernel adds biases, not the products */
    const sgt_cuda_gemm *qkv_dw_bias; /* qkv's dw with the bias gradient; NULL: each by itself */
    sgt_cuda_path path;
    sgt_cudnn_attention *cudnn;
    sgt_cuda_naive naive;

    sgt_cuda_stream compute, copies;
    /* of bias gradients that need not be waited for; NULL: compute has them */
    sgt_cuda_stream beside;
    sgt_cuda_event forked, rejoined;
    int branches; /* something is under way there */
    sgt_cuda_event copied[SGT_CUDA_RING], taken[SGT_CUDA_SLOTS], measured[SGT_CUDA_RING];
    /* the second: a step's last micro-step, where it differs */
    sgt_cuda_graph micro_graph, last_graph, update_graph;
    sgt_cuda_control *seen; /* pinned (SGT_CUDA_RING): each step's end */
    unsigned char *staging; /* pinned */
    size_t staging_bytes;
    /* pinned (N): targets given; and behind them starts, where there are documents */
    int32_t *staged[SGT_CUDA_RING];

    sgt_cupti *cupti;              /* NULL: no trace is wanted */
    uint64_t micro_steps;          /* so far */
    uint64_t steps[SGT_CUDA_RING]; /* whose end is seen[i], + 1 */
    int open_step;                 /* micro-steps wait for their update */
    unsigned launched_micro;       /* kernels of a micro-step */
    char path_text[64], library[96], peak_name[300];
    char *choices;
} sgt_cuda_backend;

/* ---- layout.c ---- */
/* Sizes and flat layout from the options; SGT_EUNSUPPORTED names an option that cannot be
 * served. */
int sgt_cuda_decide(sgt_cuda_backend *c, const sgt_backend_options *o, sgt_error *err);
/* Everything's place in the arena: called once to measure (arena NULL) and once with memory behind
 * it. */
void sgt_cuda_lay_out(sgt_cuda_backend *c);
/* The most rows a micro-step could have in so many bytes; 0: none. */
uint32_t sgt_cuda_most_rows(const sgt_backend_options *o, uint64_t bytes);

/* ---- live.c ---- */
/* What the buffers are used for, once memory is laid out; and what that comes to. */
void sgt_cuda_live(sgt_cuda_backend *c);
void sgt_cuda_live_count(const sgt_backend *b, unsigned part, int again,
                         uint64_t in[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS]);
/* The end of a part (live.h): for tests, what is not live any more is overwritten. */
void sgt_cuda_scrub(sgt_cuda_backend *c, unsigned part);
static inline void sgt_cuda_part_ends(sgt_cuda_backend *c, unsigned part)
{
    if (c->o.scrub) sgt_cuda_scrub(c, part);
}

/* ---- plan.c ---- */
int sgt_cuda_plan_products(sgt_cuda_backend *c, sgt_error *err);
int sgt_cuda_choose_gelu(sgt_cuda_backend *c, sgt_error *err); /* once memory is there */
/* Milliseconds of some work on the compute stream, the mean of ten after one; waits. */
int sgt_cuda_time(sgt_cuda_backend *c, void (*work)(sgt_cuda_backend *), float *ms, sgt_error *err);

/* ---- peak.c ---- */
/* Fills in base.peak_flops and what stands beside it; the measurement takes a large product, where
 * there is room. */
void sgt_cuda_find_peak(sgt_cuda_backend *c);

/* ---- attention.c ---- */
int sgt_cuda_choose_attention(sgt_cuda_backend *c, sgt_error *err);
/* cuDNN tried, and own against it; once memory is there */
int sgt_cuda_time_attention(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_attend(sgt_cuda_backend *c, size_t layer, int training);
/* dln (N, C) is the gradient at att; writes dqkv into dwide (N, 3C). */
void sgt_cuda_attend_backward(sgt_cuda_backend *c, size_t layer);

/* ---- forward.c, backward.c ---- */
void sgt_cuda_forward(sgt_cuda_backend *c, int training); /* ids to lnf */
/* Again what the backward pass of this layer needs and forward did not keep. */
void sgt_cuda_forward_again(sgt_cuda_backend *c, size_t layer);
/* lnf to losses; with `training` dlogits in their place too. */
void sgt_cuda_head(sgt_cuda_backend *c, int training);
void sgt_cuda_backward(sgt_cuda_backend *c);

/* ---- ranks.c: all of it nothing where there is one rank ---- */
/* then a bucket a block, an untied head, all vectors */
enum { SGT_BUCKET_EMBEDDINGS, SGT_BUCKET_BLOCKS };
static inline size_t sgt_cuda_buckets(const sgt_cuda_backend *c)
{
    return c->L + 2 + (c->model.untied != 0);
}
static inline size_t sgt_cuda_bucket_vectors(const sgt_cuda_backend *c)
{
    return sgt_cuda_buckets(c) - 1;
}
int sgt_cuda_ranks_open(sgt_cuda_backend *c, sgt_error *err); /* meets the others */
/* what was put on streams is done, or called off after give_up */
void sgt_cuda_ranks_leave(sgt_cuda_backend *c);
/* Whether a step's micro-step `micro` is its last, which adds up gradients over ranks while it
 * computes them. */
int sgt_cuda_ranks_last(const sgt_cuda_backend *c, uint32_t micro);
/* Within that one: its beginning; the gradients of a bucket are complete; its end. */
void sgt_cuda_ranks_begin(sgt_cuda_backend *c);
void sgt_cuda_ranks_reduce(sgt_cuda_backend *c, size_t bucket);
void sgt_cuda_ranks_end(sgt_cuda_backend *c);
/* Before the update: the sums of the control block and the norm over all ranks; after it:
 * everyone's working copies, while gradients are zeroed where `forget` is set. */
void sgt_cuda_ranks_norm(sgt_cuda_backend *c);
void sgt_cuda_ranks_share(sgt_cuda_backend *c, int forget);
/* Floats at .. at + count of the flat arrays, of which `state` is this rank's part: in, where they
 * are its own; out, to every rank, whosever they are. */
int sgt_cuda_ranks_put(sgt_cuda_backend *c, float *state, size_t at, size_t count,
                       const float *from, sgt_error *err);
int sgt_cuda_ranks_get(sgt_cuda_backend *c, const float *state, size_t at, size_t count, float *to,
                       sgt_error *err);

/* ---- trace.c ---- */
/* Where a trace is wanted, the device's part of it is added as its window closes. Before anything
 * is captured. */
int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err);
void sgt_cuda_trace_close(sgt_cuda_backend *c);
/* What is launched from here to the end belongs to a range of that name, "h.LAYER PASS" for a
 * layer: in traces, and in Nsight. They nest; in a graph they stay with what was captured. */
void sgt_cuda_range(sgt_cuda_backend *c, const char *name);
void sgt_cuda_range_layer(sgt_cuda_backend *c, const char *pass, size_t layer);
void sgt_cuda_range_end(sgt_cuda_backend *c);

/* ---- shared by the above ---- */
/* Number `at` of the working copies. */
static inline const void *sgt_cuda_weight(const sgt_cuda_backend *c, size_t at)
{
    return (const unsigned char *)c->copy + at * c->width;
}

/* Between host and device through pinned memory, in pieces, whichever of the two hosts is given;
 * waits. */
int sgt_cuda_stage(sgt_cuda_backend *c, float *device, float *to, const float *from, size_t count,
                   sgt_error *err);

/* What dropout of a site of a layer is; NULL where there is none. */
const sgt_cuda_dropout *sgt_cuda_drop(const sgt_cuda_backend *c, sgt_cuda_dropout *d, size_t layer,
                                      uint32_t site, int training);

/* CUDA behind backend.h; messages as in runtime.h. */
int sgt_cuda_backend_open(sgt_backend **out, const sgt_backend_options *o, sgt_error *err);
/* What it would hold, without a device. */
int sgt_cuda_backend_estimate(const sgt_backend_options *o, sgt_memory_kind kinds[SGT_MEMORY_KINDS],
                              size_t *count, uint64_t *bytes, sgt_error *err);

#endif
