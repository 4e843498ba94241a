/* cpu_backend.h: the inside of the CPU backend, shared by its own files only.
 *
 * B rows of T tokens are N = B*T positions. Loops are cut into tiles by these shapes alone, and
 * sums over tiles are added in the order of the tiles, so the number of threads changes no bit.
 * Nothing is allocated after open.
 *
 * In bf16 and fp16, every operand of a matrix product is rounded where it is made: weights,
 * LayerNorm outputs, qkv, attention's output, both sides of GELU, and the gradient of each
 * product's output. Sums, the residual stream, softmax, LayerNorm, loss and update are float32. So
 * is the inside of attention, unless our own kernels multiply bfloat16 (sgt_kernels_bf16): they
 * also round its probabilities, the gradients of its scores and the incoming gradient. Rounded
 * numbers are kept as float32, unless the CPU itself multiplies bfloat16. Then weights are packed
 * into bfloat16 once an update. What only products read is kept in bfloat16, packed row by row as
 * soon as a row is computed; so are the gradients of products' outputs, from which bias gradients
 * are summed. Attention's output and the last LayerNorm have other readers, and are packed before a
 * product. */
#ifndef SGT_CPU_BACKEND_H
#define SGT_CPU_BACKEND_H

#include "backend.h"
#include "base/arena.h"
#include "log/trace.h"
#include "memory/live.h"

#define SGT_HEAD_ROWS 256      /* rows of logits that exist at a time */
#define SGT_OWN_HEAD_ROWS 512  /* the same for our own head (sgt_head_run); twice that in bf16 */
#define SGT_PIECE 65536        /* floats that one task of the optimizer updates */
#define SGT_UPDATE_FLOATS 2048 /* floats updated before their rounded copies are made */
#define SGT_CPU_RANKS 1024     /* ranks at most */
#define SGT_BIAS_COLUMNS 128   /* columns that one task sums for a bias gradient */
#define SGT_EMBED_COLUMNS 64   /* columns of the embeddings' gradients that one task adds to */

/* A transformer block: its twelve tensors' places in the flat arrays, and the activations that the
 * forward pass keeps for the backward pass. Blocks that recompute activations share the memory of
 * the first such block. Operands (ln1, ln2, gelu) are bfloat16 in bf16: only products read them. */
typedef struct sgt_cpu_block {
    uint32_t layer;
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];     /* offsets into params and grads */
    double squares;                   /* sum of squares of its matrices' gradients */
    size_t shares[SGT_BLOCK_TENSORS]; /* pieces of an update up to and including this tensor's */
    void *ln1, *ln2, *gelu;           /* (N, C), (N, C), (N, 4C) */
    float *mean1, *rstd1;             /* (N), (N) */
    float *qkv;                       /* (N, 3C) */
    float *att, *lse;                 /* (N, C), (B, H, T) */
    float *mid, *mean2, *rstd2;       /* x + attention (N, C); statistics of ln2 (N), (N) */
    float *fc;                        /* (N, 4C) */
    float *out;                       /* mid + MLP (N, C): the next block's x */
} sgt_cpu_block;

/* The products of a weight: with its input, forward; backward to the input and to the weight. */
typedef struct sgt_cpu_linear {
    sgt_gemm *forward, *dx, *dw[2]; /* dw[0] writes, dw[1] adds */
} sgt_cpu_linear;

enum {
    SGT_LINEAR_QKV,
    SGT_LINEAR_PROJ,
    SGT_LINEAR_FC,
    SGT_LINEAR_FCPROJ,
    SGT_LINEAR_HEAD,
    SGT_LINEAR_HEAD_LAST, /* the last chunk of rows, if it is shorter than the others */
    SGT_LINEARS
};

