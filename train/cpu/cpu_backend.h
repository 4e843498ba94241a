/* cpu_backend.h: internals of the CPU backend. Only files in train/cpu include it.
 *
 * B rows of T tokens are N = B*T positions. Results do not depend on the number of threads. To
 * achieve this, loops are divided into tiles whose size depends only on these shapes, and the
 * partial sums of tiles are added in the order of the tiles. Nothing is allocated after open.
 *
 * In bf16 and fp16, every operand of a matrix product is rounded as soon as it is computed:
 * weights, LayerNorm outputs, qkv, attention's output, input and output of GELU, and the gradient
 * of each matrix product's output. Sums, the residual stream, softmax, LayerNorm, loss and update
 * are float32. Attention is computed in float32, too, unless our own kernels multiply bfloat16
 * (sgt_kernels_bf16). These kernels also round the probabilities, the gradients of the scores and
 * the incoming gradient.
 *
 * If the CPU does not multiply bfloat16 itself, rounded numbers are stored as float32. If it does,
 * they are packed into bfloat16:
 *   - weights: once per update
 *   - activations that only matrix products read, and gradients of matrix products' outputs: each
 *     row as soon as it is computed
 *   - the outputs of attention and of the last LayerNorm, which are also read in float32: just
 *     before a matrix product */
#ifndef SGT_CPU_BACKEND_H
#define SGT_CPU_BACKEND_H

#include "train/backend.h"
#include "loader/base/memory.h"
#include "kernels/muon.h"
#include "train/log/trace.h"

/* The head's logits are computed for one chunk of rows at a time. This is the maximum number of
 * rows per chunk if planned matrix products (kernels/cpu) compute the head. */
#define SGT_HEAD_ROWS 256
/* maximum number of rows per chunk if sgt_head_run computes the head in float32; twice as many in
 * bf16 */
#define SGT_OWN_HEAD_ROWS 512
#define SGT_PIECE 65536 /* maximum number of floats that one task of the optimizer updates */
/* Number of parameters that a task updates before it copies them, rounded, to the array that matrix
 * products read. So few parameters are still in the L1 cache when they are copied. */
#define SGT_UPDATE_FLOATS 2048
#define SGT_BIAS_COLUMNS 128 /* number of columns that one task sums for a bias gradient */
/* number of columns of the embedding gradients that one task computes */
#define SGT_EMBED_COLUMNS 64

/* A transformer block: the indexes of its tensors, and the activations that the backward pass
 * needs. All blocks that recompute activations store these in the memory of the first such block.
 * If shape.bf16 is set, ln1, ln2 and gelu are stored in bfloat16, because only matrix products read
 * them. */
typedef struct sgt_cpu_block {
    uint32_t layer;
    sgt_recompute recompute;
    /* for each tensor, the index of its first float in buf.params and buf.grads */
    size_t at[SGT_BLOCK_TENSORS];
    double squares; /* sum of the squares of all gradients of the block's four weight matrices */
    /* For each tensor of the block: number of optimizer tasks, counted from the beginning of a
     * pass, after which the entire tensor is updated. Each task updates one piece of a tensor
     * (sgt_cpu_piece). */
    size_t shares[SGT_BLOCK_TENSORS];
    /* outputs of the first and second LayerNorm and of GELU: (N, C), (N, C), (N, 4C) */
    void *ln1, *ln2, *gelu;
    /* mean1, rstd1: mean and 1/(standard deviation) of each position for the first LayerNorm, (N)
     * each */
    float *mean1, *rstd1;
    float *qkv; /* (N, 3C) */
    /* att: attention's output (N, C); lse: log-sum-exp of the attention scores (B, H, T) */
    float *att, *lse;
    /* mid: residual stream after attention (N, C); mean2, rstd2: as mean1 and rstd1, but for the
     * second LayerNorm */
    float *mid, *mean2, *rstd2;
    float *fc;  /* (N, 4C) */
    float *out; /* residual stream after the MLP (N, C), which is the input of the next block */
} sgt_cpu_block;

