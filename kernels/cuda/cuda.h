/* cuda.h: the CUDA kernels, the counterpart of the CPU kernels in kernels.h. The comment at each
 * kernel gives its formula and the shapes of its arrays. kernels/ref defines the results.
 *
 *     sgt_cuda_residual_layernorm(stream, SGT_BF16, sum, out, mean, rstd, x, y, NULL, w, b, rows,
 *                                 C, 1e-5f, NULL);
 *
 * All pointers are to device memory, 16-byte aligned, and all arrays are row-major. `void *` arrays
 * have elements of the given `type`: activations, their gradients, and the working copies of
 * parameters. Statistics, losses, parameter gradients and sums are float32, and so is all
 * arithmetic in between. "+=" means that the kernel adds to what is in the output. A call enqueues
 * work on a stream and returns. It allocates nothing and waits for nothing. No kernel uses
 * floating-point atomics, so the same call always gives the same bits. If the driver rejects a
 * launch, cudaGetLastError reports the error.
 *
 * Every kernel also runs on the host (tests/kernels/host), and tests compare its results with those
 * of kernels/ref. */
#ifndef SGT_CUDA_H
#define SGT_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/outliers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_cuda_type { SGT_F32, SGT_BF16, SGT_F16 } sgt_cuda_type;
typedef struct CUstream_st *sgt_cuda_stream; /* cudaStream_t */

/* Results and factors that the kernels of a training step exchange. They are in device memory, so
 * that the host need not wait for results. Before the first step, the caller sets all fields to 0,
 * except growth_interval and the fields that a resumed run restores, such as loss_scale. */
typedef struct sgt_cuda_control {
    float lr; /* learning rate, set by sgt_cuda_begin_update */
    /* Factor by which the gradient of each target's loss is multiplied, about 1/(number of targets
     * in a step), so that gradients summed over all targets of a step are approximately means.
     * sgt_cuda_begin_micro_step sets the factor. */
    float micro_scale;
    /* Loss scale. If the training precision needs no loss scale, it stays 1. Otherwise it is halved
     * when a gradient overflows, and doubled after growth_interval steps without overflow. */
    float loss_scale;
    float dlogits_scale; /* scale of the logits' gradients: micro_scale * loss_scale */
    uint32_t good_steps; /* number of steps without overflow since loss_scale last changed */
    /* number of steps without overflow after which loss_scale is doubled; 0: loss_scale never
     * changes */
    uint32_t growth_interval;
    uint64_t step;    /* number of updates done */
    uint64_t skipped; /* number of updates skipped because of an overflow or a spike */
    /* loss: sum of the losses of the current step so far; targets: number of targets that these
     * losses belong to (ignored targets are not counted) */
    double loss, targets;
    /* sum of the squares of all gradients of the step. `loss`, `targets` and `squares` must be
     * adjacent, because a single all-reduce sums all three over the ranks. */
    double squares;
    double norm; /* norm of the mean gradient of the step, before clipping */
    /* factor that turns the summed gradients into means and undoes loss_scale; Muon multiplies
     * gradients by mean_scale, the other optimizers by grad_scale */
    float mean_scale;
    /* mean_scale times the clipping factor, which is 1 if gradients are not clipped */
    float grad_scale;
    /* 1: this update is skipped, because a gradient is infinite or NaN; else 0 */
    int32_t found_inf;
    double c1, c2; /* AdamW's bias corrections for this update (see sgt_adamw) */
    /* results of the step that ended last, for the host to read */
    double last_loss, last_targets, last_norm;
    float last_loss_scale;
    /* 1: this update is skipped, because sgt_cuda_spikes has found a spike; else 0 */
    int32_t spike;
    uint64_t spikes; /* number of updates skipped because of spikes */
} sgt_cuda_control;

/* Seed and position of the current micro-step in the run, of which dropout masks are a function
 * (kernels/dropout.h). The struct is in device memory, so that a captured CUDA graph uses new masks
 * each time it runs. The rows of a step are dealt to the ranks in turn: row b of this rank's
 * micro-step is row `row` + b*ranks of the step. */
typedef struct sgt_cuda_place {
    uint64_t seed, step;
    uint64_t row, ranks; /* ranks 0 means 1 */
} sgt_cuda_place;

typedef struct sgt_cuda_dropout {
    const sgt_cuda_place *place;
    /* number of activations in a row of the batch, T*C; not used for dropout of attention
     * probabilities, whose element numbers depend on H and T instead */
    uint64_t row_elements;
    uint32_t layer, site; /* site: an sgt_dropout_site */
    float rate;           /* probability with which an element is dropped; 0: no dropout */
} sgt_cuda_dropout;

