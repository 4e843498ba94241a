/* cpu_backend.h: internals of the CPU backend, included only by files in train/cpu.
 *
 * A batch has B rows of T tokens, which are N = B*T positions. Results do not depend on the number
 * of threads: loops are divided into tiles, whose size depends only on B and T, and the partial
 * sums of the tiles are added in the order of the tiles. After the backend is open, it allocates no
 * memory.
 *
 * In bf16 and fp16, every operand of a matrix product is rounded as soon as it is computed:
 * weights, LayerNorm outputs, qkv, the output of attention, the input and output of GELU, and the
 * gradient of the product's output. Sums, the residual stream, softmax, LayerNorm, loss and update
 * use float32. Attention also uses float32, unless sgt's own kernels multiply bfloat16
 * (sgt_kernels_bf16). These kernels also round the probabilities, the gradients of the scores, and
 * the gradient of attention's output.
 *
 * If the CPU cannot multiply bfloat16, rounded numbers are stored as float32. If it can, they are
 * stored as bfloat16, which they are converted to at the following times:
 *   - weights: once per update
 *   - activations that only matrix products read, and gradients of matrix products' outputs: each
 *     row as soon as it is computed
 *   - outputs of attention and of the last LayerNorm, which are also needed in float32: just before
 *     the matrix product that reads them */
#ifndef SGT_CPU_BACKEND_H
#define SGT_CPU_BACKEND_H

#include "train/backend.h"
#include "loader/base/memory.h"
#include "kernels/muon.h"
#include "train/log/trace.h"

/* Maximum number of rows for which the head computes logits at a time, if planned matrix products
 * (kernels/cpu) compute the head. Such a group of rows is a chunk. */
#define SGT_HEAD_ROWS 256
/* maximum number of rows in a chunk if sgt_head_run computes the head with float32 operands; with
 * bf16, the maximum is twice as large */
#define SGT_OWN_HEAD_ROWS 512
#define SGT_PIECE 65536 /* maximum number of floats that one optimizer task updates */
/* Number of parameters that an optimizer task updates before it copies them, rounded, to the array
 * that matrix products read. This number is small, so that the parameters are still in the L1 cache
 * when they are copied. */
#define SGT_UPDATE_FLOATS 2048
#define SGT_BIAS_COLUMNS 128 /* number of columns that one task sums for the gradient of a bias */
/* number of columns of the embedding gradients that one task computes */
#define SGT_EMBED_COLUMNS 64

/* A transformer block: the indexes of its tensors, and the activations that its backward pass
 * needs. If several blocks recompute activations, they all store these activations in the memory of
 * the first such block. ln1, ln2 and gelu are bfloat16 if shape.bf16 is set, because only matrix
 * products read them; otherwise they are float. */
typedef struct sgt_cpu_block {
    uint32_t layer;
    sgt_recompute recompute;
    /* index in buf.params and buf.grads of the first float of each tensor */
    size_t at[SGT_BLOCK_TENSORS];
    double squares; /* sum of squares of the gradients of the block's four weight matrices */
    /* For each tensor of the block: number of optimizer tasks that must be done until the whole
     * tensor is updated, counted from the beginning of an optimizer pass. Each task updates one
     * sgt_cpu_piece. */
    size_t shares[SGT_BLOCK_TENSORS];
    /* ln1, ln2: outputs of the two LayerNorms, (N, C) each; gelu: output of GELU, (N, 4C) */
    void *ln1, *ln2, *gelu;
    /* statistics of the first LayerNorm, (N) each: mean1: mean of each position; rstd1: 1/(standard
     * deviation) of each position */
    float *mean1, *rstd1;
    float *qkv; /* (N, 3C) */
    /* att: output of attention, (N, C); lse: log-sum-exp of each row of attention scores, (B, H,
     * T) */
    float *att, *lse;
    /* mid: residual stream after attention, (N, C); mean2, rstd2: statistics of the second
     * LayerNorm, (N) each */
    float *mid, *mean2, *rstd2;
    float *fc;  /* (N, 4C) */
    float *out; /* residual stream after the MLP, (N, C): input of the next block */
} sgt_cpu_block;

