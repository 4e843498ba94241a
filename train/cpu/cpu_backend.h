/* cpu_backend.h: the internals of the CPU backend, for its own files only.
 *
 * B rows of T tokens are N = B*T positions. Loops are divided into tiles whose size depends only on
 * these shapes. Partial sums of tiles are added in the order of the tiles, so results do not depend
 * on the number of threads, to the bit. Nothing is allocated after open.
 *
 * In bf16 and fp16, every operand of a matrix product is rounded as soon as it is computed:
 * weights, LayerNorm outputs, qkv, attention's output, input and output of GELU, and the gradient
 * of each matrix product's output. Sums, the residual stream, softmax, LayerNorm, loss and update
 * are float32. Attention is computed in float32 too, unless our own kernels multiply bfloat16
 * (sgt_kernels_bf16). These kernels also round the probabilities, the gradients of the scores and
 * the incoming gradient.
 *
 * Rounded numbers are kept as float32, unless the CPU itself multiplies bfloat16. In that case
 * weights are packed into bfloat16 once per update. Activations that only matrix products read are
 * kept in bfloat16, and each row is packed as soon as it is computed. The same holds for the
 * gradients of matrix products' outputs, whose column sums are the bias gradients. Attention's
 * output and the last LayerNorm's output have other readers, and are packed just before a matrix
 * product. */
#ifndef SGT_CPU_BACKEND_H
#define SGT_CPU_BACKEND_H

#include "train/backend.h"
#include "loader/base/memory.h"
#include "kernels/muon.h"
#include "train/log/trace.h"

#define SGT_HEAD_ROWS 256      /* rows of logits that are in memory at a time */
#define SGT_OWN_HEAD_ROWS 512  /* rows per call of sgt_head_run; twice as many in bf16 */
#define SGT_PIECE 65536        /* number of floats that one task of the optimizer updates */
#define SGT_UPDATE_FLOATS 2048 /* floats that are updated before their rounded copies are written */
#define SGT_BIAS_COLUMNS 128   /* columns that one task sums for a bias gradient */
#define SGT_EMBED_COLUMNS 64   /* columns of the embeddings' gradients that one task handles */

/* A transformer block: the offsets of its twelve tensors in the flat arrays, and the activations
 * that the forward pass keeps for the backward pass. Blocks that recompute activations share the
 * memory of the first such block. The operands ln1, ln2 and gelu are bfloat16 in bf16, because only
 * matrix products read them. */
typedef struct sgt_cpu_block {
    uint32_t layer;
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS]; /* offsets into params and grads */
    double squares;               /* sum of squares of the gradients of the block's matrices */
    /* number of pieces that an optimizer's pass has updated when this tensor is complete */
    size_t shares[SGT_BLOCK_TENSORS];
    void *ln1, *ln2, *gelu; /* outputs (N, C), (N, C), (N, 4C) */
    float *mean1, *rstd1;   /* statistics of ln1 (N), (N) */
    float *qkv;             /* (N, 3C) */
    /* attention's output (N, C); log-sum-exp of its scores (B, H, T) */
    float *att, *lse;
    float *mid, *mean2, *rstd2; /* x + attention (N, C); statistics of ln2 (N), (N) */
    float *fc;                  /* (N, 4C) */
    float *out;                 /* mid + MLP (N, C): the next block's x */
} sgt_cpu_block;

/* The planned matrix products of one weight: forward, gradient of the input, gradient of the
 * weight. */
typedef struct sgt_cpu_linear {
    sgt_gemm *forward, *dx, *dw[2]; /* dw[0] overwrites the gradient, dw[1] adds to it */
} sgt_cpu_linear;

enum {
    SGT_LINEAR_QKV,
    SGT_LINEAR_PROJ,
    SGT_LINEAR_FC,
    SGT_LINEAR_FCPROJ,
    SGT_LINEAR_BLOCK, /* number of weight matrices of a block */
    SGT_LINEAR_HEAD = SGT_LINEAR_BLOCK,
    /* the head for the last chunk of rows, if that is shorter than the other chunks */
    SGT_LINEAR_HEAD_LAST,
    SGT_LINEARS
};

