/* kernels.h: the table of CPU kernels. Each kernel has one name, one signature, and a line that
 * gives its formula and shapes.
 *
 *     const sgt_kernels *k = sgt_kernels_cpu();                 // the best for this machine
 *     k->layernorm(out, mean, rstd, x, w, b, rows, C, 1e-5f);
 *
 * All arrays are row-major float32 unless stated otherwise; "+=" means that the kernel adds to the
 * output. Kernels run on the calling thread, allocate nothing and cannot fail. The backend cuts
 * work into tiles that do not depend on the number of threads, so any number of threads gives the
 * same bits. kernels/ref defines the results: plain C with double sums and the same signatures.
 * Rows need no alignment. No kernel reads or writes outside the shapes given here. */
#ifndef SGT_KERNELS_H
#define SGT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_gelu_kind { SGT_GELU_TANH, SGT_GELU_ERF } sgt_gelu_kind;

/* AdamW, Loshchilov & Hutter 2017 (decoupled decay), with bias correction:
 *   g' = g*grad_scale   m = b1*m + (1-b1)*g'   v = b2*v + (1-b2)*g'^2
 *   p -= lr*(m/c1 / (sqrt(v/c2) + eps) + decay*p)
 * with c1 = 1 - b1^t, c2 = 1 - b2^t for the t-th update (t from 1); p on the right is the value
 * before the update. */
typedef struct sgt_adamw {
    float lr, beta1, beta2, eps, decay, grad_scale;
    double c1, c2;
} sgt_adamw;

/* Parameters of the random numbers for stochastic rounding. Each number is a pure function of
 * (seed, draw, element). */
typedef struct sgt_random {
    uint64_t seed, draw; /* draw: from sgt_moments_draw(step), kernels/moments.h */
    uint64_t first;      /* element number of the array's first number */
} sgt_random;

/* Stochastic gradient descent with momentum (Polyak 1964), optionally Nesterov's, with decay
 * decoupled as in AdamW:
 *   g' = g*grad_scale   m = momentum*m + g'
 *   p -= lr*((nesterov ? g' + momentum*m : m) + decay*p) */
typedef struct sgt_sgd {
    float lr, momentum, decay, grad_scale;
    int nesterov;
} sgt_sgd;

/* Parameters of sgt_dropout_factor (dropout.h), which decides which numbers are dropped and scales
 * the others. */
typedef struct sgt_dropout {
    uint64_t seed, draw; /* draw: from sgt_dropout_draw(step, layer, site) */
    uint64_t first;      /* element number of the array's first number */
    float rate;
} sgt_dropout;

/* Parameters of normally distributed random numbers with mean 0. Each number is a pure function of
 * (seed, draw, element). */
typedef struct sgt_normals {
    uint64_t seed, draw;
    uint64_t first; /* element number of the array's first number */
    float sigma;
} sgt_normals;

typedef enum sgt_rounding { SGT_FORMAT_BF16, SGT_FORMAT_FP16 } sgt_rounding;

