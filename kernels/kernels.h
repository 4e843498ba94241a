/* kernels.h: the table of CPU kernels. The comment at each kernel gives its formula and the shapes
 * of its arrays.
 *
 *     const sgt_kernels *k = sgt_kernels_cpu();                 // the best for this machine
 *     k->layernorm(out, mean, rstd, x, w, b, rows, C, 1e-5f);
 *
 * All arrays are row-major float32 unless stated otherwise, and "+=" means that the kernel adds to
 * the output. Kernels run on the calling thread, allocate nothing and cannot fail. The caller
 * divides the work of a kernel into tiles, whose borders do not depend on the number of threads. So
 * the number of threads does not change a single bit of the results. kernels/ref defines the
 * results: its functions have the same signatures, and are plain C with sums in double. Rows need
 * not be aligned. No kernel reads or writes outside the stated shapes. */
#ifndef SGT_KERNELS_H
#define SGT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_gelu_kind { SGT_GELU_TANH, SGT_GELU_ERF } sgt_gelu_kind;

/* AdamW (Loshchilov & Hutter 2017: decoupled weight decay), with bias correction:
 *   g' = g*grad_scale   m = b1*m + (1-b1)*g'   v = b2*v + (1-b2)*g'^2
 *   p -= lr*(m/c1 / (sqrt(v/c2) + eps) + decay*p)
 * In update t, counted from 1, c1 = 1 - b1^t and c2 = 1 - b2^t. On the right-hand side, p is the
 * parameter before the update. */
typedef struct sgt_adamw {
    float lr, beta1, beta2, eps, decay, grad_scale;
    double c1, c2;
} sgt_adamw;

/* Parameters of the random numbers for stochastic rounding. Each random number is a pure function
 * of `seed`, `draw` and the element's number. */
typedef struct sgt_random {
    /* seed: the run's random seed; draw: result of sgt_moments_draw(step) (kernels/moments.h) */
    uint64_t seed, draw;
    /* number of the first element of the kernel's array, as an index into all parameters of the
     * model; element i of the array has the number first + i */
    uint64_t first;
} sgt_random;

/* Stochastic gradient descent with momentum (Polyak 1964) or Nesterov's momentum, and with
 * decoupled weight decay as in AdamW:
 *   g' = g*grad_scale   m = momentum*m + g'
 *   p -= lr*((nesterov ? g' + momentum*m : m) + decay*p) */
typedef struct sgt_sgd {
    float lr, momentum, decay, grad_scale;
    int nesterov;
} sgt_sgd;

/* Parameters of dropout. sgt_dropout_factor (dropout.h) computes the factor by which each element
 * is multiplied: 0 if the element is dropped, else 1/(1 - rate). */
typedef struct sgt_dropout {
    /* seed: the run's random seed; draw: result of sgt_dropout_draw(step, layer, site) */
    uint64_t seed, draw;
    /* element number (dropout.h) of the first element of the kernel's array; element i of the array
     * has the number first + i */
    uint64_t first;
    float rate;
} sgt_dropout;

/* Parameters of normally distributed random numbers with mean 0 and standard deviation sigma. Each
 * random number is a pure function of `seed`, `draw` and the element's number. */
typedef struct sgt_normals {
    uint64_t seed, draw;
    /* element number of the first random number to compute; out[i] is the number of element first +
     * i */
    uint64_t first;
    float sigma;
} sgt_normals;

typedef enum sgt_rounding { SGT_FORMAT_BF16, SGT_FORMAT_FP16 } sgt_rounding;