/* Plans for the matrix products that involve one weight matrix W. `forward` computes y = x W, `dx`
 * the gradient of x, and `dw` the gradient of W. */
typedef struct sgt_cpu_linear {
    sgt_gemm *forward, *dx, *dw[2]; /* dw[0] overwrites the gradient of W; dw[1] adds to it */
} sgt_cpu_linear;

enum {
    SGT_LINEAR_QKV,
    SGT_LINEAR_PROJ,
    SGT_LINEAR_FC,
    SGT_LINEAR_FCPROJ,
    SGT_LINEAR_BLOCK, /* number of weight matrices in a block */
    SGT_LINEAR_HEAD = SGT_LINEAR_BLOCK,
    /* for the last chunk of rows of the head, if this chunk has fewer rows than the other chunks */
    SGT_LINEAR_HEAD_LAST,
    SGT_LINEARS
};

/* The options of the backend, and sizes computed from the options. All fields are constant once the
 * backend is open. */
typedef struct sgt_cpu_shape {
    /* The options from the caller, with two changes: bf16_moments is 0 unless the optimizer is
     * AdamW, and accum is at least 1. Strings, verdicts and recompute_at are valid only while the
     * backend opens. */
    sgt_backend_options o;
    const sgt_kernels *k;
    size_t B, T, N, C, H, D, V;
    /* index in buf.params and buf.grads of the first float of three tensors: the position
     * embedding, and the weight and bias of the last LayerNorm; the token embedding wte begins at
     * index 0 */
    size_t wpe, lnf_w, lnf_b;
    size_t head_w; /* index of the first float of the head's weight matrix; 0 if it is wte */
    size_t ldv;    /* floats from one row of logits to the next: V rounded up to a multiple of 16 */
    /* The N positions are divided into tiles, each of which is one task. tile: number of positions
     * in a tile; tiles: number of tiles. */
    size_t tile, tiles;
    /* The N rows of the head are divided into chunks, which are computed one after another.
     * head_rows: number of rows in each chunk except the last; head_last: number of rows in the
     * last chunk. */
    size_t head_rows, head_last;
    size_t scratch_floats; /* floats of each thread's scratch */
    float scale;           /* attention's 1/sqrt(D) */
    /* 1: operands of matrix products are rounded to `format`; 0: operands are not rounded */
    int rounding;
    sgt_rounding format;
    int bf16; /* type of the operands of matrix products: 1: bfloat16; 0: float32 */
    /* 1: the attention kernels round their operands; 0: the backend must round them before */
    int attention_rounds;
    int own_head;         /* 1: sgt_head_run computes the head */
    uint64_t ranks, rank; /* ranks: number of ranks; rank: index of this rank */
    uint64_t ranks_here;  /* number of ranks on this machine */
} sgt_cpu_shape;

