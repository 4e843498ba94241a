/* cuda.h: the table of CUDA kernels, mirroring kernels.h. Each kernel has one name, one signature,
 * and a line that gives its formula and shapes. kernels/ref defines the results.
 *
 *     sgt_cuda_residual_layernorm(stream, SGT_BF16, sum, out, mean, rstd, x, y, NULL, w, b, rows,
 *                                 C, 1e-5f, NULL);
 *
 * All pointers are to device memory, 16-byte aligned, and all arrays are row-major. `void *` arrays
 * hold numbers of the given type (activations and the parameters' working copies). Statistics,
 * losses, parameter gradients and sums are float32, and so is all arithmetic in between. "+=" means
 * that the kernel adds to the output. A call puts work on a stream and returns; it allocates
 * nothing and waits for nothing. No kernel uses floating-point atomics, so the same call always
 * gives the same bits. If the driver refuses a launch, cudaGetLastError reports it.
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

/* State that controls a step, in device memory, so that the host need not wait for results.
 * Initialize it to zeros, except growth_interval and the loss scale's fields. */
typedef struct sgt_cuda_control {
    float lr; /* learning rate, set by sgt_cuda_begin_update */
    /* factor of each target's loss, about 1/targets; set by sgt_cuda_begin_micro_step */
    float micro_scale;
    /* 1 if the precision needs no loss scaling; otherwise it is halved on overflow and doubled
     * after growth_interval good steps */
    float loss_scale;
    float dlogits_scale;      /* micro_scale * loss_scale, for sgt_cuda_cross_entropy */
    uint32_t good_steps;      /* steps without overflow since the scale last changed */
    uint32_t growth_interval; /* good steps until the scale doubles; 0: the scale stays */
    uint64_t step;            /* number of updates done */
    uint64_t skipped;         /* number of updates skipped because of an overflow or a spike */
    /* sums over this step: the losses, and the number of targets that are not ignored */
    double loss, targets;
    /* sum of squared gradients; ranks all-reduce loss, targets and squares together */
    double squares;
    double norm;       /* norm of the averaged gradient, before clipping */
    float mean_scale;  /* factor that averages and unscales the gradients, for Muon */
    float grad_scale;  /* the same factor with clipping, for all other gradients */
    int32_t found_inf; /* 1 if a gradient is infinite or NaN; this update is then skipped */
    double c1, c2;     /* AdamW's bias corrections of this update */
    /* results of the step before, for the host to read */
    double last_loss, last_targets, last_norm;
    float last_loss_scale;
    int32_t last_found_inf;
    int32_t spike;   /* 1 if this update is skipped because of a spike; set by sgt_cuda_spikes */
    uint64_t spikes; /* number of updates skipped because of spikes */
} sgt_cuda_control;

/* Dropout as kernels/dropout.h defines it. sgt_cuda_place determines which random numbers are
 * drawn. It is in device memory, so that a CUDA graph draws new ones each time it runs. Row b of
 * this micro-step is row `row + b*ranks` of the step. */
typedef struct sgt_cuda_place {
    uint64_t seed, step;
    uint64_t row, ranks; /* ranks 0 means 1 */
} sgt_cuda_place;

typedef struct sgt_cuda_dropout {
    const sgt_cuda_place *place;
    uint64_t row_elements; /* numbers in a row of the batch, T*C; attention does not use it */
    uint32_t layer, site;  /* site: an sgt_dropout_site */
    float rate;            /* fraction of numbers that are dropped; 0: none */
} sgt_cuda_dropout;

/* out[i] = dropout(wte[ids[i]] + wpe[i % T])
 *   out (n, C), ids (n), wte (V, C), wpe (>=T, C)
 * Here and elsewhere, nothing is dropped if drop is NULL. */
void sgt_cuda_embed(sgt_cuda_stream s, sgt_cuda_type type, void *out, const int32_t *ids,
                    const void *wte, const void *wpe, size_t n, size_t T, size_t C,
                    const sgt_cuda_dropout *drop);

/* Compute the permutation that sorts ids and keeps the order of equal ids: sorted[i] =
 * ids[order[i]].
 *   sorted, order, ids (n), with 0 <= ids < V; scratch: sgt_cuda_embed_sort_scratch(n) bytes */