/* The matrix products planned for one weight. forward computes y = x W; dx computes the gradient of
 * x; dw computes the gradient of W. */
typedef struct sgt_cpu_linear {
    sgt_gemm *forward, *dx, *dw[2]; /* dw[0] overwrites the gradient of W, dw[1] adds to it */
} sgt_cpu_linear;

enum {
    SGT_LINEAR_QKV,
    SGT_LINEAR_PROJ,
    SGT_LINEAR_FC,
    SGT_LINEAR_FCPROJ,
    SGT_LINEAR_BLOCK, /* number of weight matrices in a block */
    SGT_LINEAR_HEAD = SGT_LINEAR_BLOCK,
    /* used instead of SGT_LINEAR_HEAD for the last chunk of rows if that chunk has fewer rows than
     * the others */
    SGT_LINEAR_HEAD_LAST,
    SGT_LINEARS
};

/* The options of the backend, and sizes that follow from them. They are constant once the backend
 * is open. */
typedef struct sgt_cpu_shape {
    /* The caller's options. Strings, verdicts and recompute_at are valid only during open.
     * bf16_moments is 0 unless the optimizer is AdamW, and accum is at least 1. */
    sgt_backend_options o;
    const sgt_kernels *k;
    size_t B, T, N, C, H, D, V;
    /* wpe, lnf_w, lnf_b: index of each tensor's first float in buf.params and buf.grads; wte has
     * index 0 */
    size_t wpe, lnf_w, lnf_b;
    size_t head_w; /* index of the first float of the head's weight; 0 if the head is tied to wte */
    size_t ldv;    /* row stride of the logits in floats: V, rounded up to whole vectors */
    /* tile: number of positions per task; tiles: number of tasks into which the N positions are
     * divided */
    size_t tile, tiles;
    /* The head is computed for one chunk of rows at a time. head_rows: number of rows per chunk;
     * head_last: number of rows in the last chunk, which may be smaller. */
    size_t head_rows, head_last;
    size_t scratch_floats; /* floats of each thread's scratch */
    float scale;           /* attention's 1/sqrt(D) */
    /* 1: operands of matrix products are rounded to `format`; 0: they stay float32 */
    int rounding;
    sgt_rounding format;
    int bf16; /* 1: matrix products multiply bfloat16 operands; 0: float32 operands */
    /* 1: the attention kernels round their operands themselves; 0: the backend rounds these
     * operands first */
    int attention_rounds;
    int own_head;         /* 1: sgt_head_run computes the head */
    uint64_t ranks, rank; /* ranks: number of ranks; rank: index of this rank */
    uint64_t ranks_here;  /* number of ranks on this machine */
} sgt_cpu_shape;