typedef struct sgt_kernels {
    const char *level; /* "ref", "plain", "avx2", "avx512", "amx" */

    /* out[i] = wte[ids[i]] + wpe[(row0 + i) % T]
     *   out (n, C), ids (n), wte (V, C), wpe (>=T, C)
     * If n is 1, out may be the row wte[ids[0]] itself. */
    void (*embed)(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                  size_t n, size_t T, size_t C);

    /* dwte[ids[i]][c] += dout[i][c], dwpe[i % T][c] += dout[i][c] for columns c0 <= c < c1, in
     * order of i
     *   dout (n, C)
     * Returns by how much the sum of squares of dwte has grown. */
    double (*embed_backward)(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                             size_t n, size_t T, size_t C, size_t c0, size_t c1);

    /* mean, rstd = 1/sqrt(var + eps), out = (x - mean)*rstd*w + b
     *   x, out (n, C); mean, rstd (n) */
    void (*layernorm)(float *out, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t n, size_t C, float eps);

    /* sum = x + y, then layernorm of sum; sum may be x               x, y, sum, out (n, C) */
    void (*residual_layernorm)(float *sum, float *out, float *mean, float *rstd, const float *x,
                               const float *y, const float *w, const float *b, size_t n, size_t C,
                               float eps);

    /* dx += dL/dx;  dw += sum_i dout*xhat;  db += sum_i dout, with xhat = (x - mean)*rstd
     *   dx, dout, x (n, C); dw, db (C) */
    void (*layernorm_backward)(float *dx, float *dw, float *db, const float *dout, const float *x,
                               const float *mean, const float *rstd, const float *w, size_t n,
                               size_t C);

    /* tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)));  erf: 0.5 x (1 + erf(x/sqrt 2))
     *                                                                n numbers; out may be x */
    void (*gelu)(float *out, const float *x, size_t n, sgt_gelu_kind kind);

    /* dx = dout * gelu'(x)                                           n numbers; dx may be dout */
    void (*gelu_backward)(float *dx, const float *dout, const float *x, size_t n,
                          sgt_gelu_kind kind);

    /* out[i] = x[i] times the dropout factor of element d->first + i, for i < n; out may be x */
    void (*dropout)(float *out, const float *x, size_t n, const sgt_dropout *d);

    /* out[i] = sigma sqrt(-2 ln u) cos(2 pi v), with sin instead of cos for odd elements. u and v
     * come from the Philox draw that gives element first + i (a draw gives four). Every level gives
     * the same bits. */
    void (*normals)(float *out, size_t n, const sgt_normals *d);

    /* One head of one sequence, causal, with s_ij = scale q_i.k_j:
     *   out_i = sum_{a_i<=j<=i} f_ij softmax_j(s_ij) v_j      lse_i = log sum_{a_i<=j<=i} exp(s_ij)
     *   q, k, v (T, D), row stride `ld` floats; out (T, D), row stride ld_out; lse (T)
     * a_i = start[i] is where the document of i begins; it is at least start[i - 1] and at most i.
     * If start is NULL, a_i = 0. f_ij is the dropout factor of element first + i*((T + 3)/4*4) + j,
     * where first is a multiple of 4; if drop is NULL, f_ij = 1. The T x T scores are never stored.
     * scratch holds attention_scratch(T, D) floats of any content, SGT_ARENA_ALIGN-aligned. */
    void (*attention)(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                      const float *v, size_t ld, size_t T, size_t D, float scale,
                      const sgt_dropout *drop, const int32_t *start, float *scratch);

    /* Write the gradients of attention without adding to what was there: dq, dk, dv (T, D) with row
     * stride ld_d. dout has the shape and row stride of out. */
    void (*attention_backward)(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                               const float *out, size_t ld_out, const float *lse, const float *q,
                               const float *k, const float *v, size_t ld, size_t T, size_t D,
                               float scale, const sgt_dropout *drop, const int32_t *start,
                               float *scratch);
    size_t (*attention_scratch)(size_t T, size_t D); /* size in floats, enough for either pass */

    /* Used if sgt_head_possible returns 0; otherwise sgt_head_run computes the loss.
     *   loss_i = logsumexp(logits_i) - logits_i[target_i]
     *   logits_i := (softmax(logits_i) - onehot(target_i)) * scale in place; columns V..ld become 0
     *   logits (n, V) with row stride ld >= V; the last row has ld columns too
     * A row whose target is negative is ignored: its loss and gradient are 0. If scale is 0, only
     * the loss is computed and the logits stay as they are. A NaN or +inf among the logits makes
     * the loss NaN. */
    void (*cross_entropy)(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                          size_t ld, float scale);

    /* out[i][j] = x_i . w_j + bias[j]
     *   x (n, k), w (m, k), out (n, m) with row stride ld_out floats
     * If bias is NULL, no bias is added. The kernel is meant for few rows of x: it reads every
     * weight from memory once. The bits of out[i][j] depend only on x_i, w_j and bias[j], not on n
     * or m. dots_bf16 takes w in bfloat16. */
    void (*dots)(float *out, size_t ld_out, const float *x, const float *w, const float *bias,
                 size_t n, size_t m, size_t k);
    void (*dots_bf16)(float *out, size_t ld_out, const float *x, const uint16_t *w,
                      const float *bias, size_t n, size_t m, size_t k);

    /* out = sum_j softmax_j(scale q.k_j) v_j for one query of one head
     *   q, out (D); k, v (T, D) with T >= 1; scores: scratch of T floats */
    void (*attend)(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                   float scale, float *scores);

    /* db[c] += sum_i dout[i][c], with dout (n, C) and row stride ld floats */
    void (*bias_backward)(float *db, const float *dout, size_t n, size_t C, size_t ld);
    /* The same for dout in bfloat16. */
    void (*bias_backward_bf16)(float *db, const uint16_t *dout, size_t n, size_t C, size_t ld);

    /* Round each x to the nearest number of the format `to`, ties to even, and write the result as
     * float32. out may be x. */
    void (*round_to)(float *out, const float *x, size_t n, sgt_rounding to);

    /* Round x to bfloat16 as round_to does, and write the results as bfloat16. */
    void (*to_bf16)(uint16_t *out, const float *x, size_t n);

    void (*add)(float *x, const float *y, size_t n); /* x += y */
    double (*sum_squares)(const float *x, size_t n); /* sum x^2, accumulated in double */
    /* Update n parameters by the formula of sgt_adamw. If copy is not NULL, the new p is also
     * written there as bfloat16, with the bits that to_bf16 would give. */
    void (*adamw)(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                  uint16_t *copy);
    /* Like adamw, with the moments m and v stored in bfloat16. The new moments are computed in
     * float32, and p is updated from those. They are then stored with stochastic rounding
     * (kernels/moments.h). */
    void (*adamw_bf16)(float *p, uint16_t *m, uint16_t *v, const float *g, size_t n,
                       const sgt_adamw *a, const sgt_random *r, uint16_t *copy);
    void (*sgd)(float *p, float *m, const float *g, size_t n, const sgt_sgd *o);
} sgt_kernels;