void sgt_cuda_embed_sort(sgt_cuda_stream s, int32_t *sorted, int32_t *order, const int32_t *ids,
                         size_t V, size_t n, void *scratch);
size_t sgt_cuda_embed_sort_scratch(size_t n);

/* dwte[ids[i]] += dout[i], dwpe[i % T] += dout[i]
 *   dwte (V, C), dwpe (T, C) float; dout (n, C); sorted and order from sgt_cuda_embed_sort;
 *   scratch: sgt_cuda_embed_backward_scratch(n, C) bytes */
void sgt_cuda_embed_backward(sgt_cuda_stream s, sgt_cuda_type type, float *dwte, float *dwpe,
                             const int32_t *sorted, const int32_t *order, const void *dout,
                             size_t n, size_t T, size_t C, void *scratch);
size_t sgt_cuda_embed_backward_scratch(size_t n, size_t C);

/* sum = x + dropout(y + bias); then, for each row of sum: mean, rstd = 1/sqrt(var + eps), out =
 * (sum - mean)*rstd*w + b
 *   x, y, sum, out (n, C); bias (C) like x; w, b (C) float; mean, rstd (n); sum may be x; bias and
 *   drop may be NULL
 * If y is NULL, x takes the place of sum, and sum is not written. Here and in
 * sgt_cuda_layernorm_backward, C is at most 12,672, because two floats per column must fit in a
 * block's shared memory. */
void sgt_cuda_residual_layernorm(sgt_cuda_stream s, sgt_cuda_type type, void *sum, void *out,
                                 float *mean, float *rstd, const void *x, const void *y,
                                 const void *bias, const float *w, const float *b, size_t n,
                                 size_t C, float eps, const sgt_cuda_dropout *drop);

/* dx += dL/dx; dw += sum_i dout*xhat; db += sum_i dout, with xhat = (x - mean)*rstd
 *   dx, dout, x (n, C); w, dw, db (C) float
 *   scratch: sgt_cuda_layernorm_backward_scratch(n, C) bytes
 * If `first` is set, dx is overwritten: dx = dL/dx. */
void sgt_cuda_layernorm_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, int first,
                                 float *dw, float *db, const void *dout, const void *x,
                                 const float *mean, const float *rstd, const float *w, size_t n,
                                 size_t C, void *scratch);
size_t sgt_cuda_layernorm_backward_scratch(size_t n, size_t C);

/* Compute sgt_cuda_residual_layernorm with the same bits, for rows that a warp can keep in
 * registers (see sgt_cuda_layernorm_rows_serves). If y is NULL, sum, bias and drop are not used. */
void sgt_cuda_layernorm_rows(sgt_cuda_stream s, sgt_cuda_type type, void *sum, void *out,
                             float *mean, float *rstd, const void *x, const void *y,
                             const void *bias, const float *w, const float *b, size_t n, size_t C,
                             float eps, const sgt_cuda_dropout *drop);

/* Compute sgt_cuda_layernorm_backward with the same dx, for rows that a warp can keep in registers.
 * Unless dbias is NULL, also add to dbias (C) the sum over all rows of dx as rounded to `type`. A
 * row must be a multiple of 16 bytes; C is at most 1,280 for 16-bit types and 768 for float. */
void sgt_cuda_layernorm_rows_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, int first,
                                      float *dw, float *db, float *dbias, const void *dout,
                                      const void *x, const float *mean, const float *rstd,
                                      const float *w, size_t n, size_t C, void *scratch);
size_t sgt_cuda_layernorm_rows_scratch(sgt_cuda_type type, size_t n, size_t C);
int sgt_cuda_layernorm_rows_serves(sgt_cuda_type type, size_t C);

/* kind tanh: out = x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3)))
 * kind erf: out = 0.5 x erfc(-x/sqrt 2)
 *   n numbers; out may be x */
void sgt_cuda_gelu(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x, size_t n,
                   sgt_gelu_kind kind);

/* dx = dout * gelu'(x)                                              n numbers; dx may be dout */
void sgt_cuda_gelu_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, const void *dout,
                            const void *x, size_t n, sgt_gelu_kind kind);