/* The options, and the sizes derived from them; constant after open. */
typedef struct sgt_cpu_shape {
    /* The caller's options. The pointers to texts, verdicts and recompute_at are used only during
     * open. bf16_moments is 0 unless the optimizer is AdamW; accum is at least 1. */
    sgt_backend_options o;
    const sgt_kernels *k;
    size_t B, T, N, C, H, D, V;
    size_t wpe, lnf_w, lnf_b; /* offsets in the flat arrays; wte's is 0 */
    size_t head_w;            /* offset of the head's weight: wte's if they are tied */
    size_t ldv;         /* stride of the logits' rows in floats: V, padded to a whole vector */
    size_t tile, tiles; /* rows of a tile, which is one task; number of tiles for N rows */
    size_t head_rows, head_last; /* rows of a chunk of logits; rows of the last chunk */
    size_t scratch_floats;       /* floats of each thread's scratch */
    float scale;                 /* attention's 1/sqrt(D) */
    int rounding;                /* 1: operands of matrix products are rounded to `format` */
    sgt_rounding format;
    int bf16;             /* 1: matrix products take bfloat16 operands */
    int attention_rounds; /* 1: attention's kernels round their operands themselves */
    int own_head;         /* 1: sgt_head_run computes the head */
    uint64_t ranks, rank; /* number of ranks; this rank's number */
    uint64_t ranks_here;  /* number of ranks on this machine */
} sgt_cpu_shape;

/* Addresses of the buffers; constant after memory was laid out. */
typedef struct sgt_cpu_buffers {
    sgt_arena arena;
    float *params, *grads; /* flat arrays of all tensors */
    float *received;       /* chunks of other ranks' gradients (ranks.c); NULL with one rank */
    /* moments of the parameters: float, or bfloat16 if optim.bf16_moments is set. v holds only the
     * tensors that have a second moment (sgt_cpu_second) */
    void *m, *v;
    /* params as matrix products read them: params itself, a rounded copy, or a copy in bfloat16 */
    void *weights;
    int32_t *ids, *targets; /* (N), (N) */
    /* (N): index in the row at which each position's document begins; or NULL */
    int32_t *start;
    float *x0;                  /* embeddings (N, C) */
    float *lnf, *meanf, *rstdf; /* the last LayerNorm (N, C), (N), (N) */
    float *logits, *loss;       /* (head_rows, ldv), NULL if own_head; (N) */
    float *dx, *dln; /* gradients of the residual stream (N, C) and of a LayerNorm (N, C) */
    float *dwide;    /* gradients of qkv or of the MLP (N, 4C) */
    /* bf16: packed activations (N, C), output gradients (N, 4C), logits (head_rows, ldv) */
    uint16_t *packed, *packed_dy, *packed_logits;
    float *partial; /* (tiles, 2, C): LayerNorm gradients of each tile */
    float *scratch; /* (threads, scratch_floats): for attention; in bf16 also for a row of C */
    /* (tasks of the embeddings' gradients): how much each task increased the gradients' sum of
     * squares */
    double *grown;
    double *squares; /* (pieces): sums of squares of gradients */
    void *products;  /* scratch memory of matrix products, which run one at a time */
    void *muon;      /* Muon's scratch memory for one matrix; NULL: another optimizer */
} sgt_cpu_buffers;