/* Addresses of all buffers, which are constant once the buffers have been laid out. */
typedef struct sgt_cpu_buffers {
    sgt_arena arena;
    float *params, *grads; /* flat arrays of all tensors */
    /* memory for chunks of gradients received from other ranks (see ranks.c); NULL if there are no
     * other ranks */
    float *received;
    /* m: first moments; v: second moments of those tensors that have second moments (see
     * sgt_cpu_second). Both are bfloat16 if optim.bf16_moments is set, otherwise float. */
    void *m, *v;
    /* the parameters as matrix products read them: `params` itself if operands are not rounded;
     * otherwise a rounded copy, stored as bfloat16 if shape.bf16 is set and as float32 if not */
    void *weights;
    int32_t *ids, *targets; /* (N), (N) */
    /* (N) array: for each position, the index in its row of the first token of its document; NULL:
     * attention ignores documents */
    int32_t *start;
    float *x0; /* embeddings (N, C) */
    /* lnf: output of the last LayerNorm, (N, C); meanf, rstdf: statistics of the last LayerNorm,
     * (N) each */
    float *lnf, *meanf, *rstdf;
    float *logits, *loss; /* logits: (head_rows, ldv), NULL if own_head is set; loss: (N) */
    /* dx: gradient of the residual stream, (N, C); dln: gradient of a LayerNorm's output, (N, C) */
    float *dx, *dln;
    float *dwide; /* gradient of qkv, (N, 3C), or of the MLP's hidden layer, (N, 4C) */
    /* Operands of matrix products that have been converted from float to bfloat16:
     *   packed         activations, (N, C)
     *   packed_dy      gradients of a matrix product's output, (N, 4C)
     *   packed_logits  gradients of the logits, (head_rows, ldv) */
    uint16_t *packed, *packed_dy, *packed_logits;
    /* (tiles, 2, C) array for the backward pass of a LayerNorm: for each tile of positions, the
     * gradients of the weight and the bias, summed over this tile */
    float *partial;
    /* (threads, scratch_floats) array: scratch memory of each thread, used by attention and, in
     * bf16, by kernels that compute C floats before converting them to bfloat16 */
    float *scratch;
    /* array with one element for each task that computes embedding gradients: the amount by which
     * the task has increased the sum of squares of wte's gradient */
    double *grown;
    /* array with one element for each piece in sgt_cpu_update.pieces: the sum of squares of its
     * gradients */
    double *squares;
    void *products; /* scratch memory for matrix products, which run one at a time */
    void *muon;     /* Muon's scratch memory for one matrix; NULL without Muon */
} sgt_cpu_buffers;

/* State of the current step. */
typedef struct sgt_cpu_step {
    uint64_t number; /* number of the step, for dropout */
    float dropping;  /* dropout probability in this pass; 0 in an evaluation */
    /* Index of this rank's first row in the current micro-step, among all rows of the step (of all
     * micro-steps and ranks). Row b of this rank has the index row + b * ranks, from which dropout
     * generates its mask. */
    uint64_t row;
    /* 1: the next micro-step is the first of its step, so its matrix products must overwrite the
     * gradients of the previous step; 0: they must add to the gradients */
    int fresh;
    sgt_scaler scaler;
    /* factor, including the loss scale, by which the loss of each target is multiplied to compute
     * gradients */
    double nominal;
    double loss_sum;  /* sum of the step's losses so far */
    uint64_t counted; /* number of targets so far */
    /* Sum of squares of the gradient of the head's weight, as computed by the head in the latest
     * micro-step. If the head is tied to wte, the backward pass of the embeddings changes this
     * gradient later; token_squares accounts for that. */
    double head_squares;
    /* Sum of squares of wte's gradient. If the head is tied to wte, both have the same gradient,
     * and head_squares is its sum of squares before the gradient of the embedding lookups is added.
     * In this case, token_squares is the increase caused by this addition. */
    double token_squares;
    /* array of N elements from the caller of `eval`, or NULL if the caller has none. The head sets
     * an element to 1 if no id has a larger logit than the target, otherwise to 0. */
    uint8_t *greedy;
    uint64_t last; /* index of the step to which last_metrics belongs */
    sgt_step_metrics last_metrics;
} sgt_cpu_step;

typedef struct sgt_cpu_piece {
    /* offset: index in buf.params and buf.grads of the first float of the piece; count: number of
     * floats */
    size_t offset, count;
    size_t second; /* index in buf.v */
    int decay;
    /* 1: matrix products of the backward pass already compute the sum of squares of this piece's
     * gradients, so sgt_cpu_squares need not compute it; 0: they do not */
    int squared;
    int muon;   /* 1: the piece is part of a matrix that Muon updates */
    int first;  /* 1: first piece of its tensor */
    int linear; /* if `muon` is 1, the SGT_LINEAR_* of the matrix */
} sgt_cpu_piece;

/* The state of the optimizer's pass over the parameters (update.c). Tensors are divided into
 * pieces, and a pass has one task for each piece, which updates it. Tasks do nothing for pieces of
 * a matrix that Muon updates. */