/* loss_i = logsumexp(logits_i) - logits_i[target_i]
 * dlogits_i = (softmax(logits_i) - onehot(target_i)) * *scale; columns V..ld become 0
 *   logits (n, ld), of which V columns are read; dlogits (n, ld), which may be logits
 * If target_i < 0, row i is ignored: its loss and gradient are 0. If scale is NULL, only the loss
 * is computed. A NaN or +inf among the logits makes the loss NaN. */
void sgt_cuda_cross_entropy(sgt_cuda_stream s, sgt_cuda_type type, void *dlogits,
                            const void *logits, float *loss, const int32_t *targets, size_t n,
                            size_t V, size_t ld, const float *scale);

/* c->loss += sum of losses, c->targets += number of targets >= 0 loss, targets (n) */
void sgt_cuda_loss_sum(sgt_cuda_stream s, sgt_cuda_control *c, const float *loss,
                       const int32_t *targets, size_t n);

/* db[c] += sum_i dout[i][c]                                         dout (n, C); db (C) float
 * scratch: sgt_cuda_bias_backward_scratch(n, C) bytes */
void sgt_cuda_bias_backward(sgt_cuda_stream s, sgt_cuda_type type, float *db, const void *dout,
                            size_t n, size_t C, void *scratch);
size_t sgt_cuda_bias_backward_scratch(size_t n, size_t C);

/* out = x * dropout factor; or a copy of x if drop is NULL
 *   n numbers; out may be x
 * This is also the gradient of dropout. For embeddings it is computed in place. For a residual
 * branch it is computed out of place, because the gradient of the sum is still needed. */
void sgt_cuda_dropout_apply(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x,
                            size_t n, const sgt_cuda_dropout *drop);

/* Start and end of each position's document within its row: (B, T) on the device. The end is the
 * start of the next document, or the row's length. Attention takes NULL if each row is one
 * document. */
typedef struct sgt_cuda_documents {
    int32_t *start, *end;
} sgt_cuda_documents;

/* Fill *documents from `starts` (B, T) on the device, the start of each position's document. */
void sgt_cuda_place_documents(sgt_cuda_stream s, const sgt_cuda_documents *documents,
                              const int32_t *starts, size_t B, size_t T);

/* The inputs that attention works on: B sequences of T tokens, with H heads of D numbers each. */
typedef struct sgt_cuda_heads {
    sgt_cuda_type type;
    int tf32; /* 1: round float32 operands to TF32; 0: use three TF32 products for each */
    size_t B, T, H, D;
    float scale;
    const sgt_cuda_dropout *drop;        /* dropout of probabilities; NULL: none */
    const sgt_cuda_documents *documents; /* NULL: each row is one document */
} sgt_cuda_heads;

/* Causal attention, with s_ij = scale q_i.k_j:
 *   out_i = sum_{a_i<=j<=i} dropout(softmax_j(s_ij)) v_j      lse_i = log sum_{a_i<=j<=i} exp(s_ij)
 *   qkv (B, T, 3, H, D), out (B, T, H, D), lse (B, H, T) float; D a multiple of 8, up to 128
 * a_i is documents->start of i, or 0 if documents is NULL. Tensor cores multiply tile by tile, so
 * no T x T matrix is stored. */
void sgt_cuda_attention(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, float *lse,
                        const void *qkv);

/* Compute the gradient of sgt_cuda_attention: dqkv, with the shape of qkv. delta is scratch of
 * B*H*T floats. */
void sgt_cuda_attention_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dqkv,
                                 float *delta, const void *dout, const void *out, const float *lse,
                                 const void *qkv);
/* return whether sgt_cuda_attention supports heads of size D */
int sgt_cuda_attention_serves(size_t D);

/* Compute attention and its gradient with TMA and wgmma. This works only on sm_90, for 16-bit types
 * and D = 64 or 128. */
void sgt_cuda_attention_hopper(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, float *lse,
                               const void *qkv);
void sgt_cuda_attention_hopper_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dqkv,
                                        float *delta, const void *dout, const void *out,
                                        const float *lse, const void *qkv);