/* Add token and position embeddings: out[i] = dropout(wte[ids[i]] + wpe[i % T])
 *   out (n, C), ids (n), wte (V, C), wpe (>=T, C)
 * In this kernel and all others, `drop` = NULL means that nothing is dropped. */
void sgt_cuda_embed(sgt_cuda_stream s, sgt_cuda_type type, void *out, const int32_t *ids,
                    const void *wte, const void *wpe, size_t n, size_t T, size_t C,
                    const sgt_cuda_dropout *drop);

/* Compute the permutation `order` that sorts ids and keeps the order of equal ids: sorted[i] =
 * ids[order[i]].
 *   sorted, order, ids (n), with 0 <= ids < V; scratch: sgt_cuda_embed_sort_scratch(n) bytes */
void sgt_cuda_embed_sort(sgt_cuda_stream s, int32_t *sorted, int32_t *order, const int32_t *ids,
                         size_t V, size_t n, void *scratch);
size_t sgt_cuda_embed_sort_scratch(size_t n);

/* Add the gradients of the embeddings: dwte[ids[i]] += dout[i], dwpe[i % T] += dout[i]
 *   dwte (V, C), dwpe (T, C) float; dout (n, C); sorted and order from sgt_cuda_embed_sort;
 *   scratch: sgt_cuda_embed_backward_scratch(n, C) bytes */
void sgt_cuda_embed_backward(sgt_cuda_stream s, sgt_cuda_type type, float *dwte, float *dwpe,
                             const int32_t *sorted, const int32_t *order, const void *dout,
                             size_t n, size_t T, size_t C, void *scratch);
size_t sgt_cuda_embed_backward_scratch(size_t n, size_t C);

/* sum = x + dropout(y + bias). Then compute, for each row of sum, its mean, rstd = 1/sqrt(var +
 * eps), and out = (sum - mean)*rstd*w + b.
 *   x, y, sum, out (n, C); bias (C) of x's type; w, b (C) float; mean, rstd (n); sum may be x; bias
 *   and drop may be NULL
 * If y is NULL, the kernel normalizes x instead of sum, and does not write sum. Here and in
 * sgt_cuda_layernorm_backward, C must be at most 12,672, because two floats per column must fit in
 * the shared memory of a block. */
void sgt_cuda_residual_layernorm(sgt_cuda_stream s, sgt_cuda_type type, void *sum, void *out,
                                 float *mean, float *rstd, const void *x, const void *y,
                                 const void *bias, const float *w, const float *b, size_t n,
                                 size_t C, float eps, const sgt_cuda_dropout *drop);

/* dx += dL/dx; dw += sum_i dout*xhat; db += sum_i dout, with xhat = (x - mean)*rstd
 *   dx, dout, x (n, C); w, dw, db (C) float
 *   scratch: sgt_cuda_layernorm_backward_scratch(type, n, C) bytes
 * If `first` is set, dx is overwritten instead of added to. Unless dbias is NULL, also add to dbias
 * (C) the sum of dx over all rows, after dx is rounded to `type`. */
void sgt_cuda_layernorm_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, int first,
                                 float *dw, float *db, float *dbias, const void *dout,
                                 const void *x, const float *mean, const float *rstd,
                                 const float *w, size_t n, size_t C, void *scratch);
size_t sgt_cuda_layernorm_backward_scratch(sgt_cuda_type type, size_t n, size_t C);

/* SGT_GELU_TANH: out = x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3)))
 *   SGT_GELU_ERF: out = 0.5 x erfc(-x/sqrt 2)
 *   n elements; out may be x */
void sgt_cuda_gelu(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x, size_t n,
                   sgt_gelu_kind kind);

/* dx = dout * gelu'(x)                                             n elements; dx may be dout */
void sgt_cuda_gelu_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, const void *dout,
                            const void *x, size_t n, sgt_gelu_kind kind);

/* loss_i = logsumexp(logits_i) - logits_i[target_i]
 *   dlogits_i = (softmax(logits_i) - onehot(target_i)) * *scale
 *   logits (n, ld), of which the first V columns are read; dlogits (n, ld), which may be logits
 * Columns V .. ld - 1 of dlogits become 0. If target_i < 0, row i is ignored: its loss and gradient
 * are 0. If scale is NULL, only the loss is computed. If a logit is NaN or +inf, the loss is
 * NaN. */