/* Addresses of all buffers. They are constant once memory is laid out. */
typedef struct sgt_cpu_buffers {
    sgt_arena arena;
    float *params, *grads; /* flat arrays of all tensors */
    /* memory that receives chunks of gradients from the other ranks (ranks.c); NULL if there are no
     * ranks */
    float *received;
    /* First moments m and second moments v: float, or bfloat16 if optim.bf16_moments is set. v
     * contains only the tensors that have second moments (see sgt_cpu_second). */
    void *m, *v;
    /* the parameters in the form that matrix products read: `params` itself, a copy rounded to
     * `format` but stored in float32, or a bfloat16 copy */
    void *weights;
    int32_t *ids, *targets; /* (N), (N) */
    /* array of N elements: for each position, the index within its row at which its document
     * begins; NULL: attention ignores documents */
    int32_t *start;
    float *x0; /* embeddings (N, C) */
    /* lnf: output of the last LayerNorm (N, C); meanf, rstdf: its statistics, (N) each */
    float *lnf, *meanf, *rstdf;
    float *logits, *loss; /* logits: (head_rows, ldv), or NULL if own_head is set; loss: (N) */
    /* dx: gradient of the residual stream; dln: gradient of a LayerNorm's output; (N, C) each */
    float *dx, *dln;
    float *dwide; /* gradient of qkv (N, 3C), or of the MLP's hidden layer (N, 4C) */
    /* Operands of matrix products, rounded to bfloat16 from float arrays:
     *   packed         activations (N, C)
     *   packed_dy      gradients of a product's output (N, 4C)
     *   packed_logits  gradients of the logits (head_rows, ldv) */
    uint16_t *packed, *packed_dy, *packed_logits;
    /* (tiles, 2, C) array: for each tile, the gradients of a LayerNorm's weight and bias, summed
     * over the positions of this tile; the sums of all tiles are added up later */
    float *partial;
    /* (threads, scratch_floats) array: one row of scratch memory for each thread. It is used by
     * attention and, in bf16, by kernels that compute one row of C floats before rounding it. */
    float *scratch;
    /* Array with one element for each task that adds up embedding gradients: by how much the task
     * has increased the sum of squares of wte's gradient */
    double *grown;
    /* array with one element for each piece of the update: the sum of squares of its gradients */
    double *squares;
    void *products; /* scratch memory for matrix products, of which only one runs at a time */
    void *muon;     /* Muon's scratch memory for one matrix; NULL if the optimizer is not Muon */
} sgt_cpu_buffers;

/* State of the current step. */
typedef struct sgt_cpu_step {
    uint64_t number; /* number of the step, for dropout */
    float dropping;  /* dropout probability in the current pass; 0 during an evaluation */
    /* This rank's row b of the current micro-step has the index row + b * ranks among all rows
     * of the step, over all micro-steps and ranks. Dropout uses this index to generate the row's
     * mask. */
    uint64_t row;
    /* 1: the next micro-step is the first one of its step. Its matrix products overwrite the
     * gradients of the previous step. Later micro-steps add to the gradients. */
    int fresh;
    sgt_scaler scaler;
    /* factor by which the gradient of each target's loss is multiplied, including the loss scale */
    double nominal;
    double loss_sum;  /* sum of the step's losses so far */
    uint64_t counted; /* number of targets so far */
    /* Sum of squares of the head's weight gradient, as the head has computed it in the latest
     * micro-step. If the head is tied to wte, the embeddings add to this gradient later. */
    double head_squares;
    /* Sum of squares of wte's gradient. If the head is tied to wte, the two share a gradient, of
     * which head_squares covers only the head's contribution. In this case, the field is the
     * increase in the sum of squares when the embeddings add to the gradient. */
    double token_squares;
    /* array of N elements that the caller of `eval` provides and the head fills in: 1 if no token
     * has a larger logit than the target, else 0; NULL: not requested */
    uint8_t *greedy;
    uint64_t last; /* index of the step that last_metrics describes */
    sgt_step_metrics last_metrics;
} sgt_cpu_step;

typedef struct sgt_cpu_piece {
    /* offset: index of the piece's first float in buf.params and buf.grads; count: number of
     * floats */
    size_t offset, count;
    size_t second; /* index in buf.v */
    int decay;
    /* 1: the matrix products of the backward pass have already summed the squares of this piece's
     * gradients, so that sgt_cpu_squares need not read them */
    int squared;
    int muon;   /* 1: the piece belongs to a matrix that Muon updates */
    int first;  /* 1: first piece of its tensor */
    int linear; /* if `muon` is set: SGT_LINEAR_* of the matrix */
} sgt_cpu_piece;

/* The state of the optimizer's pass over the parameters (update.c). A pass updates one piece of a
 * tensor after another; each piece is a task. Pieces of matrices that Muon updates are skipped. */