/* Return whether the two _hopper functions support the type and D, and this device is sm_90. */
int sgt_cuda_attention_hopper_serves(sgt_cuda_type type, size_t D);

/* Copy a batch's inputs and targets. A target equal to `ignore` becomes -1.
 *   batch (2, n): inputs, then targets; inputs, targets (n) */
void sgt_cuda_take_batch(sgt_cuda_stream s, int32_t *inputs, int32_t *targets, const int32_t *batch,
                         size_t n, int32_t ignore);

/* Begin a micro-step: set micro_scale, dlogits_scale and the place from launch arguments, which
 * reach a CUDA graph without a copy. All micro-steps of a step must have the same micro_scale,
 * because their gradients are added. place->ranks is not changed. */
void sgt_cuda_begin_micro_step(sgt_cuda_stream s, sgt_cuda_control *c, sgt_cuda_place *place,
                               float micro_scale, uint64_t seed, uint64_t step, uint64_t row);

/* Begin an update: set lr, and set c->step to `step`, the run's step number counted from 0, minus
 * the number of skipped updates. */
void sgt_cuda_begin_update(sgt_cuda_stream s, sgt_cuda_control *c, float lr, uint64_t step);

/* Before an update, compute norm, found_inf, c1, c2, mean_scale = 1/(dlogits_scale * targets), and
 * grad_scale = min(1, clip/(norm + 1e-6)) * mean_scale from all n gradients. If clip is 0, there is
 * no clipping. scratch: sgt_cuda_grad_norm_scratch() bytes. */
void sgt_cuda_grad_norm(sgt_cuda_stream s, sgt_cuda_control *c, const float *g, size_t n,
                        float clip, float beta1, float beta2, void *scratch);
size_t sgt_cuda_grad_norm_scratch(void);

/* Do the same in two steps, for gradients in several parts. Call sgt_cuda_grad_squares once per
 * part: it adds the sum of g^2 to c->squares. After the ranks have all-reduced loss, targets and
 * squares, sgt_cuda_grad_finish computes the rest. sgt_cuda_end_step resets the sums to 0. */
void sgt_cuda_grad_squares(sgt_cuda_stream s, sgt_cuda_control *c, const float *g, size_t n,
                           void *scratch);
void sgt_cuda_grad_finish(sgt_cuda_stream s, sgt_cuda_control *c, float clip, float beta1,
                          float beta2);

/* Set spike and spikes from this step's loss and norm (outliers.h). Call it after the norm is
 * computed and before the update. *o is in device memory. */
void sgt_cuda_spikes(sgt_cuda_stream s, sgt_cuda_control *c, sgt_outliers *o, double z);

/* Unless found_inf or spike is set, update a flat buffer as sgt_adamw does, with lr, c1, c2 and
 * grad_scale from *c, and set copy = p converted to `type` (unless copy is NULL). In any case, set
 * g = 0 (unless `keep` is set).
 *   p, m, v, g (n) float; copy (n); weight decay applies only to the first `decayed` numbers */
void sgt_cuda_adamw(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *m, float *v,
                    float *g, size_t n, size_t decayed, int keep, const sgt_adamw *a,
                    const sgt_cuda_control *c);

/* Update a flat buffer as sgt_sgd does, with lr and grad_scale from *c; otherwise like
 * sgt_cuda_adamw. */
void sgt_cuda_sgd_update(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *m,
                         float *g, size_t n, size_t decayed, int keep, const sgt_sgd *o,
                         const sgt_cuda_control *c);

/* ---- Muon (kernels/muon.h): the passes before and after its matrix products ---- */

/* Unless found_inf or spike is set, update the momentum, and replace the gradients by Nesterov's
 * steps: g' = g*mean_scale; m = .95*m + .05*g'; g = .05*g' + .95*m.          m, g (n) float */
void sgt_cuda_muon_momentum(sgt_cuda_stream s, float *m, float *g, size_t n,
                            const sgt_cuda_control *c);

/* `matrices` matrices of n numbers each. Matrix i begins at i*stride in a flat array and at x +
 * i*stride_x. Both strides, and the beginning of the first matrix, are aligned to 16 bytes. */
typedef struct sgt_cuda_matrices {
    size_t n, matrices, stride, stride_x;
} sgt_cuda_matrices;

