/* cpu_backend.h: the internals of the CPU backend, for its own files only.
 *
 * B rows of T tokens are N = B*T positions. Loops are cut into tiles whose size depends on these
 * shapes alone. Sums over tiles are added in the order of the tiles, so the number of threads
 * changes no bit. Nothing is allocated after open.
 *
 * In bf16 and fp16, every operand of a matrix product is rounded as soon as it is computed:
 * weights, LayerNorm outputs, qkv, attention's output, input and output of GELU, and the gradient
 * of each product's output. Sums, the residual stream, softmax, LayerNorm, loss and update are
 * float32. The inside of attention is float32 too, unless our own kernels multiply bfloat16
 * (sgt_kernels_bf16). They also round its probabilities, the gradients of its scores and the
 * incoming gradient.
 *
 * Rounded numbers are kept as float32, unless the CPU itself multiplies bfloat16. Then weights are
 * packed into bfloat16 once per update. Activations that only products read are kept in bfloat16,
 * and each row is packed as soon as it is computed. So are the gradients of products' outputs, from
 * which bias gradients are summed. Attention's output and the last LayerNorm have other readers,
 * and are packed just before a product. */
#ifndef SGT_CPU_BACKEND_H
#define SGT_CPU_BACKEND_H

#include "train/backend.h"
#include "loader/base/memory.h"
#include "kernels/muon.h"
#include "train/log/trace.h"

#define SGT_HEAD_ROWS 256      /* rows of logits that exist at a time */
#define SGT_OWN_HEAD_ROWS 512  /* rows of a call of sgt_head_run; twice as many in bf16 */
#define SGT_PIECE 65536        /* floats that one task of the optimizer updates */
#define SGT_UPDATE_FLOATS 2048 /* floats updated before their rounded copies are made */
#define SGT_BIAS_COLUMNS 128   /* columns that one task sums for a bias gradient */
#define SGT_EMBED_COLUMNS 64   /* columns of the embeddings' gradients that one task adds to */

/* A transformer block: the places of its twelve tensors in the flat arrays, and the activations
 * that the forward pass keeps for the backward pass. Blocks that recompute activations share the
 * memory of the first such block. The operands ln1, ln2 and gelu are bfloat16 in bf16, because only
 * products read them. */
typedef struct sgt_cpu_block {
    uint32_t layer;
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];     /* offsets into params and grads */
    double squares;                   /* sum of squares of the gradients of the block's matrices */
    size_t shares[SGT_BLOCK_TENSORS]; /* pieces that a pass has updated when this tensor is done */
    void *ln1, *ln2, *gelu;           /* outputs (N, C), (N, C), (N, 4C) */
    float *mean1, *rstd1;             /* statistics of ln1 (N), (N) */
    float *qkv;                       /* (N, 3C) */
    float *att, *lse;                 /* attention's output (N, C); its lse (B, H, T) */
    float *mid, *mean2, *rstd2;       /* x + attention (N, C); statistics of ln2 (N), (N) */
    float *fc;                        /* (N, 4C) */
    float *out;                       /* mid + MLP (N, C): the next block's x */
} sgt_cpu_block;

/* The planned products of one weight: forward, gradient of its input, gradient of the weight. */
typedef struct sgt_cpu_linear {
    sgt_gemm *forward, *dx, *dw[2]; /* dw[0] overwrites the gradient, dw[1] adds to it */
} sgt_cpu_linear;

enum {
    SGT_LINEAR_QKV,
    SGT_LINEAR_PROJ,
    SGT_LINEAR_FC,
    SGT_LINEAR_FCPROJ,
    SGT_LINEAR_BLOCK, /* number of the products of a block */
    SGT_LINEAR_HEAD = SGT_LINEAR_BLOCK,
    SGT_LINEAR_HEAD_LAST, /* the head of the last chunk of rows, if it is shorter than the rest */
    SGT_LINEARS
};

/* The options, and the sizes that open derives from them; constant afterwards. */
typedef struct sgt_cpu_shape {
    /* The caller's options. Its texts, verdicts and recompute_at are used only during open. Without
     * AdamW, bf16_moments is 0; accum is at least 1. */
    sgt_backend_options o;
    const sgt_kernels *k;
    size_t B, T, N, C, H, D, V;
    size_t wpe, lnf_w, lnf_b; /* offsets in the flat arrays; wte's is 0 */
    size_t head_w;            /* offset of the head's weight: wte's if they are tied */
    size_t ldv;         /* stride of the logits' rows in floats: V, padded to a whole vector */
    size_t tile, tiles; /* rows of a tile, one task of a thread; tiles that cover N */
    size_t head_rows, head_last; /* rows of a chunk of logits; rows of the last chunk */
    size_t scratch_floats;       /* floats of each thread's scratch */
    float scale;                 /* attention's 1/sqrt(D) */
    int rounding;                /* operands of products are rounded to `format` */
    sgt_rounding format;
    int bf16;             /* products take bfloat16 operands */
    int attention_rounds; /* attention's kernels round their operands themselves */
    int own_head;         /* sgt_head_run computes the head */
    uint64_t ranks, rank; /* number of ranks; this rank's number */
    uint64_t ranks_here;  /* number of ranks on this machine */
} sgt_cpu_shape;