typedef struct sgt_cpu_update {
    /* the pieces that this rank updates, in the order of the model's tensors; without ranks, all
     * pieces */
    sgt_cpu_piece *pieces;
    /* turn: index in `pieces` of the piece with which a pass begins. The pieces before it belong to
     * the token embedding, which comes first in the model but is needed last in the forward pass.
     * Therefore a pass updates the pieces from `turn` on first, and then those before `turn`. */
    size_t piece_count, turn;
    /* 1: the last pass was deferred and may be incomplete, so that some parameters may still have
     * their old values */
    int behind;
    sgt_beside pending; /* the pieces of the deferred pass */
    /* constants of the update: index 0 is for tensors without weight decay, index 1 for those with
     * it */
    sgt_adamw adamw[2];
    sgt_sgd sgd[2];
    /* number that identifies this update: the random rounding of bfloat16 moments depends on it
     * (kernels/moments.h) */
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
    sgt_backend base; /* must be the first member: a sgt_backend * is cast to a sgt_cpu_backend * */
    sgt_cpu_shape shape;
    sgt_cpu_buffers buf;
    sgt_cpu_step step;
    sgt_cpu_update update;
    sgt_cpu_report report;
    sgt_cpu_block *blocks;
    /* Blocks that recompute activations, all in the same memory:
     *   share_cheap   first block that recomputes anything
     *   share_inside  first block that recomputes all its activations
     *   share_last    last block that recomputes anything; it need not do so, because this memory
     *                 still holds its activations when the backward pass begins */
    sgt_cpu_block *share_cheap, *share_inside, *share_last;
    sgt_cpu_linear linear[SGT_LINEARS];
    sgt_head head; /* used if own_head */
    /* one plan for each matrix of a block; NULL if the optimizer is not Muon */
    sgt_muon *muon[SGT_LINEAR_BLOCK];
    /* state of the communication with other ranks (ranks.c); NULL without ranks */
    sgt_cpu_group *group;
} sgt_cpu_backend;

extern const sgt_backend sgt_cpu_calls; /* the backend's functions */
void sgt_cpu_close(sgt_backend *b);
int sgt_cpu_end_step(sgt_backend *b, uint64_t step, double lr, sgt_error *err);
/* Write or read the state of the loss scaler and of spike detection. Only fp16 scales the loss. */
void sgt_cpu_put_scaler(sgt_backend *b, uint64_t step, const sgt_scaler *s);
int sgt_cpu_get_scaler(sgt_backend *b, sgt_scaler *s, sgt_error *err);

/* Assign every buffer an address in buf.arena. The first call, before the arena is mapped, only
 * computes the size. */
void sgt_cpu_lay_out(sgt_cpu_backend *c);

/* Implement `live` of backend.h: sum the bytes in use during and after part `part` of a step. */
void sgt_cpu_live_count(const sgt_backend *b, unsigned part, int again,
                        uint64_t within[SGT_LIVE_KINDS], uint64_t after[SGT_LIVE_KINDS]);
/* In tests, overwrite the buffers that are not in use any more after part `part` of a step.
 * sgt_cpu_part_ends calls it at the end of each part. */
void sgt_cpu_scrub(sgt_cpu_backend *c, unsigned part);
static inline void sgt_cpu_part_ends(sgt_cpu_backend *c, unsigned part)
{
    if (c->shape.o.scrub) sgt_cpu_scrub(c, part);
}

/* Copy the ids and targets of a batch to buf.ids and buf.targets. Return how many targets have a
 * loss. */
uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *batch);
/* Compute lnf from the ids. */
void sgt_cpu_forward(sgt_cpu_backend *c);
/* The next three functions compute parts of a block's forward pass. The backward pass also calls
 * them, to recompute activations. sgt_cpu_block_inside computes everything from qkv to the output
 * of GELU, given the block's ln1 and its input x. It overwrites buf.dln. */
void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x);
void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x,
                       const float *w, const float *b);