/* For each matrix: x = u / max(|u|, 1e-7), with the Frobenius norm of u, converted to the type.
 *   u float, with `stride`; scratch: sgt_cuda_muon_scratch(matrices) bytes */
size_t sgt_cuda_muon_scratch(size_t matrices);
void sgt_cuda_muon_normalize(sgt_cuda_stream s, sgt_cuda_type type, void *x, const float *u,
                             const sgt_cuda_matrices *l, void *scratch);

/* Unless found_inf or spike is set: p = p*(1 - lr*decay) - lr*reach*x with lr from *c, and copy = p
 * converted to the type (unless copy is NULL). In any case, set g = 0 (unless `keep` is set).
 *   p, g float and copy, with `stride` */
void sgt_cuda_muon_update(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *g,
                          const void *x, const sgt_cuda_matrices *l, float decay, float reach,
                          int keep, const sgt_cuda_control *c);

/* End a step: set step, skipped, the loss scale, and the last_* fields for the host, and reset the
 * step's sums to 0. */
void sgt_cuda_end_step(sgt_cuda_stream s, sgt_cuda_control *c);

/* ---- the operations of the fused kernels, as separate kernels (--no-fuse) ---- */

/* out = x (float) converted to the type, for the parameters' working copies; n numbers */
void sgt_cuda_convert(sgt_cuda_stream s, sgt_cuda_type type, void *out, const float *x, size_t n);

/* out = x + y                                                       n numbers; out may be x or y */
void sgt_cuda_add(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x, const void *y,
                  size_t n);

/* x[i] += b                                                         x (n, C), b (C) */
void sgt_cuda_add_bias(sgt_cuda_stream s, sgt_cuda_type type, void *x, const void *b, size_t n,
                       size_t C);

/* g *= c->grad_scale, which then becomes 1, so that the update does not apply it again. Call it
 * once, with all n gradients. */
void sgt_cuda_scale(sgt_cuda_stream s, sgt_cuda_control *c, float *g, size_t n);

/* ---- attention with whole matrices (--attention naive), except batched matrix products ----
 *   forward    split_heads;  scores = q k^T;  causal_softmax;  drop_probs;  o = dropped v;
 *              merge_heads
 *   backward   split_head of dout;  dv = dropped^T do;  dprobs = do v^T;  causal_softmax_backward;
 *              dq = dscores k;  dk = dscores^T q;  join_heads
 * The backward pass needs the probabilities before dropout. Without dropout, they are also what is
 * multiplied by v. */

/* split_heads splits (B, T, 3, H, D) into q, k, v of (B, H, T, D), and join_heads joins them again.
 * split_head and merge_heads convert between (B, T, H, D) and a single (B, H, T, D). */
void sgt_cuda_split_heads(sgt_cuda_stream s, const sgt_cuda_heads *a, void *q, void *k, void *v,
                          const void *qkv);
void sgt_cuda_join_heads(sgt_cuda_stream s, const sgt_cuda_heads *a, void *qkv, const void *q,
                         const void *k, const void *v);
void sgt_cuda_split_head(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, const void *x);
void sgt_cuda_merge_heads(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, const void *x);

/* Replace scores (B, H, T, T) by p_ij: the softmax of scale s_ij over a_i <= j <= i, and 0 for
 * other j. a_i is documents->start of i, or 0 if documents is NULL. */
void sgt_cuda_causal_softmax(sgt_cuda_stream s, const sgt_cuda_heads *a, void *scores);

/* out_ij = p_ij * dropout factor f_ij, (B, H, T, T); out may be probs */
void sgt_cuda_drop_probs(sgt_cuda_stream s, const sgt_cuda_heads *a, void *out, const void *probs);

/* ds_ij = scale p_ij (f_ij dp_ij - sum_k p_ik f_ik dp_ik), or 0 if j > i or j < a_i
 *   dprobs (B, H, T, T) is replaced by ds; f: dropout factor, 1 without dropout */
void sgt_cuda_causal_softmax_backward(sgt_cuda_stream s, const sgt_cuda_heads *a, void *dprobs,
                                      const void *probs);

#ifdef __cplusplus
}
#endif
#endif