typedef struct sgt_kernels {
    const char *level; /* name of the CPU level: "ref", "plain", "avx2", "avx512", "amx" */

    /* Token and position embeddings: out[i] = wte[ids[i]] + wpe[(row0 + i) % T]
     *   out (n, C), ids (n), wte (V, C), wpe (>=T, C)
     * row0 is the index of ids[0] in the batch. If n is 1, `out` may be the row wte[ids[0]]
     * itself. */
    void (*embed)(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                  size_t n, size_t T, size_t C);

    /* Add the gradients of the embeddings, in ascending order of i, for columns c0 <= c < c1:
     *   dwte[ids[i]][c] += dout[i][c]   dwpe[i % T][c] += dout[i][c]   dout (n, C)
     * Return the increase of the sum of the squares of dwte's elements in these columns. */
    double (*embed_backward)(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                             size_t n, size_t T, size_t C, size_t c0, size_t c1);

    /* LayerNorm of each row: rstd = 1/sqrt(variance + eps), out = (x - mean)*rstd*w + b
     *   x, out (n, C); mean, rstd (n); w, b (C) */
    void (*layernorm)(float *out, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t n, size_t C, float eps);

    /* Residual addition, sum = x + y, followed by LayerNorm of `sum`, whose results are `out`,
     * `mean` and `rstd`. The array `sum` may be x itself.
     *   x, y, sum, out (n, C) */
    void (*residual_layernorm)(float *sum, float *out, float *mean, float *rstd, const float *x,
                               const float *y, const float *w, const float *b, size_t n, size_t C,
                               float eps);

    /* Backward pass of LayerNorm, where xhat = (x - mean)*rstd and dL/dx is the gradient of the
     * loss with respect to the input x:
     *   dx += dL/dx   dw += sum_i dout*xhat   db += sum_i dout
     *   dx, dout, x (n, C); dw, db (C) */
    void (*layernorm_backward)(float *dx, float *dw, float *db, const float *dout, const float *x,
                               const float *mean, const float *rstd, const float *w, size_t n,
                               size_t C);

    /* Set `out` to the GELU of n elements of x, computed with tanh or with erf, as `kind` says.
     * `out` may be the same array as x.
     *   tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))   erf: 0.5 x (1 + erf(x/sqrt 2)) */
    void (*gelu)(float *out, const float *x, size_t n, sgt_gelu_kind kind);

    /* Backward pass of GELU for n elements: dx = dout * gelu'(x). dx may be the same array as
     * dout. */
    void (*gelu_backward)(float *dx, const float *dout, const float *x, size_t n,
                          sgt_gelu_kind kind);

    /* Dropout: set out[i] to x[i] times the dropout factor of the element with number d->first + i,
     * for i < n. `out` may be the same array as x. */
    void (*dropout)(float *out, const float *x, size_t n, const sgt_dropout *d);

    /* Normally distributed random numbers: out[i] = sigma sqrt(-2 ln u) cos(2 pi v), or with sin
     * instead of cos if d->first + i, the element's number, is odd. u and v are uniform random
     * numbers from the generator Philox. One call to Philox gives the random numbers for four
     * successive elements. All CPU levels give the same bits. */
    void (*normals)(float *out, size_t n, const sgt_normals *d);

    /* Causal attention of one head in one sequence, with the scores s_ij = scale q_i.k_j:
     *   out_i = sum_{a_i<=j<=i} f_ij softmax_j(s_ij) v_j     lse_i = log sum_{a_i<=j<=i} exp(s_ij)
     *   q, k, v (T, D), row stride `ld` floats; out (T, D), row stride ld_out; lse (T)
     *   a_i      start[i], at which the document of position i begins, or 0 if `start` is NULL;
     *            start[i - 1] <= start[i] <= i
     *   f_ij     dropout factor of element first + i*((T + 3)/4*4) + j, where `first` must be a
     *            multiple of 4; 1 if `drop` is NULL
     *   scratch  attention_scratch(T, D) floats of memory, SGT_ARENA_ALIGN-aligned
     * The kernel never stores all T x T scores. */
    void (*attention)(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                      const float *v, size_t ld, size_t T, size_t D, float scale,
                      const sgt_dropout *drop, const int32_t *start, float *scratch);

    /* Backward pass of attention: set dq, dk and dv (T, D), with row stride ld_d, to the gradients
     * of q, k and v. dout has the shape and the row stride of out. */
    void (*attention_backward)(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                               const float *out, size_t ld_out, const float *lse, const float *q,
                               const float *k, const float *v, size_t ld, size_t T, size_t D,
                               float scale, const sgt_dropout *drop, const int32_t *start,
                               float *scratch);
    /* Return the size, in floats, of the scratch memory that `attention` and `attention_backward`
     * need. */
    size_t (*attention_scratch)(size_t T, size_t D);

    /* Loss of a softmax classifier, used only if sgt_head_run does not support the head (see
     * sgt_head_possible).
     *   loss_i = logsumexp(logits_i) - logits_i[target_i] logits_i := (softmax(logits_i) -
     *   onehot(target_i)) * scale in place; columns V .. ld - 1 become 0 logits (n, V) with row
     *   stride ld >= V; the last row, too, must have ld columns
     * A row whose target is negative is ignored: its loss and its gradient are 0. If `scale` is 0,
     * only the loss is computed, and the logits are not changed. If a logit is NaN or +inf, the
     * loss is NaN. */
    void (*cross_entropy)(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                          size_t ld, float scale);

    /* Matrix product for few rows of x: out[i][j] = x_i . w_j + bias[j]
     *   x (n, k), w (m, k), out (n, m) with row stride ld_out floats
     * If `bias` is NULL, no bias is added. The kernel reads every weight from memory only once. The
     * bits of out[i][j] depend only on x_i, w_j and bias[j], and not on n or m. If `bf16` is set, w
     * is bfloat16, otherwise float. */
    void (*dots)(float *out, size_t ld_out, const float *x, const void *w, const float *bias,
                 size_t n, size_t m, size_t k, int bf16);

    /* Attention of one query in one head: out = sum_j softmax_j(scale q.k_j) v_j
     *   q, out (D); k, v (T, D) with T >= 1; scores: scratch memory of T floats */
    void (*attend)(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                   float scale, float *scores);

    /* Gradient of a bias: db[c] += sum_i dout[i][c], where dout (n, C) has a row stride of ld
     * elements. If `bf16` is set, dout is bfloat16, otherwise float. */
    void (*bias_backward)(float *db, const void *dout, size_t n, size_t C, size_t ld, int bf16);

    /* Round each element of x to the nearest number of the format `to`, ties to even, and store the
     * rounded number as float32. `out` may be the same array as x. */
    void (*round_to)(float *out, const float *x, size_t n, sgt_rounding to);

    /* Round each element of x to bfloat16 as round_to does, and store the result as bfloat16. */
    void (*to_bf16)(uint16_t *out, const float *x, size_t n);

    void (*add)(float *x, const float *y, size_t n); /* x += y */
    double (*sum_squares)(const float *x, size_t n); /* sum x^2, accumulated in double */
    /* Update n parameters p by the formula at sgt_adamw. If `copy` is not NULL, also convert the
     * new parameters to bfloat16, as to_bf16 does, and store them in `copy`. */
    void (*adamw)(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                  uint16_t *copy);
    /* Update n parameters p like `adamw`, but with moments m and v that are stored in bfloat16. The
     * new moments are computed in float32, and p is updated with these float32 values. After that,
     * the moments are rounded to bfloat16 at random (stochastic rounding, kernels/moments.h) and
     * stored. */
    void (*adamw_bf16)(float *p, uint16_t *m, uint16_t *v, const float *g, size_t n,
                       const sgt_adamw *a, const sgt_random *r, uint16_t *copy);
    void (*sgd)(float *p, float *m, const float *g, size_t n, const sgt_sgd *o);
} sgt_kernels;