const sgt_kernels *sgt_kernels_ref(void); /* the definition: plain C, sums in double */
/* Return the table of the CPU level that sgt_cpu() reports. Every level's table is complete. */
const sgt_kernels *sgt_kernels_cpu(void);
/* Return the table of sgt_cpu()'s level. If the CPU multiplies bfloat16 in AMX tiles or in AVX-512
 * vectors, the table's attention rounds the operands of its matrix products to bfloat16: queries,
 * keys, values, dout, probabilities and score gradients. Sums and everything between the products
 * stay float32. */
const sgt_kernels *sgt_kernels_bf16(void);
/* Return the table of one level, for tests and benchmarks. Returns NULL if this machine lacks the
 * level or --cpu excludes it. */
const sgt_kernels *sgt_kernels_level(int level);

/* ---- matrix products ----
 *
 * C (m, n) = op(A) op(B) [+ bias (n)] [+ C]; op(X) is X or its transpose; lda, ldb, ldc are the row
 * strides in floats of the matrices as stored. The product is cut into tiles, each computed by one
 * thread. Each element of C is summed over k in the same order however C is cut, so any number of
 * threads gives the same bits. A run opens its own OpenMP parallel region: call it from serial
 * code.
 *
 * If bf16 is set, A and B are bfloat16 (uint16_t). Each multiplication is exact; sums, bias and C
 * are float32. */
typedef struct sgt_gemm_shape {
    size_t m, n, k;
    int trans_a, trans_b; /* 1: A is stored (k, m); 1: B is stored (n, k) */
    size_t lda, ldb, ldc;
    int bias;       /* add bias[n] to each row */
    int accumulate; /* add to the content of C */
    int bf16;       /* A and B are bfloat16; lda and ldb count bfloat16 numbers */
    /* sgt_gemm_scratch(threads) bytes for runs, SGT_ARENA_ALIGN-aligned; plans that never run at
     * the same time may share them. If NULL, the plan allocates its own scratch. */
    void *scratch;
    int squares; /* also sum the squares of C's numbers (sgt_gemm_squares) */
} sgt_gemm_shape;

typedef struct sgt_gemm sgt_gemm;

/* Plan a matrix product into *out, which the caller frees with sgt_gemm_free. Returns
 * SGT_EUNSUPPORTED for bfloat16 if the CPU does not multiply bfloat16 (sgt_gemm_has_bf16). */
int sgt_gemm_plan(sgt_gemm **out, const sgt_gemm_shape *s, int threads, sgt_error *err);
void sgt_gemm_run(const sgt_gemm *g, const void *a, const void *b, const float *bias, float *c);