void sgt_cuda_cross_entropy(sgt_cuda_stream s, sgt_cuda_type type, void *dlogits,
                            const void *logits, float *loss, const int32_t *targets, size_t n,
                            size_t V, size_t ld, const float *scale);

/* Add the sum of the n elements of `loss` to c->loss, and the number of elements of `targets` that
 * are not negative (ignored) to c->targets.
 *   loss, targets (n) */
void sgt_cuda_loss_sum(sgt_cuda_stream s, sgt_cuda_control *c, const float *loss,
                       const int32_t *targets, size_t n);

/* Add the gradient of a bias: db[c] += sum_i dout[i][c] dout (n, C); db (C) float scratch:
 * sgt_cuda_bias_backward_scratch(n, C) bytes */
void sgt_cuda_bias_backward(sgt_cuda_stream s, sgt_cuda_type type, float *db, const void *dout,
                            size_t n, size_t C, void *scratch);
size_t sgt_cuda_bias_backward_scratch(size_t n, size_t C);

/* out = x * dropout factor
 *   n elements; out may be x; drop must not be NULL
 * The backward pass of dropout applies the same kernel to the gradient. It works in place for the
 * embeddings. For a residual branch, it writes to a different array, because the gradient of the
 * residual sum is still needed. */
void sgt_cuda_dropout_apply(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x,
                            size_t n, const sgt_cuda_dropout *drop);

/* For each position, the start and the end of the document that contains it, both counted in
 * positions from the start of the row. Both arrays are (B, T), in device memory. The end is the
 * start of the next document, or T for the last document of a row. If each row is one document,
 * attention takes NULL instead of this struct. */
typedef struct sgt_cuda_documents {
    int32_t *start, *end;
} sgt_cuda_documents;

/* Fill the arrays that `documents` points to. Element (b, t) of `starts`, a (B, T) array in device
 * memory, is the position at which the document that contains position t of row b begins. */
void sgt_cuda_place_documents(sgt_cuda_stream s, const sgt_cuda_documents *documents,
                              const int32_t *starts, size_t B, size_t T);

/* Parameters of attention: B sequences of T tokens, with H heads of D columns each. */
typedef struct sgt_cuda_heads {
    sgt_cuda_type type;
    /* method for float32 operands. 1: round them to TF32, which is fast; 0: compute each product as
     * three products of TF32 numbers, which is almost as exact as float32. Ignored for other
     * types. */
    int tf32;
    size_t B, T, H, D;
    float scale;
    const sgt_cuda_dropout *drop; /* dropout of the attention probabilities; NULL: no dropout */
    const sgt_cuda_documents *documents; /* NULL: each row is one document */
} sgt_cuda_heads;

/* Causal attention, with s_ij = scale q_i.k_j:
 *   out_i = sum_{a_i<=j<=i} dropout(softmax_j(s_ij)) v_j      lse_i = log sum_{a_i<=j<=i} exp(s_ij)
 *   qkv (B, T, 3, H, D), out (B, T, H, D), lse (B, H, T) float; D a multiple of 8, up to 128
 * a_i is the start of position i's document (documents->start), or 0 if documents is NULL. Tensor
 * cores multiply tile by tile, so no T x T matrix is stored. */
void sgt_cuda_attention(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, float *lse,
                        const void *qkv);

/* Compute dqkv, the gradient of sgt_cuda_attention with respect to qkv. dqkv has the shape of qkv.
 * delta is scratch memory of B*H*T floats. */
void sgt_cuda_attention_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dqkv,
                                 float *delta, const void *dout, const void *out, const float *lse,
                                 const void *qkv);
/* Return whether sgt_cuda_attention supports heads of size D. */
int sgt_cuda_attention_serves(size_t D);

/* Compute attention (this function) and its gradient (the next function) with TMA and wgmma. Both
 * functions work only on sm_90, for 16-bit types, and for D = 64 or 128. */
void sgt_cuda_attention_hopper(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, float *lse,
                               const void *qkv);
void sgt_cuda_attention_hopper_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dqkv,
                                        float *delta, const void *dout, const void *out,
                                        const float *lse, const void *qkv);
/* Return whether sgt_cuda_attention_hopper and its backward pass can be used: the current device is
 * sm_90, and the functions support `type` and D. */
int sgt_cuda_attention_hopper_serves(sgt_cuda_type type, size_t D);

/* Copy a batch's inputs and targets to separate arrays. A target equal to `ignore` becomes -1.
 *   batch (2, n): n inputs, then n targets; inputs, targets (n) */