typedef struct sgt_cpu_update {
    /* the pieces that this rank updates (without ranks, all pieces), in the order of the model's
     * tensors */
    sgt_cpu_piece *pieces;
    /* turn: index in `pieces` of the piece that is updated first. The pieces before `turn` are those
     * of the token embedding. They are updated last, because the next forward pass needs the whole
     * token embedding only at its end, for the logits. */
    size_t piece_count, turn;
    /* 1: the last pass was deferred, so that some parameters may not be updated yet; 0: it is
     * complete */
    int behind;
    sgt_beside pending; /* the pieces of the deferred pass */
    /* constants of the update, at index 1 for tensors with weight decay and at index 0 for other
     * tensors */
    sgt_adamw adamw[2];
    sgt_sgd sgd[2];
    /* number of the update, which the random numbers for rounding bfloat16 moments depend on (see
     * kernels/moments.h) */
    uint64_t draw;
} sgt_cpu_update;

/* Names and sizes that the backend reports to its caller. */
typedef struct sgt_cpu_report {
    sgt_memory_kind memory[SGT_MEMORY_KINDS];
    size_t kinds;
    sgt_live live; /* filled in when memory is laid out */
    char level[48], peak_name[128];
    sgt_trace *trace;
} sgt_cpu_report;

typedef struct sgt_cpu_group sgt_cpu_group;

typedef struct sgt_cpu_backend {
    sgt_backend base; /* must be first, for casts from sgt_backend * to sgt_cpu_backend * */
    sgt_cpu_shape shape;
    sgt_cpu_buffers buf;
    sgt_cpu_step step;
    sgt_cpu_update update;
    sgt_cpu_report report;
    sgt_cpu_block *blocks;
    /* Three of the blocks that recompute activations. All such blocks store their activations in
     * the memory of the first one:
     *   share_cheap   first block that recomputes any activations
     *   share_inside  first block that recomputes all its activations
     *   share_last    last block that recomputes any. The backward pass need not do so, because at
     *                 its beginning the memory still contains the activations of this block. */
    sgt_cpu_block *share_cheap, *share_inside, *share_last;
    sgt_cpu_linear linear[SGT_LINEARS];
    sgt_head head; /* used if own_head */
    /* one plan for each of a block's weight matrices; NULL without Muon */
    sgt_muon *muon[SGT_LINEAR_BLOCK];
    /* state of the communication with other ranks (see ranks.c); NULL if there are no ranks */
    sgt_cpu_group *group;
} sgt_cpu_backend;

extern const sgt_backend sgt_cpu_calls; /* the backend's functions */
void sgt_cpu_close(sgt_backend *b);
int sgt_cpu_end_step(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
/* sgt_cpu_put_scaler sets, and sgt_cpu_get_scaler reads, the state of the loss scaler and of spike
 * detection. The loss scale changes only in fp16. */
void sgt_cpu_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
int sgt_cpu_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);

/* Assign an address in buf.arena to every buffer. Before the arena is mapped, only compute its
 * size. */
void sgt_cpu_lay_out(sgt_cpu_backend *c);

/* The function sgt_backend.live of a CPU backend (see backend.h): sum the bytes in use during part
 * `part` of a step, and after this part. */
void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again,
                        uint64_t within[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS]);
/* Overwrite the buffers that are no longer in use after part `part` of a step (only in tests).
 * sgt_cpu_part_ends calls this function at the end of each part. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part);
static inline void sgt_cpu_part_ends(sgt_cpu_backend *c, unsigned part)
{
    if (c->shape.o.scrub) sgt_cpu_scrub(c, part);
}

/* Copy the token ids and targets of `batch` to buf.ids and buf.targets. Return the number of
 * targets that have a loss. */
uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *batch);
/* Compute lnf from the ids. */
void sgt_cpu_forward(sgt_cpu_backend *c);
/* These three functions compute parts of a block's forward pass. The backward pass calls them, too,
 * to recompute activations. sgt_cpu_block_inside computes all activations from qkv to the output of
 * GELU, from the block's ln1 and the block's input x. It overwrites buf.dln. */
void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x);
void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x,
                       const float *w, const float *b);
void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l);
/* Compute logits and losses from buf.lnf, and return the sum of the losses. If scale > 0, also
 * compute gradients of the loss, multiplied by `scale`: the gradient of buf.lnf, in buf.dln, and
 * the gradient of the head's weight, in buf.grads. */