/* Where each buffer lies; constant once memory is laid out. */
typedef struct sgt_cpu_buffers {
    sgt_arena arena;
    float *params, *grads; /* flat arrays of all tensors */
    float *received;       /* chunks of other ranks' gradients (ranks.c); NULL with one rank */
    /* their moments: float, or with optim.bf16_moments bfloat16; v lacks what has no second moment
     * (sgt_cpu_second) */
    void *m, *v;
    void *weights; /* params as products read them: params itself, rounded, or in bfloat16 */
    int32_t *ids, *targets;     /* (N), (N) */
    int32_t *start;             /* (N): where in its row each position's document begins; or NULL */
    float *x0;                  /* embeddings (N, C) */
    float *lnf, *meanf, *rstdf; /* the last LayerNorm (N, C), (N), (N) */
    float *logits, *loss;       /* (head_rows, ldv), NULL if own_head; (N) */
    float *dx, *dln; /* gradients of the residual stream (N, C) and of a LayerNorm (N, C) */
    float *dwide;    /* gradients of qkv or of the MLP (N, 4C) */
    /* bf16: packed activations (N, C), output gradients (N, 4C), logits (head_rows, ldv) */
    uint16_t *packed, *packed_dy, *packed_logits;
    float *partial;  /* (tiles, 2, C): LayerNorm gradients of each tile */
    float *scratch;  /* (threads, scratch_floats): for attention; in bf16 also for a row of C */
    double *grown;   /* (tasks of the embeddings' gradients): growth of the sum of squares */
    double *squares; /* (pieces): sums of squares of gradients */
    void *products;  /* scratch of the products, which run one at a time */
    void *muon;      /* Muon's work on one matrix at a time; NULL: another optimizer */
} sgt_cpu_buffers;

/* State of the current step. */
typedef struct sgt_cpu_step {
    uint64_t number; /* the step's number, for dropout */
    float dropping;  /* dropout rate of the current pass: 0 in evaluation */
    uint64_t row;    /* number of this rank's row 0 in the whole step; row b is row + b*ranks */
    int fresh;       /* no micro-step has run yet, so the gradients hold nothing */
    sgt_scaler scaler;
    double nominal;      /* factor on each loss, including the loss scale */
    double loss_sum;     /* sum of losses so far */
    uint64_t counted;    /* number of targets so far */
    double head_squares; /* sum of squares of the head's weight gradient after its last product */
    /* sum of squares of wte's gradient; if tied, only its growth since head_squares was set */
    double token_squares;
    uint8_t *greedy; /* (N), the caller's: whether the target's logit is the largest; or NULL */
    uint64_t last;   /* the step that last_metrics describes */
    sgt_step_metrics last_metrics;
} sgt_cpu_step;

typedef struct sgt_cpu_piece {
    size_t offset, count; /* extent in the flat arrays, in floats */
    size_t second;        /* place in buf.v */
    int decay;
    int squared; /* 1: its gradients' squares are summed where they are computed */
    int muon;    /* Muon updates the matrix that this is a part of */
    int first;   /* the tensor's first piece */
    int linear;  /* with `muon`: SGT_LINEAR_* of the matrix */
} sgt_cpu_piece;

/* The optimizer's pass over the parameters (update.c), which leaves out Muon's. */
typedef struct sgt_cpu_update {
    sgt_cpu_piece *pieces;    /* the pieces that this rank updates: all, if it is alone */
    size_t piece_count, turn; /* turn: where a pass begins, to end with the token embedding */
    int behind;               /* the last pass was deferred, and may not be complete */
    sgt_beside pending;       /* the pieces of the deferred pass */
    sgt_adamw adamw[2];       /* the optimizer's factors, without and with weight decay */
    sgt_sgd sgd[2];
    uint64_t draw; /* of the update, to round moments at random (kernels/moments.h) */
} sgt_cpu_update;

/* What the backend reports about itself. */
typedef struct sgt_cpu_report {
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* filled when memory is laid out */
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
     * everything, and the last that recomputes anything. The last one's activations are still in
     * the shared memory when the backward pass begins. */
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

/* `live` of backend.h: count the bytes in use in a part of a step (sgt_live). */
void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again,
                        uint64_t within[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS]);