void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l);
/* Compute logits and losses from buf.lnf, and return the sum of the losses. If scale > 0, also
 * compute two gradients of scale * (sum of the losses): that of lnf, in buf.dln, and that of the
 * head's weight. */
double sgt_cpu_head(sgt_cpu_backend *c, double scale);
/* Compute all gradients, starting from buf.dln, the gradient of the last LayerNorm's output. */
void sgt_cpu_backward(sgt_cpu_backend *c);

/* sgt_cpu_settle completes a deferred update. sgt_cpu_settle_to completes it only up to a block's
 * tensor, so that the forward pass can read this tensor. */
void sgt_cpu_settle(sgt_cpu_backend *c);
void sgt_cpu_settle_to(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor);
/* For each piece, set its entry in buf.squares to the sum of squares of its gradients. Return the
 * sum of all entries. If `all` is 0, set the entry to 0 for each piece whose squares the backward
 * pass has already summed (`squared` is 1). */
double sgt_cpu_squares(sgt_cpu_backend *c, int all);
/* Return the squared norm of all gradients. Matrix products sum squares in float, which may
 * overflow although all gradients are finite. If that happens, all squares are summed again in
 * double. */
double sgt_cpu_squared_norm(sgt_cpu_backend *c);
/* Return whether updates are deferred. They are not
 *   - with one thread, which could not do anything else at the same time
 *   - with several ranks, because these all-gather the updated parameters immediately
 *   - in tests that overwrite unused buffers, because a deferred update reads gradients after the
 *     step has ended
 *   - with --no-overlap, which serves to measure what deferring gains */
static inline int sgt_cpu_defers(const sgt_cpu_backend *c)
{
    return !c->shape.o.scrub && !c->shape.o.no_overlap && !c->group && c->shape.o.threads > 1;
}

/* Return the updated embedding of token `id`. If no update is pending, the result points into wte.
 * Otherwise it is p: a copy to which the update is applied, with copies of the moments in m and v.
 * Each of p, m and v must have room for C floats. */
const float *sgt_cpu_token(const sgt_cpu_backend *c, int32_t id, float *p, float *m, float *v);

/* Return the size in bytes of one element of buf.m and buf.v. */
static inline size_t sgt_cpu_moment_bytes(const sgt_cpu_shape *s)
{
    return s->o.optim.bf16_moments ? sizeof(uint16_t) : sizeof(float);
}
/* Return the address of the moment with index `at` in `flat`, which is buf.m or buf.v. */
static inline void *sgt_cpu_moment(const sgt_cpu_shape *s, void *flat, size_t at)
{
    return (char *)flat + at * sgt_cpu_moment_bytes(s);
}

/* Round n operands of a matrix product in place, if the precision requires it. */
static inline void sgt_cpu_round(const sgt_cpu_shape *s, float *x, size_t n)
{
    if (s->rounding) s->k->round_to(x, x, n, s->format);
}

/* Return x (N, C) in the form that matrix products read: x itself, or a bfloat16 copy in
 * buf.packed. */
const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x);
/* sgt_cpu_weights returns the address of the parameters from index `offset` on, in the form that
 * matrix products read. sgt_cpu_take_weights rounds `count` parameters of buf.params and stores
 * them in that form. */
const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset);
void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count);

/* Write dropout(x) to out for the n positions from position `first` on. Both arrays have the shape
 * (n, C). */
void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out,
                  const float *x, size_t first, size_t n);
/* Return the entries of buf.start for row b: for each position, the index within the row at which
 * its document begins. Return NULL if attention ignores documents. */
static inline const int32_t *sgt_cpu_start(const sgt_cpu_backend *c, size_t b)
{
    return c->shape.o.documents ? c->buf.start + b * c->shape.T : NULL;
}
/* Return the dropout parameters of attention for head i % H of row i / H. */
sgt_dropout sgt_cpu_head_drop(const sgt_cpu_backend *c, const sgt_cpu_block *l, size_t i);

/* Return the index of the first position of tile t, and set *rows to the number of its
 * positions. */