double sgt_cpu_head(sgt_cpu_backend *c, double scale);
/* From buf.dln, the gradient of the last LayerNorm's output, compute the gradients of all
 * parameters. Call sgt_cpu_head first, which computes the gradient of the head's weight. */
void sgt_cpu_backward(sgt_cpu_backend *c);

/* sgt_cpu_settle completes a deferred update. sgt_cpu_settle_to continues it until the given tensor
 * of block `l` is updated, so that the forward pass can read this tensor. */
void sgt_cpu_settle(sgt_cpu_backend *c);
void sgt_cpu_settle_to(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor);
/* Set buf.squares[i] to the sum of squares of the gradients of piece i, for each piece, and return
 * the total. If `all` is 0, set the element to 0 for each piece whose squares the backward pass has
 * already summed (`squared` is 1). */
double sgt_cpu_squares(sgt_cpu_backend *c, int all);
/* Return the squared norm of all gradients. Most squares are summed by matrix products in float,
 * which can overflow even if all gradients are finite. If that happens, sum all squares again in
 * double. */
double sgt_cpu_squared_norm(sgt_cpu_backend *c);
/* Return 1 if updates are deferred to the next forward pass, otherwise 0. They are not deferred
 *   - with one thread, because nothing could run at the same time
 *   - with several ranks, because the updated parameters are all-gathered immediately
 *   - in tests that overwrite unused buffers, because a deferred update reads gradients after the
 *     step has ended
 *   - with --no-overlap, which is used to measure the effect of deferring */
static inline int sgt_cpu_defers(const sgt_cpu_backend *c)
{
    return !c->shape.o.scrub && !c->shape.o.no_overlap && !c->group && c->shape.o.threads > 1;
}

/* Return the address of the updated embedding of token `id`, C floats. If no update is deferred,
 * this is the row of wte. Otherwise it is p: the function copies the row to p and its moments to m
 * and v, and updates these copies. p, m and v must each have room for C floats. */
const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v);

/* Return the size in bytes of an element of buf.m and buf.v. */
static inline size_t sgt_cpu_moment_bytes(const sgt_cpu_shape *s)
{
    return s->o.optim.bf16_moments ? sizeof(uint16_t) : sizeof(float);
}
/* Return the address of element `at` of `flat`, which must be buf.m or buf.v. */
static inline void *sgt_cpu_moment(const sgt_cpu_shape *s, void *flat, size_t at)
{
    return (char *)flat + at * sgt_cpu_moment_bytes(s);
}

/* Round the n floats at x, operands of a matrix product, in place, if the precision requires it. */
static inline void sgt_cpu_round(const sgt_cpu_shape *s, float *x, size_t n)
{
    if (s->rounding) s->k->round_to(x, x, n, s->format);
}

/* Return the (N, C) array x as matrix products read it: x itself, or, if shape.bf16 is set, a
 * bfloat16 copy in buf.packed. */
const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x);
/* sgt_cpu_weights returns the address of the parameters from index `offset` on, as matrix products
 * read them (buf.weights). sgt_cpu_take_weights copies `count` parameters from buf.params to
 * buf.weights, rounding them. */
const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset);
void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count);

/* Apply dropout to n positions, beginning with position `first`: read the (n, C) array x and write
 * the (n, C) array `out`. */
void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out,
                  const float *x, size_t first, size_t n);
/* For row b of the batch, return an array with the index in the row at which each position's
 * document begins. Return NULL if attention ignores documents. */
static inline const int32_t *sgt_cpu_start(const sgt_cpu_backend *c, size_t b)
{
    return c->shape.o.documents ? c->buf.start + b * c->shape.T : NULL;
}
/* Return the parameters of attention dropout for attention head i % H of row i / H of the batch. */
sgt_dropout sgt_cpu_head_drop(const sgt_cpu_backend *c, const sgt_cpu_block *l, size_t i);

/* Return the index of the first position in tile t, and set *rows to the number of positions in the
 * tile. */