/* State of the current step. */
typedef struct sgt_cpu_step {
    uint64_t number; /* number of the step, for dropout */
    float dropping;  /* dropout rate of the current pass: 0 in evaluation */
    /* number, among all rows of the step, of this rank's row 0; row b has number row + b*ranks */
    uint64_t row;
    /* 1: no micro-step has run yet, so the contents of the gradients are not valid */
    int fresh;
    sgt_scaler scaler;
    double nominal;   /* factor on each loss, including the loss scale */
    double loss_sum;  /* sum of losses so far */
    uint64_t counted; /* number of targets so far */
    /* sum of squares of the gradient of the head's weight, after the last matrix product that adds
     * to it */
    double head_squares;
    /* sum of squares of wte's gradient; if the head is tied, only the growth since head_squares was
     * set */
    double token_squares;
    /* (N), the caller's array: 1 if no logit is larger than the target's; or NULL */
    uint8_t *greedy;
    uint64_t last; /* number of the step that last_metrics describes */
    sgt_step_metrics last_metrics;
} sgt_cpu_step;

typedef struct sgt_cpu_piece {
    size_t offset, count; /* first float in the flat arrays, and number of floats */
    size_t second;        /* index in buf.v */
    int decay;
    /* 1: the squares of its gradients are summed by the code that computes the gradients */
    int squared;
    int muon;   /* 1: the piece is part of a matrix that Muon updates */
    int first;  /* 1: first piece of its tensor */
    int linear; /* with `muon`: SGT_LINEAR_* of the matrix */
} sgt_cpu_piece;

/* The optimizer's pass over the parameters (update.c), without the matrices that Muon updates. */
typedef struct sgt_cpu_update {
    /* the pieces that this rank updates: all pieces if there is one rank */
    sgt_cpu_piece *pieces;
    /* turn: index of the piece with which a pass begins, so that it ends with the token
     * embedding */
    size_t piece_count, turn;
    int behind;         /* 1: the last pass was deferred, and may not be complete */
    sgt_beside pending; /* the pieces of the deferred pass */
    /* the optimizer's factors for tensors without ([0]) and with ([1]) weight decay */
    sgt_adamw adamw[2];
    sgt_sgd sgd[2];
    /* number of the update, for stochastic rounding of moments (kernels/moments.h) */
    uint64_t draw;
} sgt_cpu_update;

/* Texts and numbers that the backend reports about itself. */
typedef struct sgt_cpu_report {
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* filled in when memory is laid out */
    char level[48], peak_name[128];
    sgt_trace *trace;
} sgt_cpu_report;

typedef struct sgt_cpu_group sgt_cpu_group;

typedef struct sgt_cpu_backend {
    sgt_backend base; /* first, so that a sgt_backend * can be cast to a sgt_cpu_backend * */
    sgt_cpu_shape shape;
    sgt_cpu_buffers buf;
    sgt_cpu_step step;
    sgt_cpu_update update;
    sgt_cpu_report report;
    sgt_cpu_block *blocks;
    /* The first block that recomputes LayerNorm and GELU outputs, the first that recomputes
     * everything, and the last that recomputes anything. The activations of the last one are still
     * in the shared memory when the backward pass begins. */
    sgt_cpu_block *share_cheap, *share_inside, *share_last;
    sgt_cpu_linear linear[SGT_LINEARS];
    sgt_head head;                    /* used if own_head */
    sgt_muon *muon[SGT_LINEAR_BLOCK]; /* one for each shape; NULL: another optimizer */
    sgt_cpu_group *group;             /* the other ranks (ranks.c); NULL with one rank */
} sgt_cpu_backend;

extern const sgt_backend sgt_cpu_calls; /* the backend's functions */
void sgt_cpu_close(sgt_backend *b);
int sgt_cpu_end_step(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
/* Set and return the loss scaler's state; only fp16 scales the loss. */
void sgt_cpu_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
int sgt_cpu_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);

/* Lay out all buffers in buf.arena. Called twice: first to measure, then with memory mapped. */
void sgt_cpu_lay_out(sgt_cpu_backend *c);

/* Implements `live` of backend.h: count the bytes in use in a part of a step (sgt_live). */
void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again,
                        uint64_t within[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS]);