/* Return the table of the reference kernels (kernels/ref), which define what every kernel
 * computes. */
const sgt_kernels *sgt_kernels_ref(void);
/* Return the table for the CPU level (an instruction set, such as AVX2) that sgt_cpu() reports. The
 * table of every CPU level contains all kernels. */
const sgt_kernels *sgt_kernels_cpu(void);
/* Return the table for the CPU level that sgt_cpu() reports. If the CPU can multiply bfloat16
 * numbers, in AMX tiles or in AVX-512 vectors, attention in this table uses bfloat16: it rounds all
 * operands of its matrix products to bfloat16, that is, queries, keys, values, dout, probabilities
 * and score gradients. All other values in attention stay float32. */
const sgt_kernels *sgt_kernels_bf16(void);
/* Return the table for one CPU level (such as AVX2), for tests and benchmarks. Return NULL if this
 * machine does not support the level, or if the option --cpu forbids its use. */
const sgt_kernels *sgt_kernels_level(int level);

/* ---- Matrix products ----
 *
 * C (m, n) = op(A) op(B) [+ bias (n)] [+ C], where op(X) is X or its transpose. lda, ldb and ldc
 * are the row strides, in elements, of the matrices as they are stored. The product is cut into
 * tiles, each of which one thread computes. The terms of an element of C are added in the order of
 * k, wherever the tiles begin. Therefore the result does not depend on the number of threads.
 * sgt_gemm_run opens an OpenMP parallel region, so it must be called from outside any parallel
 * region.
 *
 * If `bf16` is set, A and B are bfloat16 (uint16_t). Each multiplication is exact, and sums, bias
 * and C are float32. */
