/* cpu_backend.h: the inside of the CPU backend, shared by its files and by nobody else.
 *
 * B rows of T tokens are N = B*T positions. Every loop is cut into tiles by these shapes alone and every sum over tiles
 * is made in the order of the tiles, so that the number of threads changes no bit. Nothing is allocated after open.
 *
 * In bf16 and fp16 every operand of a matrix product is rounded where it is made: weights, LayerNorm outputs, qkv,
 * attention's output, both sides of GELU, and the gradients of each product's output. Sums, the residual stream,
 * softmax, LayerNorm, loss and update are float32, and so is attention's inside, but where products of bfloat16 are our
 * own: its probabilities, the gradients of its scores and the gradient that comes in are rounded too before they are
 * multiplied (sgt_kernels_bf16). Rounded numbers are kept as float32, unless the CPU multiplies bfloat16 by itself.
 * Then products take that: weights are packed into it once an update; what products alone read is kept in it, each
 * row packed as soon as it is computed, and so are products' output gradients, which the bias's gradient sums as such.
 * Attention's output and the last LayerNorm have other readers too, and are packed before products. */
#ifndef SGT_CPU_BACKEND_H
#define SGT_CPU_BACKEND_H

#include "backend.h"
#include "base/arena.h"
#include "memory/live.h"
#include "log/trace.h"

#define SGT_HEAD_ROWS 256     /* rows of logits that exist at a time */
#define SGT_OWN_HEAD_ROWS 512 /* of what stands for them with our own products; twice that in bf16 */
#define SGT_PIECE 65536       /* floats that one task of the optimizer updates */
#define SGT_CPU_RANKS 1024    /* at most */
#define SGT_UPDATE_FLOATS 2048 /* of those, before their copies are made where the kernel makes none */
#define SGT_BIAS_COLUMNS 128  /* columns that one task sums for a bias gradient */
#define SGT_EMBED_COLUMNS 64  /* of the embeddings' gradients that one task adds to */

/* One block: its twelve tensors' places in the flat arrays, and what its forward pass leaves for the backward pass.
 * What is computed again lies in the memory of the first block that does so. */
typedef struct sgt_cpu_block {
    uint32_t layer;
    sgt_recompute recompute;
    size_t at[SGT_BLOCK_TENSORS];     /* offsets into params and grads */
    double squares;                   /* of the gradients of its matrices */
    size_t shares[SGT_BLOCK_TENSORS]; /* of an update, until this tensor and those before it are new */
    void *ln1, *ln2, *gelu;           /* (N, C), (N, C), (N, 4C): for products alone, in bf16 bfloat16 */
    float *mean1, *rstd1;             /* (N), (N) */
    float *qkv;                       /* (N, 3C) */
    float *att, *lse;                 /* (N, C), (B, H, T) */
    float *mid, *mean2, *rstd2;       /* x + attention (N, C), of its LayerNorm ln2 (N), (N) */
    float *fc;                        /* (N, 4C) */
    float *out;                       /* mid + MLP (N, C): the next block's x */
} sgt_cpu_block;

/* A weight's product with its input, forward; and backward to the input and to the weight, writing or adding. */
typedef struct sgt_cpu_linear {
    sgt_gemm *forward, *dx, *dw[2]; /* dw[0] writes, dw[1] adds */
} sgt_cpu_linear;

enum {
    SGT_LINEAR_QKV, SGT_LINEAR_PROJ, SGT_LINEAR_FC, SGT_LINEAR_FCPROJ,
    SGT_LINEAR_HEAD, SGT_LINEAR_HEAD_LAST, /* a whole chunk of rows, and the last one where it has fewer */
    SGT_LINEARS
};

typedef struct sgt_cpu_piece {
    size_t offset, count; /* floats of the flat arrays */
    int decay;
    int squared;          /* its gradient's squares are summed where the gradient is made: a product's, and wte's */
} sgt_cpu_piece;

typedef struct sgt_cpu_group sgt_cpu_group;