/* What open decides; constant from then on. */
typedef struct sgt_cpu_shape {
    sgt_model model;
    sgt_optim optim;
    const sgt_kernels *k;
    int threads;
    size_t B, T, N, C, H, D, V;
    size_t wpe, lnf_w, lnf_b;    /* offsets in the flat arrays; wte's is 0 */
    size_t head_w;               /* wte's offset, or the head's own */
    size_t ldv;                  /* floats from row to row of the logits: V, padded to a vector */
    size_t tile, tiles;          /* rows of a task; number of tasks that cover N */
    size_t head_rows, head_last; /* rows of a chunk of logits; rows of the last chunk */
    size_t scratch_floats;       /* of a thread's scratch */
    float scale;                 /* attention's 1/sqrt(D) */
    int ignoring;                /* targets of the id `ignore` have no loss */
    int32_t ignore;
    int documents; /* masked from one another in attention; each begins with `eot` */
    int32_t eot;
    int rounding; /* operands of products are rounded to `format` */
    sgt_rounding format;
    int bf16;             /* products take bfloat16 */
    int attention_rounds; /* attention's kernels pack their operands themselves */
    int own_head;         /* the head is sgt_head_run */
    int scaling;          /* the loss is scaled: fp16 */
    double skip_spikes;
    float dropout;        /* rate in training */
    uint64_t seed;        /* of dropout */
    uint64_t accum;       /* micro-steps of a step */
    uint64_t ranks, rank; /* number of ranks; number of this one */
    int sharing;          /* ranks share memory: all are on this machine */
    int scrub;            /* for tests: overwrite buffers that are no longer in use (live.h) */
} sgt_cpu_shape;

/* Where everything lies; constant once memory is laid out. */
typedef struct sgt_cpu_buffers {
    sgt_arena arena;
    sgt_arena common; /* seen by all ranks of a machine: parameters, moments, all gradients */
    float *params, *grads, *m, *v; /* flat */
    void *weights;          /* what products read: params, or these rounded, or in bfloat16 */
    int32_t *ids, *targets; /* (N), (N) */
    int32_t *start; /* (N): where in its row each position's document begins; NULL: no documents */
    float *x0;      /* embeddings (N, C) */
    float *lnf, *meanf, *rstdf; /* the last LayerNorm (N, C), (N), (N) */
    float *logits, *loss;       /* (head_rows, ldv), unless own_head; (N) */
    float *dx, *dln;            /* gradients of the residual stream (N, C), of a LayerNorm (N, C) */
    float *dwide;               /* gradients of qkv or of the MLP (N, 4C) */
    uint16_t *packed, *packed_dy, *packed_logits; /* bf16: (N, C), (N, 4C), (head_rows, ldv) */
    float *partial;  /* (tiles, 2, C): LayerNorm gradients of each tile */
    float *scratch;  /* (threads, scratch_floats): for attention; in bf16 also for a row of C */
    double *grown;   /* (tasks of the embeddings' gradients): growth of the sum of squares */
    double *squares; /* (pieces): sums of squares of gradients */
    void *products;  /* scratch of all products, which take turns */
} sgt_cpu_buffers;

/* The step that runs. */
typedef struct sgt_cpu_step {
    uint64_t number; /* for dropout */
    float dropping;  /* dropout's rate in the pass that runs: 0 in evaluation */
    uint64_t row;    /* this rank's row 0 of the micro-step, among the step's; row b is + b*ranks */
    int fresh;       /* no micro-step has run yet: gradients hold nothing */
    sgt_scaler scaler;
    double nominal;       /* what each loss was multiplied by, loss scale included */
    double loss_sum;      /* of the step so far */
    uint64_t counted;     /* targets so far */
    double head_squares;  /* sum of squares of the head's weight gradient after its last product */
    double token_squares; /* what wte's gradient adds to that: if tied, its growth since then */
    uint8_t *greedy;      /* (N), the caller's: whether a target's logit is the largest; or NULL */
    uint64_t last;        /* the step that last_metrics is about */
    sgt_step_metrics last_metrics;
} sgt_cpu_step;

typedef struct sgt_cpu_piece {
    size_t offset, count; /* floats of the flat arrays */
    int decay;
    int squared; /* its squares are summed where the gradient is made: matrices and wte */
} sgt_cpu_piece;

/* The optimizer's pass (update.c). */
typedef struct sgt_cpu_update {
    sgt_cpu_piece *pieces;    /* with several ranks, this rank's own */
    size_t piece_count, turn; /* a pass begins with piece `turn`; the token embedding is its last */
    int behind;               /* the last pass was deferred, and may not be complete */
    sgt_beside pending;       /* its pieces */
    sgt_adamw adamw[2];       /* its factors, without weight decay and with */
    sgt_sgd sgd[2];
} sgt_cpu_update;

/* What the backend tells about itself. */
typedef struct sgt_cpu_report {
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* once memory is laid out */
    char level[48], peak_name[128];
    sgt_trace *trace;
} sgt_cpu_report;

typedef struct sgt_cpu_group sgt_cpu_group;