typedef struct sgt_gemm_shape {
    size_t m, n, k; /* each at least 1 */
    /* trans_a: 1 if A is stored as (k, m), 0 if A is stored as (m, k); trans_b: 1 if B is stored as
     * (n, k), 0 if B is stored as (k, n) */
    int trans_a, trans_b;
    size_t lda, ldb, ldc;
    int bias;       /* add bias[n] to each row */
    int accumulate; /* add to the content of C */
    /* 1: A and B are bfloat16, and lda and ldb count bfloat16 elements; 0: A and B are float32 */
    int bf16;
    /* Scratch memory of sgt_gemm_scratch(threads) bytes, SGT_ARENA_ALIGN-aligned, which the caller
     * owns. Plans whose products never run at the same time may share the same scratch memory. */
    void *scratch;
    /* 1: each run also adds up the squares of C's elements, for sgt_gemm_squares; 0: it does not */
    int squares;
} sgt_gemm_shape;

typedef struct sgt_gemm sgt_gemm;

/* Plan a matrix product and set *out to the plan, which the caller frees with sgt_gemm_free. Return
 * SGT_EUNSUPPORTED if the product is in bfloat16 and the CPU cannot multiply bfloat16 (see
 * sgt_gemm_has_bf16). */
int sgt_gemm_plan(sgt_gemm **out, const sgt_gemm_shape *s, int threads, sgt_error *err);
void sgt_gemm_run(const sgt_gemm *g, const void *a, const void *b, const float *bias, float *c);

/* Memory-bound work that runs at the same time as a matrix product, because a matrix product leaves
 * memory bandwidth unused. A single core can use most of the memory bandwidth. If all cores did
 * this work before or after the matrix product, most of them would only wait for memory.
 *
 * The work is cut into shares, which take some tens of microseconds each. While the matrix product
 * runs, every second thread first takes shares of the work and then tiles of the product. The other
 * threads first take tiles. A thread that finds no tile left takes shares until the last tile is
 * complete. Shares begin in ascending order. When sgt_gemm_run_beside returns, all shares that have
 * begun are complete, but it is possible that some have not begun. */
typedef struct sgt_beside {
    void (*share)(void *of, size_t i);
    void *of;
    /* next: index of the first share of the work that no thread has begun, and so the number of
     * shares that have begun; count: total number of shares */
    size_t next, count;
} sgt_beside;