typedef struct sgt_cpu_backend {
    sgt_backend base; /* first: a sgt_backend * is a sgt_cpu_backend * */
    sgt_model model;
    sgt_optim optim;
    const sgt_kernels *k;
    int threads;
    size_t B, T, N, C, H, D, V;
    size_t wpe, lnf_w, lnf_b;    /* offsets in the flat arrays; wte's is 0 */
    size_t head_w;               /* wte's, or the head's own */
    /* Whose LayerNorm and GELU outputs, and whose whole inside, serve all blocks that compute those again: the first
     * such blocks. And the last that computes anything again: the backward pass finds its own still there. */
    sgt_cpu_block *share_cheap, *share_inside, *share_last;
    int ignoring;
    int32_t ignore;
    int rounding;                /* operands of products are rounded to `format` */
    sgt_rounding format;
    int bf16;                    /* products take bfloat16 */
    int attention_rounds;        /* and so do attention's, which pack their operands themselves */
    int scaling;                 /* the loss is scaled: fp16 */
    double skip_spikes;
    float dropout;               /* of a training step */
    uint64_t seed;               /* of dropout */
    float scale;                 /* attention's 1/sqrt(D) */
    int documents;               /* masked from one another in attention: each begins with `eot` */
    int32_t eot;
    size_t ldv;                  /* floats from row to row of the logits: V, padded to a vector */
    size_t tile, tiles;          /* rows of a task, and how many tasks cover N */
    size_t head_rows, head_last; /* rows of a chunk of logits, and of the last chunk */

    sgt_arena arena;
    sgt_arena common; /* ranks of one machine: parameters, moments and everyone's gradients, in memory that all see */
    int sharing;      /* there are such ranks */
    sgt_cpu_group *group; /* of ranks.h; NULL: one rank */
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    sgt_live live;               /* once there is memory */
    int scrub;
    char level[48], peak_name[128];
    size_t kinds;

    float *params, *grads, *m, *v; /* flat */
    void *weights;                 /* params, or them rounded, or in bfloat16: what products read */
    sgt_cpu_block *blocks;
    int32_t *ids, *targets;        /* (N), (N) */
    int32_t *start;                /* (N): where each position's document begins in its row; NULL: rows are one */
    float *x0;                     /* embeddings (N, C) */
    float *lnf, *meanf, *rstdf;    /* (N, C), (N), (N) */
    float *logits, *loss;          /* (head_rows, ldv), (N); logits where the head is not our own */
    uint8_t *greedy;               /* (N), the caller's: whether a target's logit is the largest; NULL: not wanted */
    float *dx, *dln, *dwide;       /* gradients: residual stream (N, C), a LayerNorm (N, C), qkv or MLP (N, 4C) */
    uint16_t *packed, *packed_dy, *packed_logits; /* bf16: (N, C), (N, 4C), (head_rows, ldv) */
    float *partial;                /* (tiles, 2, C): LayerNorm gradients of each tile */
    float *scratch;                /* (threads, scratch_floats) for attention; in bf16 also for a row of C numbers */
    size_t scratch_floats;
    double *grown;                 /* (tasks of the embeddings' gradients): by how much squares did */
    double *squares;               /* (pieces) */
    void *products;                /* scratch of all products, which take turns */
    sgt_trace *trace;

    sgt_cpu_linear linear[SGT_LINEARS];
    sgt_head head;                 /* head, softmax and loss in one, where own_head */
    int own_head;
    sgt_cpu_piece *pieces;
    size_t piece_count, turn; /* an update begins with piece `turn`, for the token embedding is its last */
    int behind;               /* the last update was put off, and may not be complete; no row of wte is new before ids
                               * are looked up */
    sgt_beside pending;       /* its pieces, begun or still to be */
    sgt_adamw adamw[2];       /* its factors, without decay and with */
    sgt_sgd sgd[2];

    float dropping;    /* dropout's rate in the pass that runs: 0 in evaluation */
    uint64_t step;     /* the step that runs, for dropout */
    uint64_t row;      /* this micro-step's row 0 of this rank among the step's; row b is row + b*ranks */
    uint64_t ranks, rank;
    uint64_t accum;    /* micro-steps of a step */
    int fresh;         /* no micro-step of this step has run: gradients hold nothing */
    sgt_scaler scaler;
    double nominal;    /* what this step's micro-steps multiplied each loss by, loss scale included */
    double loss_sum;   /* of this step */
    uint64_t counted;  /* targets of this step */
    double head_squares;  /* of the gradient of the head's weight, as its last product left it */
    double token_squares; /* what wte's gradient adds to that: all of its own, or tied what was added after that */
    uint64_t last;     /* the step that `metrics` is about */
    sgt_step_metrics last_metrics;
} sgt_cpu_backend;