/* Note that a part of a step (sgt_live) has ended. In tests, sgt_cpu_scrub then overwrites the
 * buffers that are no longer in use. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part);
static inline void sgt_cpu_part_ends(sgt_cpu_backend *c, unsigned part)
{
    if (c->shape.o.scrub) sgt_cpu_scrub(c, part);
}

/* Copy ids and targets from a batch. Return the number of targets that count. */
uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *batch);
/* Compute lnf from the ids. */
void sgt_cpu_forward(sgt_cpu_backend *c);
/* Parts of the forward pass that recomputation calls again. block_inside computes a block from ln1
 * and its input x up to gelu, and overwrites buf.dln. */
void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x);
void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x,
                       const float *w, const float *b);
void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l);
/* Return the sum of losses from lnf. If scale > 0, also compute the gradients of sum * scale, in
 * dln and in the gradient of the head's weight. */
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
/* Return the squared norm of all gradients. Products sum their squares in float, which may overflow
 * although all gradients are finite; then the squares are summed again, in double. */
double sgt_cpu_squared_norm(sgt_cpu_backend *c);
/* Return whether updates are deferred. They are not with one thread, which would only do the same
 * work later. They are not with several ranks, which send updated parameters at once.
 * They are not in tests that overwrite unused buffers, because gradients must stay until the
 * update. They are not with --no-overlap, which measures what deferring gains. */
static inline int sgt_cpu_defers(const sgt_cpu_backend *c)
{
    return !c->shape.o.scrub && !c->shape.o.no_overlap && !c->group && c->shape.o.threads > 1;
}

/* Return a token's embedding with the pending update applied. It is in wte if no update is pending,
 * else in p. p, m and v are memory for C floats each. */
const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v);

/* Return the bytes of a moment. */
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

/* Return x (N, C) as the products read it: x itself, or in bf16 its packed copy in buf.packed. */
const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x);
/* Return the weights from parameter `offset` on, as products read them. take_weights computes
 * `count` of them again from params. */
const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset);
void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count);

/* Write dropout(x) to out, for positions first .. first + n - 1; out and x are (n, C). */
void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out,
                  const float *x, size_t first, size_t n);
/* Return where the documents of row b begin, or NULL if attention sees the whole row. */
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
/* Return the place in buf.v of the first tensor from `tensor` on that has second moments, or the
 * number of floats in buf.v. Matrices that Muon updates have none. */
size_t sgt_cpu_second(const sgt_cpu_shape *s, size_t tensor);
/* Return the bytes of buf.muon. */
size_t sgt_cpu_muon_memory(const sgt_cpu_shape *s);
/* Plan the updates, once memory is laid out. Nothing is to be done for another optimizer. */
int sgt_cpu_muon_plan(sgt_cpu_backend *c, sgt_error *err);
/* Update the matrices in this rank's pieces, at once: deferred updates run beside products, and
 * these consist of products. */
void sgt_cpu_muon_update(sgt_cpu_backend *c, double lr, double scale);

/* ---- ranks.c: a training step on several CPU ranks. Each rank computes its own rows of the batch. The
 * optimizer is sharded, as in ZeRO-1:
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
 * Gradients and parameters travel by the swap call of base/ranks.h, that is by MPI. With one rank
 * c->group is NULL; then sgt_cpu_ranks_reduce and _gather must not be called, and the other calls
 * do nothing. Collective calls must be made by all ranks, in the same order. ---- */

/* Create c->group if r is not NULL, and set what c->shape says about ranks. */
int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err);

/* Return how many floats c->buf.received needs: room for a chunk of gradients from each rank. */
size_t sgt_cpu_ranks_received(const sgt_cpu_shape *s);

/* Divide the buckets among the ranks, drop the pieces of c->update.pieces that other ranks own, and
 * start the communication thread. Collective. */
int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err);
void sgt_cpu_ranks_close(sgt_cpu_backend *c);

/* begin: a micro-step begins. ready: the gradients of the next bucket are complete. */
void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro);
void sgt_cpu_ranks_ready(sgt_cpu_backend *c);

/* Finish the reduce-scatter, before the update. Afterwards the gradients of c->update.pieces are
 * sums over all ranks, and c->step.loss_sum, c->step.counted and *squares cover the whole step.
 * Collective. */
int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err);

/* All-gather the parameters after the update. `updated` is 0 if the step was dropped and left them
 * unchanged. Collective. */
int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err);

/* Fill `to` (`count` floats) with a flat array's values from float `at` on, each from the rank that
 * owns it. Before the call, `to` holds this rank's copy. Collective. */
int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err);

#endif