static inline size_t sgt_cpu_tile(const sgt_cpu_shape *s, size_t t, size_t *rows)
{
    size_t first = t * s->tile;
    *rows = s->N - first < s->tile ? s->N - first : s->tile;
    return first;
}

/* ---- Muon (update.c) ---- */

/* Return SGT_LINEAR_* of the tensor if Muon updates it, else -1. */
int sgt_cpu_by_muon(const sgt_cpu_shape *s, size_t tensor);
/* Return the index in buf.v at which the second moments of tensor `tensor` begin. buf.v has none
 * for matrices that Muon updates. For such a matrix, return the index at which the next tensor's
 * second moments begin; past the last tensor, return the length of buf.v in elements. */
size_t sgt_cpu_second(const sgt_cpu_shape *s, size_t tensor);
/* Return the size in bytes of buf.muon. */
size_t sgt_cpu_muon_memory(const sgt_cpu_shape *s);
/* Plan Muon's matrix products after memory was laid out. Do nothing if the optimizer is not
 * Muon. */
int sgt_cpu_muon_plan(sgt_cpu_backend *c, sgt_error *err);
/* Update by Muon the matrices among this rank's pieces. These updates are not deferred: a deferred
 * update overlaps with matrix products, but Muon's updates are matrix products themselves. */
void sgt_cpu_muon_update(sgt_cpu_backend *c, double lr, double scale);

/* ---- ranks.c ---- */

/* A training step on several CPU ranks: Each rank computes its own rows of the batch. The
 * optimizer's state and work are divided among the ranks, as in ZeRO-1:
 *
 *   - Buckets: the parameters are divided into buckets, in the order in which the backward pass
 *     completes their gradients: the tensors after the blocks, each block from the last to the
 *     first, the embeddings. Every rank owns a part of every bucket.
 *   - Reduce-scatter, in a step's last micro-step: each rank sums all ranks' gradients of the parts
 *     that it owns, in the order of ranks. A communication thread does this bucket by bucket, while
 *     the backward pass continues.
 *   - Update: each rank updates only its own parts.
 *   - All-gather: each rank receives the parameters that the other ranks updated. Afterwards all
 *     ranks have the same parameters, to the bit.
 *
 * Gradients and parameters are sent with `swap` of base/ranks.h, which uses MPI. Collective
 * functions must be called by all ranks, in the same order. Without ranks, c->group is NULL. In
 * this case, sgt_cpu_ranks_reduce and sgt_cpu_ranks_gather must not be called, and the other
 * functions do nothing. */

/* If r is not NULL, create c->group, and store the number of ranks and this rank's index in
 * c->shape. */
int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err);

/* Return how many floats c->buf.received must hold: a chunk of gradients from each rank. */
size_t sgt_cpu_ranks_received(const sgt_cpu_shape *s);

/* Divide the buckets among the ranks, remove from c->update.pieces the pieces that other ranks
 * update, and start the communication thread. Collective: every rank must call this function. */
int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err);
void sgt_cpu_ranks_close(sgt_cpu_backend *c);

/* Call sgt_cpu_ranks_begin at the beginning of a micro-step, and sgt_cpu_ranks_ready when the
 * gradients of the next bucket are complete. */
void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro);
void sgt_cpu_ranks_ready(sgt_cpu_backend *c);

/* Complete the reduce-scatter, before the update. Afterwards, the gradients of c->update.pieces,
 * c->step.loss_sum, c->step.counted and *squares hold the totals of all ranks for this step.
 * Collective. */
int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err);

/* All-gather the parameters after the update. `updated`: 0 if the update was skipped, so that the
 * parameters have not changed. Collective. */
int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err);

/* Fill `to` on every rank with elements at .. at + count - 1 of a state (`what`), such as a moment.
 * Before the call, each rank must have stored the elements that it owns in `to`. Collective. */
int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err);

#endif