/* Called when a part of a step (sgt_live) has ended. In tests, sgt_cpu_scrub then overwrites the
 * buffers that are no longer in use. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part);
static inline void sgt_cpu_part_ends(sgt_cpu_backend *c, unsigned part)
{
    if (c->shape.o.scrub) sgt_cpu_scrub(c, part);
}

/* Copy ids and targets from a batch. Return the number of targets with a loss. */
uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *batch);
/* Compute lnf from the ids. */
void sgt_cpu_forward(sgt_cpu_backend *c);
/* Parts of the forward pass that recomputation calls again. sgt_cpu_block_inside computes a block
 * up to gelu, from ln1 and the block's input x. It overwrites buf.dln. */
void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x);
void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x,
                       const float *w, const float *b);
void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l);
/* Compute the head from lnf and return the sum of losses. If scale > 0, also compute the gradients
 * of that sum times scale: in dln, and in the gradient of the head's weight. */
double sgt_cpu_head(sgt_cpu_backend *c, double scale);
/* Compute all gradients from dln, the gradient of lnf. */
void sgt_cpu_backward(sgt_cpu_backend *c);

/* sgt_cpu_settle completes a deferred update. sgt_cpu_settle_to completes it up to a tensor of a
 * block, which the forward pass reads next. */
void sgt_cpu_settle(sgt_cpu_backend *c);
void sgt_cpu_settle_to(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor);
/* Fill buf.squares with the sum of squares of each piece's gradients, and return their total.
 * Unless `all` is set, pieces with `squared` count as 0. */
double sgt_cpu_squares(sgt_cpu_backend *c, int all);
/* Return the squared norm of all gradients. Matrix products sum squares in float, which may
 * overflow even if all gradients are finite. In that case the squares are summed again, in
 * double. */
double sgt_cpu_squared_norm(sgt_cpu_backend *c);
/* Return whether updates are deferred. They are not deferred with one thread, which would only do
 * the same work later; with several ranks, which send updated parameters at once; in tests that
 * overwrite unused buffers, because gradients must stay until the update; and with --no-overlap,
 * which measures the gain of deferring. */
static inline int sgt_cpu_defers(const sgt_cpu_backend *c)
{
    return !c->shape.o.scrub && !c->shape.o.no_overlap && !c->group && c->shape.o.threads > 1;
}

/* Return a token's embedding with the pending update applied. The result points into wte if no
 * update is pending, else it is p. p, m and v are memory for C floats each. */
const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v);

/* Return the size of a moment in bytes. */
static inline size_t sgt_cpu_moment_bytes(const sgt_cpu_shape *s)
{
    return s->o.optim.bf16_moments ? sizeof(uint16_t) : sizeof(float);
}
/* Return the address of moment `at` in the flat array m or v. */
static inline void *sgt_cpu_moment(const sgt_cpu_shape *s, void *flat, size_t at)
{
    return (char *)flat + at * sgt_cpu_moment_bytes(s);
}

/* Round n operands in place, if this precision rounds them. */
static inline void sgt_cpu_round(const sgt_cpu_shape *s, float *x, size_t n)
{
    if (s->rounding) s->k->round_to(x, x, n, s->format);
}

/* Return x (N, C) as matrix products read it: x itself, or in bf16 a packed copy in buf.packed. */
const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x);
/* sgt_cpu_weights returns the weights from parameter `offset` on, as matrix products read them.
 * sgt_cpu_take_weights updates `count` of them from params. */
const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset);
void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count);

/* Write dropout(x) to out, for positions first .. first + n - 1; out and x are (n, C). */
void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out,
                  const float *x, size_t first, size_t n);
/* Return, for row b, the array of the index at which each position's document begins; NULL if
 * attention sees the whole row. */