extern const sgt_backend sgt_cpu_calls; /* its functions */
void sgt_cpu_close(sgt_backend *b);
int sgt_cpu_update(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
/* And those of fp16 alone. */
void sgt_cpu_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
int sgt_cpu_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);

/* Fills in base.peak_flops and peak_name; 15 ms, 100 ms where other programs have the cores. */
void sgt_cpu_find_peak(sgt_cpu_backend *c);

/* Lays everything out in c->arena: called once to measure and once with memory behind it. */
void sgt_cpu_lay_out(sgt_cpu_backend *c);

/* What the buffers are used for, once memory is laid out; and what that comes to. */
void sgt_cpu_live(sgt_cpu_backend *c);
void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again, uint64_t within[SGT_LIVE_KINDS],
                        uint64_t after[SGT_LIVE_KINDS]);
/* The end of a part (live.h): for tests, what is not live any more is overwritten. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part);
static inline void sgt_cpu_part_ends(sgt_cpu_backend *c, unsigned part)
{
    if (c->scrub) sgt_cpu_scrub(c, part);
}

/* ids and targets from rows; returns how many targets count. */
uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *rows);
/* From ids to lnf. */
void sgt_cpu_forward(sgt_cpu_backend *c);
/* Its parts that recomputation calls again. Of a block: from ln1 and its input x to gelu; c->dln is used. */
void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x);
void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x, const float *w,
                       const float *b);
void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l);
/* From lnf to the sum of losses; with scale > 0 also d(sum * scale) to dln and to wte's gradient. */
double sgt_cpu_head(sgt_cpu_backend *c, double scale);
/* From dln (what reached lnf) to all gradients. */
void sgt_cpu_backward(sgt_cpu_backend *c);

/* What is left of the last update: all of it, or up to a block's tensor, which is what the forward pass reads next. */
void sgt_cpu_settle(sgt_cpu_backend *c);
void sgt_cpu_settle_to(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor);
/* The sum of c->squares, made anew here: of all of c->pieces, or of those whose squares no product has summed. */
double sgt_cpu_squares(sgt_cpu_backend *c, int all);
int sgt_cpu_puts_off(const sgt_cpu_backend *c); /* whether updates are put off at all */
/* The token embedding's row of an id as the last update makes it; p, m and v are C floats of room. */
const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v);

/* Rounds operands in place, where they are rounded at all. */
static inline void sgt_cpu_round(const sgt_cpu_backend *c, float *x, size_t n)
{
    if (c->rounding) c->k->round_to(x, x, n, c->format);
}

/* x (N, C) as products take it: itself, or in bf16 packed into c->packed. */
const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x);
/* The weights from parameter `offset` on, and `count` of them made anew. */
const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset);
void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count);

/* out = dropout(x) for positions first .. first + n - 1; out and x (n, C) are theirs. */
void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out, const float *x, size_t first,
                  size_t n);
/* Where the documents of row b begin; NULL: attention looks at all of the row. */
static inline const int32_t *sgt_cpu_start(const sgt_cpu_backend *c, size_t b)
{
    return c->documents ? c->start + b * c->T : NULL;
}
/* What attention drops in head i of B*H. */
sgt_dropout sgt_cpu_head_drop(const sgt_cpu_backend *c, const sgt_cpu_block *l, size_t i);

static inline uint64_t sgt_cpu_step_row(const sgt_cpu_backend *c, size_t b) { return c->row + b * c->ranks; }

/* Tile t's first row and how many rows it has. */
static inline size_t sgt_cpu_tile(const sgt_cpu_backend *c, size_t t, size_t *rows)
{
    size_t first = t * c->tile;
    *rows = c->N - first < c->tile ? c->N - first : c->tile;
    return first;
}

#endif