/* Memory-bound work to overlap with a matrix product, which leaves memory bandwidth unused. One
 * core alone gets most of the memory bandwidth, so a pass over memory by all cores would waste the
 * others. The work is cut into shares of some tens of microseconds. While the matrix product runs,
 * every second thread takes shares first and tiles afterwards. A thread that finds no tile left
 * takes shares until the last tile is complete. Shares are begun in order, and all begun shares are
 * complete when the call returns. */
typedef struct sgt_beside {
    void (*share)(void *of, size_t i);
    void *of;
    size_t next, count; /* number of shares begun; number of all shares */
} sgt_beside;

void sgt_gemm_run_beside(const sgt_gemm *g, const void *a, const void *b, const float *bias,
                         float *c, sgt_beside *w);
/* Do the shares from w->next up to `end` (exclusive) with `threads` threads, after the matrix
 * products. */
void sgt_beside_finish(sgt_beside *w, size_t end, int threads);
/* Return the sum of C_ij^2 over what the last run wrote, for a plan with `squares`. Squares are
 * summed as C is written. Some dozens of them are first summed in float32, so a number of C above
 * 1.8e19 makes the result infinite. Any number of threads gives the same bits. */
double sgt_gemm_squares(const sgt_gemm *g);
void sgt_gemm_free(sgt_gemm *g);
/* Return 1 if the CPU multiplies bfloat16: with AVX512-BF16, or in AMX tiles that Linux lets the
 * process use. */
int sgt_gemm_has_bf16(void);
size_t sgt_gemm_scratch(int threads);

/* Return the sum of the floating-point operations per second of `threads` threads. Each thread
 * computes matrix products of its own whose operands fit into its second-level cache. Returns 0 if
 * the speed cannot be measured. The measurement takes 10 to 100 ms. */
double sgt_gemm_peak(int bf16, int threads);

/* Name of this library of matrix products. Each run records which library it used. */
#define SGT_GEMM_LIBRARY "own matrix products"

/* Compute the matrix product by its definition, with sums in double. */
void sgt_gemm_ref(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias,
                  float *c);

/* ---- the head with its loss ----
 *
 *   logits (n, V) = x w', x (n, C), w (V, C)
 *   loss_i = logsumexp(logits_i) - logits_i[target_i], 0 for a target < 0
 *   dx = d(scale * sum loss)/dx, which is overwritten
 *   dw = d(scale * sum loss)/dw, which is overwritten, or added to if `add` is set
 * If scale is 0, neither dx nor dw is computed. The logits are never stored as a whole. x and w
 * have the format of the matrix products (float32 or bfloat16); x32 is x before it was rounded.
 * sgt_head_run returns the sum of squares of the new dw, or 0 if dw was not computed. It opens its
 * own parallel regions; any number of threads gives the same bits. */
typedef struct sgt_head {
    size_t n, V, C; /* n: largest number of rows in a run */
    int bf16, threads;
    void *memory;  /* sgt_head_memory bytes, SGT_ARENA_ALIGN-aligned */
    void *scratch; /* sgt_gemm_scratch(threads) bytes; plans of products may share it */
    /* (n) For each row whose target is not ignored: 1 if no logit is above the target's, else 0.
     * May be NULL. */
    uint8_t *greedy;
} sgt_head;

/* Return 1 if the head can run, else 0. In AMX tiles it always can. In float32, C may be at most
 * 3072. In vectors of bfloat16, C must be even and may be at most 6144. Returns 0 for bfloat16 if
 * the CPU does not multiply bfloat16. */
int sgt_head_possible(const sgt_head *h);
size_t sgt_head_memory(const sgt_head *h);
double sgt_head_run(const sgt_head *h, size_t n, const void *x, const float *x32, const void *w,
                    const int32_t *targets, double scale, float *loss, float *dx, float *dw,
                    int add);
/* Compute the head by its definition, with sums in double; float32 only. */
void sgt_head_ref(size_t n, size_t V, size_t C, const float *x, const float *w,
                  const int32_t *targets, double scale, float *loss, double *dx, double *dw);

#ifdef __cplusplus
}
#endif
#endif