static inline const int32_t *sgt_cpu_start(const sgt_cpu_backend *c, size_t b)
{
    return c->shape.o.documents ? c->buf.start + b * c->shape.T : NULL;
}
/* Return the dropout parameters of attention in head i % H of row i / H. */
sgt_dropout sgt_cpu_head_drop(const sgt_cpu_backend *c, const sgt_cpu_block *l, size_t i);

/* Return the first row of tile t, and its number of rows in *rows. */
static inline size_t sgt_cpu_tile(const sgt_cpu_shape *s, size_t t, size_t *rows)
{
    size_t first = t * s->tile;
    *rows = s->N - first < s->tile ? s->N - first : s->tile;
    return first;
}

/* ---- Muon (update.c) ---- */

/* Return the number SGT_LINEAR_* of a tensor that Muon updates, or -1. */
int sgt_cpu_by_muon(const sgt_cpu_shape *s, size_t tensor);
/* Return the index in buf.v of the first tensor from `tensor` on that has second moments; if there
 * is none, return the number of floats in buf.v. Matrices that Muon updates have no second
 * moments. */
size_t sgt_cpu_second(const sgt_cpu_shape *s, size_t tensor);
/* Return the size of buf.muon in bytes. */
size_t sgt_cpu_muon_memory(const sgt_cpu_shape *s);
/* Plan Muon's updates, after memory was laid out. Does nothing for other optimizers. */
int sgt_cpu_muon_plan(sgt_cpu_backend *c, sgt_error *err);
/* Update the matrices among this rank's pieces by Muon. These updates are not deferred: a deferred
 * update is overlapped with matrix products, but Muon's updates are matrix products themselves. */
void sgt_cpu_muon_update(sgt_cpu_backend *c, double lr, double scale);

/* ---- ranks.c: a training step on several CPU ranks. Each rank computes its own rows of the batch.
 * The optimizer's state and work are divided among the ranks, as in ZeRO-1:
 *
 *   - The flat arrays are cut into buckets, in the order in which the backward pass completes their
 *     gradients: the tensors after the blocks, each block from the last to the first, the
 *     embeddings. Every rank owns a part of every bucket.
 *   - Reduce-scatter, in a step's last micro-step: each rank sums all ranks' gradients of the parts
 *     that it owns, in the order of ranks. A communication thread does this bucket by bucket, while
 *     the backward pass continues.
 *   - Update: each rank updates only its own parts.
 *   - All-gather: each rank receives the parameters that the other ranks updated. All ranks end
 *     with the same bits.
 *
 * Gradients and parameters are sent by `swap` of base/ranks.h, that is, by MPI. With one rank,
 * c->group is NULL: sgt_cpu_ranks_reduce and _gather must not be called, and the other calls do
 * nothing. Collective calls must be made by all ranks, in the same order. ---- */

/* Create c->group if r is not NULL, and set the ranks in c->shape. */
int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err);

/* Return how many floats c->buf.received needs: room for a chunk of gradients from each rank. */
size_t sgt_cpu_ranks_received(const sgt_cpu_shape *s);

/* Divide the buckets among the ranks, drop the pieces of c->update.pieces that other ranks own, and
 * start the communication thread. Collective. */
int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err);
void sgt_cpu_ranks_close(sgt_cpu_backend *c);

/* Call sgt_cpu_ranks_begin when a micro-step begins, and sgt_cpu_ranks_ready when the gradients of
 * the next bucket are complete. */
void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro);
void sgt_cpu_ranks_ready(sgt_cpu_backend *c);

/* Finish the reduce-scatter, before the update. Afterwards the gradients of c->update.pieces are
 * sums over all ranks, and c->step.loss_sum, c->step.counted and *squares cover the whole step.
 * Collective. */
int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err);

/* All-gather the parameters after the update. `updated` is 0 if the update was skipped, so that the
 * parameters did not change. Collective. */
int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err);

/* Fill to[count] with the floats of a flat array from index `at` on, each from the rank that owns
 * it. Before the call, `to` must hold this rank's copy. Collective. */
int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err);

#endif