void sgt_cuda_take_batch(sgt_cuda_stream s, int32_t *inputs, int32_t *targets, const int32_t *batch,
                         size_t n, int32_t ignore);

/* Begin a micro-step: set c->micro_scale, c->dlogits_scale and all fields of *place except `ranks`.
 * The call launches a kernel that writes these values to device memory, where a captured CUDA graph
 * reads them. All micro-steps of a step must have the same micro_scale, because their gradients are
 * added up. */
void sgt_cuda_begin_micro_step(sgt_cuda_stream s, sgt_cuda_control *c, sgt_cuda_place *place,
                               float micro_scale, uint64_t seed, uint64_t step, uint64_t row);

/* Begin an update in step number `step` of the run, counted from 0. Set lr, and set c->step to the
 * number of updates done so far: `step` minus the number of skipped updates. AdamW's bias
 * corrections depend on c->step. */
void sgt_cuda_begin_update(sgt_cuda_stream s, sgt_cuda_control *c, float lr, uint64_t step);

/* Compute what an update needs from the gradients.
 *
 * sgt_cuda_grad_squares adds the sum of g^2 to c->squares. Call sgt_cuda_grad_squares once for each
 * array of gradients. Then the ranks all-reduce `loss`, `targets` and `squares`. Then
 * sgt_cuda_grad_finish computes
 *   norm, found_inf, and AdamW's c1 and c2
 *   mean_scale = 1/(dlogits_scale * targets)
 *   grad_scale = min(1, clip/(norm + 1e-6)) * mean_scale, or mean_scale if `clip` is 0
 * sgt_cuda_end_step resets the sums to 0.
 *   scratch: sgt_cuda_grad_norm_scratch() bytes */
size_t sgt_cuda_grad_norm_scratch(void);
void sgt_cuda_grad_squares(sgt_cuda_stream s, sgt_cuda_control *c, const float *g, size_t n,
                           void *scratch);
void sgt_cuda_grad_finish(sgt_cuda_stream s, sgt_cuda_control *c, float clip, float beta1,
                          float beta2);

/* Decide whether to skip this update because of a spike (outliers.h), and set `spike` and `spikes`.
 * The step is a spike if its loss or its norm is more than z standard deviations above the mean of
 * earlier steps. *o, in device memory, is the history of the losses and norms of earlier steps.
 * Call this after the norm is computed and before the update. */
void sgt_cuda_spikes(sgt_cuda_stream s, sgt_cuda_control *c, sgt_outliers *o, double z);

/* Update the parameters p of a flat buffer by the formula at sgt_adamw, with lr, c1, c2 and
 * grad_scale from *c. Unless `copy` is NULL, also convert the new p to `type` and store it in
 * `copy`. If found_inf or `spike` is set, do not update p, m, v and `copy`. In either case, set g
 * to 0 for the next step unless `keep` is set.
 *   p, m, v, g (n) float; copy (n); weight decay applies only to the first `decayed` elements */
void sgt_cuda_adamw(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *m, float *v,
                    float *g, size_t n, size_t decayed, int keep, const sgt_adamw *a,
                    const sgt_cuda_control *c);

/* Update the parameters p with the formula at sgt_sgd (kernels.h), with lr and grad_scale from *c.
 * `copy`, `keep`, found_inf and `spike` have the same effect as in sgt_cuda_adamw. */
void sgt_cuda_sgd_update(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *m,
                         float *g, size_t n, size_t decayed, int keep, const sgt_sgd *o,
                         const sgt_cuda_control *c);

/* ---- Muon's update (kernels/muon.h), without its matrix products ---- */

/* Update the momentum m, and replace the gradients g with the steps of Nesterov momentum, which
 * Muon then orthogonalizes:
 *   g' = g*mean_scale   m = .95*m + .05*g'   g = .05*g' + .95*m
 *   m, g (n) float
 * If found_inf or `spike` is set, do nothing. */
void sgt_cuda_muon_momentum(sgt_cuda_stream s, float *m, float *g, size_t n,
                            const sgt_cuda_control *c);

/* Layout of `matrices` matrices that all have the same shape, with n elements each. Matrix i begins
 * at index i*stride in the arrays of parameters and gradients, and at index i*stride_x in x, the
 * working array of Muon. The first matrix and both strides are aligned to 16 bytes. */
typedef struct sgt_cuda_matrices {
    size_t n, matrices, stride, stride_x;
} sgt_cuda_matrices;