static inline size_t sgt_cpu_tile(const sgt_cpu_shape *s, size_t t, size_t *rows)
{
    size_t first = t * s->tile;
    *rows = s->N - first < s->tile ? s->N - first : s->tile;
    return first;
}

/* ---- Muon (update.c) ---- */

/* If Muon updates the tensor, return the tensor's SGT_LINEAR_*, otherwise -1. */
int sgt_cpu_by_muon(const sgt_cpu_shape *s, size_t tensor);
/* Return the index in buf.v of the first second moment of tensor `tensor`. A matrix that Muon
 * updates has no second moments; for such a matrix, return the index for the next tensor. If
 * `tensor` is past the last tensor, return the number of elements of buf.v. */
size_t sgt_cpu_second(const sgt_cpu_shape *s, size_t tensor);
/* Return the size in bytes of buf.muon. */
size_t sgt_cpu_muon_memory(const sgt_cpu_shape *s);
/* Plan Muon's matrix products, after the buffers have been laid out. Do nothing if the optimizer is
 * not Muon. */
int sgt_cpu_muon_plan(sgt_cpu_backend *c, sgt_error *err);
/* Update those matrices among this rank's pieces that Muon updates. This update is not deferred: it
 * consists of matrix products itself, so it would gain nothing from overlapping with those of the
 * forward pass. */
void sgt_cpu_muon_update(sgt_cpu_backend *c, double lr, double scale);

/* ---- ranks.c ---- */

/* How several CPU ranks do a training step. Each rank computes its own rows of the batch. The
 * optimizer's state and work are divided among the ranks, as in ZeRO-1:
 *
 *   - Buckets: the parameters are divided into buckets, in the order in which the backward pass
 *     completes their gradients: first the tensors after the blocks, then each block from the last
 *     to the first, then the embeddings. Each bucket is divided into one part for each rank.
 *   - Reduce-scatter, in the last micro-step of a step: each rank sums the gradients of its parts
 *     over all ranks, in the order of the ranks. A communication thread does this for one bucket
 *     after another, while the backward pass continues.
 *   - Update: each rank updates only its own parts.
 *   - All-gather: each rank receives the parameters that other ranks have updated. After that, the
 *     parameters are bit-identical on all ranks.
 *
 * Gradients and parameters are sent with sgt_ranks.swap (base/ranks.h), which uses MPI.
 * "Collective" means that all ranks must call the function, in the same order as other collective
 * functions. Without ranks, c->group is NULL. In this case, sgt_cpu_ranks_reduce and
 * sgt_cpu_ranks_gather must not be called, and the other functions do nothing. */

/* If r is not NULL, create c->group, and store the number of ranks and the index of this rank in
 * c->shape. If r is NULL, do nothing. */
int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err);

/* Return the number of floats in c->buf.received, which has room for a chunk of gradients from each
 * rank. */
size_t sgt_cpu_ranks_received(const sgt_cpu_shape *s);

/* Divide each bucket of parameters among the ranks, remove the pieces that other ranks update from
 * c->update.pieces, and start the communication thread. Collective: all ranks must call this
 * function. */
int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err);
void sgt_cpu_ranks_close(sgt_cpu_backend *c);

/* Call sgt_cpu_ranks_begin at the beginning of each micro-step. Call sgt_cpu_ranks_ready when the
 * backward pass has completed the gradients of the next bucket. */
void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro);
void sgt_cpu_ranks_ready(sgt_cpu_backend *c);

/* Wait until the reduce-scatter is complete, before the update. On return, the gradients of
 * c->update.pieces, c->step.loss_sum, c->step.counted and *squares are totals over all ranks.
 * Collective: all ranks must call this function. */
int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err);

/* All-gather the parameters after the update. `updated`: 1 if the parameters have been updated, 0
 * if the update was skipped. Collective: all ranks must call this function. */
int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err);

/* Copy elements at .. at + count - 1 of the state `what` (such as a moment) to `to` on every rank.
 * Before the call, each rank must have stored the elements that it owns in its `to`. Collective:
 * all ranks must call this function. */
int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err);

#endif