void sgt_gemm_run_beside(const sgt_gemm *g, const void *a, const void *b, const float *bias,
                         float *c, sgt_beside *w);
/* Do all shares of the work with an index below `end` that have not begun, with `threads` threads.
 * Call it only while no matrix product is running. */
void sgt_beside_finish(sgt_beside *w, size_t end, int threads);
/* Return the sum of the squares of all elements of C that the last run wrote. The plan must have
 * `squares` set. The squares are computed and partly summed in float32, so the result is infinite
 * if an element of C exceeds 1.8e19. The result does not depend on the number of threads. */
double sgt_gemm_squares(const sgt_gemm *g);
void sgt_gemm_free(sgt_gemm *g);
/* Return 1 if the CPU can multiply bfloat16 numbers, with AVX512-BF16 or in AMX tiles that Linux
 * lets the process use. Otherwise return 0. */
int sgt_gemm_has_bf16(void);
size_t sgt_gemm_scratch(int threads);

/* Return the speed of `threads` threads in floating-point operations per second, summed over all
 * threads, or 0 if the speed cannot be measured. Each thread computes its own matrix products,
 * whose operands fit in the L2 cache of the thread's core. The measurement takes 10 to 100 ms. */
double sgt_gemm_peak(int bf16, int threads);

/* text by which checkpoints and reports record that sgt's own matrix products were used */
#define SGT_GEMM_LIBRARY "own matrix products"

/* Compute a matrix product directly from its definition, with sums in double. */
void sgt_gemm_ref(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias,
                  float *c);

/* ---- The head (the matrix product that gives the logits) and its loss ----
 *
 *   logits (n, V) = x w', x (n, C), w (V, C)
 *   loss_i = logsumexp(logits_i) - logits_i[target_i], 0 for a target < 0
 *   dx = d(scale * sum loss)/dx, which is overwritten
 *   dw = d(scale * sum loss)/dw, which is overwritten, or added to if `add` is set
 * If `scale` is 0, dx and dw are not computed. x and w are float32 or bfloat16, as in the matrix
 * products. x32 is x before it was rounded to that format.
 *
 * sgt_head_run keeps only some of the logits in memory at a time. The function returns the sum of
 * squares of the new dw, or 0 if dw is not computed. It opens OpenMP parallel regions. The results
 * do not depend on the number of threads. */
typedef struct sgt_head {
    size_t n, V, C; /* n: largest number of rows in a run */
    int bf16, threads;
    void *memory; /* memory of sgt_head_memory bytes, aligned to SGT_ARENA_ALIGN */
    /* scratch memory of sgt_gemm_scratch(threads) bytes; matrix products that never run at the same
     * time as the head may use the same memory */
    void *scratch;
    /* Array of n flags, one for each row, or NULL if the caller does not need them. sgt_head_run
     * sets a row's flag to 1 if no logit of the row is larger than the logit of the row's target,
     * else to 0. It does not change the flags of rows whose target is negative. */
    uint8_t *greedy;
} sgt_head;

/* Return 1 if sgt_head_run supports this head on this CPU, else 0:
 *   float32                   if C is at most 3072
 *   bfloat16 in AMX tiles     always
 *   bfloat16 in vectors       if C is even and at most 6144
 *   bfloat16 on other CPUs    never */
int sgt_head_possible(const sgt_head *h);
size_t sgt_head_memory(const sgt_head *h);
double sgt_head_run(const sgt_head *h, size_t n, const void *x, const float *x32, const void *w,
                    const int32_t *targets, double scale, float *loss, float *dx, float *dw,
                    int add);
/* Compute the head directly from its definition, with sums in double. All arrays are float32 or
 * double. */
void sgt_head_ref(size_t n, size_t V, size_t C, const float *x, const float *w,
                  const int32_t *targets, double scale, float *loss, double *dx, double *dw);

#ifdef __cplusplus
}
#endif
#endif