typedef struct sgt_cpu_backend {
    sgt_backend base; /* first: a sgt_backend * is a sgt_cpu_backend * */
    sgt_cpu_shape shape;
    sgt_cpu_buffers buf;
    sgt_cpu_step step;
    sgt_cpu_update update;
    sgt_cpu_report report;
    sgt_cpu_block *blocks;
    /* The first block that recomputes LayerNorm and GELU outputs, the first that recomputes all,
     * and the last that recomputes anything, whose activations are still in that memory. */
    sgt_cpu_block *share_cheap, *share_inside, *share_last;
    sgt_cpu_linear linear[SGT_LINEARS];
    sgt_head head;        /* if own_head */
    sgt_cpu_group *group; /* of ranks.h; NULL: one rank */
} sgt_cpu_backend;

extern const sgt_backend sgt_cpu_calls; /* its functions */
void sgt_cpu_close(sgt_backend *b);
int sgt_cpu_end_step(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
/* For fp16 alone. */
void sgt_cpu_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
int sgt_cpu_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);

/* Measure base.peak_flops: 15 ms, or up to 100 ms if other programs use the cores. */
void sgt_cpu_find_peak(sgt_cpu_backend *c);

/* Lay everything out in buf.arena: once to measure, and once with memory behind it. */
void sgt_cpu_lay_out(sgt_cpu_backend *c);

/* Say what each buffer is used for, after layout; and count what that comes to. */
void sgt_cpu_live(sgt_cpu_backend *c);
void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again,
                        uint64_t within[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS]);
/* A part of a step ends (live.h): in tests, overwrite what is no longer in use. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part);
static inline void sgt_cpu_part_ends(sgt_cpu_backend *c, unsigned part)
{
    if (c->shape.scrub) sgt_cpu_scrub(c, part);
}

/* Copy ids and targets from a batch; return how many targets count. */
uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *batch);
/* Compute lnf from ids. */
void sgt_cpu_forward(sgt_cpu_backend *c);
/* Parts of it that recomputation calls again. Of a block, from ln1 and its input x to gelu; buf.dln
 * is overwritten. */
void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x);
void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x,
                       const float *w, const float *b);
void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l);
/* Return the sum of losses from lnf; with scale > 0 also compute the gradients of sum * scale, in
 * dln and the head's weight. */
double sgt_cpu_head(sgt_cpu_backend *c, double scale);
/* Compute all gradients from dln, that of lnf. */
void sgt_cpu_backward(sgt_cpu_backend *c);

/* Complete a deferred update: all of it, or up to a tensor of a block, which the forward pass reads
 * next. */
void sgt_cpu_settle(sgt_cpu_backend *c);
void sgt_cpu_settle_to(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor);
/* Fill buf.squares and return their sum: of all pieces, or of those that no product has squared. */
double sgt_cpu_squares(sgt_cpu_backend *c, int all);
int sgt_cpu_defers(const sgt_cpu_backend *c); /* whether updates are deferred at all */
/* Return a token's embedding as the last update makes it; p, m and v are room for C floats. */
const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v);

/* Round operands in place, if they are rounded at all. */
static inline void sgt_cpu_round(const sgt_cpu_shape *s, float *x, size_t n)
{
    if (s->rounding) s->k->round_to(x, x, n, s->format);
}

/* Return x (N, C) as products take it: itself, or in bf16 packed into buf.packed. */
const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x);
/* Return the weights from parameter `offset` on; make `count` of them anew from params. */
const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset);
void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count);

/* out = dropout(x) for positions first .. first + n - 1; out and x (n, C) are theirs. */
void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out,
                  const float *x, size_t first, size_t n);
/* Where the documents of row b begin; NULL: attention sees all of the row. */
static inline const int32_t *sgt_cpu_start(const sgt_cpu_backend *c, size_t b)
{
    return c->shape.documents ? c->buf.start + b * c->shape.T : NULL;
}
/* What attention drops in head i of B*H. */
sgt_dropout sgt_cpu_head_drop(const sgt_cpu_backend *c, const sgt_cpu_block *l, size_t i);

/* Return tile t's first row, and in *rows how many rows it has. */
static inline size_t sgt_cpu_tile(const sgt_cpu_shape *s, size_t t, size_t *rows)
{
    size_t first = t * s->tile;
    *rows = s->N - first < s->tile ? s->N - first : s->tile;
    return first;
}

#endif