/* For each matrix u, set x = u / max(|u|, 1e-7), converted to `type`. |u| is the Frobenius norm.
 *   u: float array in which matrices are `stride` apart; scratch: sgt_cuda_muon_scratch() bytes */
size_t sgt_cuda_muon_scratch(size_t matrices);
void sgt_cuda_muon_normalize(sgt_cuda_stream s, sgt_cuda_type type, void *x, const float *u,
                             const sgt_cuda_matrices *l, void *scratch);

/* Set p = p*(1 - lr*decay) - lr*reach*x, with lr from *c, where `reach` is .2*sqrt(max(rows,
 * columns)). Unless `copy` is NULL, also convert the new p to `type` and store it in `copy`. If
 * found_inf or `spike` is set, change neither p nor `copy`. In all cases, set g to 0 for the next
 * step unless `keep` is set.
 *   p, g (float) and copy: arrays in which matrices are `stride` apart */
void sgt_cuda_muon_update(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *g,
                          const void *x, const sgt_cuda_matrices *l, float decay, float reach,
                          int keep, const sgt_cuda_control *c);

/* End a step: update `step`, `skipped` and the loss scale, save the step's results in the fields
 * last_* for the host, and set the sums `loss`, `targets` and `squares` to 0 for the next step. */
void sgt_cuda_end_step(sgt_cuda_stream s, sgt_cuda_control *c);

/* ---- separate kernels for the operations of fused kernels (--no-fuse) ---- */

/* Convert n floats: out = x, rounded to `type`. This makes the working copies of the parameters. */
void sgt_cuda_convert(sgt_cuda_stream s, sgt_cuda_type type, void *out, const float *x, size_t n);

/* Add two arrays: out = x + y n elements; out may be x or y */
void sgt_cuda_add(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x, const void *y,
                  size_t n);

/* x[i] += b                                                         x (n, C), b (C) */
void sgt_cuda_add_bias(sgt_cuda_stream s, sgt_cuda_type type, void *x, const void *b, size_t n,
                       size_t C);

/* Multiply all n gradients by c->grad_scale, then set c->grad_scale to 1, so that the update does
 * not multiply by it again. Call this once per update. */
void sgt_cuda_scale(sgt_cuda_stream s, sgt_cuda_control *c, float *g, size_t n);

/* ---- attention that stores all scores (--attention naive), without its matrix products ----
 *   forward    split_heads;  scores = q k^T;  causal_softmax;  drop_probs;  o = dropped v;
 *              join_heads of o
 *   backward   split_heads of dout;  dv = dropped^T do;  dprobs = do v^T;
 *              causal_softmax_backward;  dq = dscores k;  dk = dscores^T q;  join_heads
 * The backward pass needs the probabilities before dropout. Without dropout, `dropped` is the same
 * array as these probabilities. */

/* Copy between the layout of activations and the layout that the matrix products of each head need:
 *   split_heads  (B, T, 3, H, D) to three arrays q, k, v of (B, H, T, D); join_heads: the inverse
 * If k and v are NULL, convert between (B, T, H, D) and q. */
void sgt_cuda_split_heads(sgt_cuda_stream s, const sgt_cuda_heads *a, void *q, void *k, void *v,
                          const void *qkv);
void sgt_cuda_join_heads(sgt_cuda_stream s, const sgt_cuda_heads *a, void *qkv, const void *q,
                         const void *k, const void *v);

/* Replace the scores s with probabilities p: p_ij is the softmax of scale s_ij over a_i <= j <= i,
 * and 0 for all other j. a_i is the start of position i's document (documents->start), or 0 if
 * `documents` is NULL.
 *   scores (B, H, T, T) */
void sgt_cuda_causal_softmax(sgt_cuda_stream s, const sgt_cuda_heads *a, void *scores);

/* Apply dropout: out_ij = p_ij * f_ij, where p is `probs` and f_ij is the dropout factor
 *   out, probs (B, H, T, T); out may be probs */
void sgt_cuda_drop_probs(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, const void *probs);

/* ds_ij = scale p_ij (f_ij dp_ij - sum_k p_ik f_ik dp_ik), or 0 if j > i or j < a_i
 *   dprobs (B, H, T, T): on entry dp, the gradients of the probabilities after dropout; on return
 *   ds, the gradients of the scores. f_ij: dropout factor, 1 without dropout */
void sgt_cuda_causal_softmax_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dprobs,
                                      const void *probs);

#ifdef __cplusplus
}
#endif
#endif
