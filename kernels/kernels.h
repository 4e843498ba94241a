/* kernels.h: the table of CPU kernels. One name, one signature, one line of mathematics and shapes
 * each.
 *
 *     const sgt_kernels *k = sgt_kernels_cpu();                 // the best this machine has
 *     k->layernorm(out, mean, rstd, x, w, b, rows, C, 1e-5f);
 *
 * All arrays are row-major float32 unless said otherwise; "+=" in a line means the output is added
 * to. Kernels run on the calling thread, allocate nothing and cannot fail: the backend cuts the
 * work into tiles that do not depend on the number of threads, so that neither do the bits.
 * kernels/ref is the definition: plain C with double sums, same signatures. Rows need no alignment;
 * no kernel reads or writes outside the shapes given here. */
#ifndef SGT_KERNELS_H
#define SGT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgt_gelu_kind { SGT_GELU_TANH, SGT_GELU_ERF } sgt_gelu_kind;

/* AdamW, Loshchilov & Hutter 2017 (decoupled decay), with bias correction:
 *   g' = g*grad_scale   m = b1*m + (1-b1)*g'   v = b2*v + (1-b2)*g'^2   p -= lr*(m/c1 / (sqrt(v/c2) + eps) + decay*p)
 * with c1 = 1 - b1^t, c2 = 1 - b2^t for the t-th update (t from 1); p on the right is the value
 * before the update. */
typedef struct sgt_adamw {
    float lr, beta1, beta2, eps, decay, grad_scale;
    double c1, c2;
} sgt_adamw;

/* Stochastic gradient descent with momentum (Polyak 1964), Nesterov's where asked for, decay
 * decoupled as in AdamW:
 *   g' = g*grad_scale   m = momentum*m + g'   p -= lr*((nesterov ? g' + momentum*m : m) + decay*p) */
typedef struct sgt_sgd {
    float lr, momentum, decay, grad_scale;
    int nesterov;
} sgt_sgd;

/* Which numbers are dropped and what the others are multiplied by: sgt_dropout_factor of
 * dropout.h. */
typedef struct sgt_dropout {
    uint64_t seed, draw; /* draw: sgt_dropout_draw of step, layer and site */
    uint64_t first;      /* the element that the first number is */
    float rate;
} sgt_dropout;

/* Numbers of a normal distribution about 0, each a pure function of (seed, draw, element). */
typedef struct sgt_normals {
    uint64_t seed, draw;
    uint64_t first; /* the element that the first number is */
    float sigma;
} sgt_normals;

typedef enum sgt_rounding { SGT_FORMAT_BF16, SGT_FORMAT_FP16 } sgt_rounding;

typedef struct sgt_kernels {
    const char *level; /* "ref", "plain", "avx2", "avx512" */

    /* out[i] = wte[ids[i]] + wpe[(row0 + i) % T] out (n, C), ids (n), wte (V, C), wpe (>=T, C) With
     * n = 1, wte[ids[0]] may be out. */
    void (*embed)(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                  size_t n, size_t T, size_t C);

    /* dwte[ids[i]][c] += dout[i][c], dwpe[i % T][c] += dout[i][c] for columns c0 <= c < c1, in
     * order of i Returns by how much the squares of dwte's numbers grow in all. dout (n, C) */
    double (*embed_backward)(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                             size_t n, size_t T, size_t C, size_t c0, size_t c1);

    /* mean, rstd = 1/sqrt(var + eps), out = (x - mean)*rstd*w + b x, out (n, C); mean, rstd (n) */
    void (*layernorm)(float *out, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t n, size_t C, float eps);

    /* sum = x + y, then layernorm of sum; sum may be x               x, y, sum, out (n, C) */
    void (*residual_layernorm)(float *sum, float *out, float *mean, float *rstd, const float *x,
                               const float *y, const float *w, const float *b, size_t n, size_t C,
                               float eps);

    /* dx += dL/dx;  dw += sum_i dout*xhat;  db += sum_i dout         dx, dout, x (n, C); dw, db (C)
     * with xhat = (x - mean)*rstd */
    void (*layernorm_backward)(float *dx, float *dw, float *db, const float *dout, const float *x,
                               const float *mean, const float *rstd, const float *w, size_t n,
                               size_t C);

    /* tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)));  erf: 0.5 x (1 + erf(x/sqrt 2))
     *                                                                n numbers; out may be x */
    void (*gelu)(float *out, const float *x, size_t n, sgt_gelu_kind kind);

    /* dx = dout * gelu'(x)                                           n numbers; dx may be dout */
    void (*gelu_backward)(float *dx, const float *dout, const float *x, size_t n,
                          sgt_gelu_kind kind);

    /* out[i] = x[i] * factor of element first + i                     n numbers; out may be x */
    void (*dropout)(float *out, const float *x, size_t n, const sgt_dropout *d);

    /* out[i] = sigma sqrt(-2 ln u) cos(2 pi v), for odd elements sin, with u and v from a Philox
     * draw of four numbers by first + i; the same bits from every level */
    void (*normals)(float *out, size_t n, const sgt_normals *d);

    /* One head of one sequence, causal, with s_ij = scale q_i.k_j:
     *   out_i = sum_{a_i<=j<=i} f_ij softmax_j(s_ij) v_j             q, k, v (T, D) with `ld` floats from row to row
     *   lse_i = log sum_{a_i<=j<=i} exp(s_ij)                        out (T, D) with ld_out; lse (T)
     * a_i = start[i] is where i's document begins, never below start[i - 1], at most i; 0 where
     * start is NULL. f_ij is the factor of element first + i*((T + 3)/4*4) + j, first a multiple of
     * 4; 1 where drop is NULL. T x T is never stored. scratch: attention_scratch(T, D) floats,
     * SGT_ARENA_ALIGN-aligned, of any content. */
    void (*attention)(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                      const float *v, size_t ld, size_t T, size_t D, float scale,
                      const sgt_dropout *drop, const int32_t *start, float *scratch);

    /* Its gradients, written (not added): dq, dk, dv (T, D) with ld_d; dout like out. */
    void (*attention_backward)(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                               const float *out, size_t ld_out, const float *lse, const float *q,
                               const float *k, const float *v, size_t ld, size_t T, size_t D,
                               float scale, const sgt_dropout *drop, const int32_t *start,
                               float *scratch);
    size_t (*attention_scratch)(size_t T, size_t D); /* floats, for either direction */

    /* loss_i = logsumexp(logits_i) - logits_i[target_i] logits (n, V) with ld >= V, the last row's
     * too logits_i := (softmax(logits_i) - onehot(target_i)) * scale in place; columns V..ld become
     * 0 A target < 0 is ignored: loss 0, gradient 0. scale 0: loss only, logits left as they are. A
     * NaN or +inf among the logits makes the loss NaN. */
    void (*cross_entropy)(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                          size_t ld, float scale);

    /* out[i][j] = x_i . w_j + bias[j] x (n, k), w (m, k), out (n, m) with ld_out floats from row to
     * row; no bias where that is NULL. For few rows: every weight is read once. A number's bits
     * depend on its own row of x and of w alone. w of dots_bf16 is bfloat16. */
    void (*dots)(float *out, size_t ld_out, const float *x, const float *w, const float *bias,
                 size_t n, size_t m, size_t k);
    void (*dots_bf16)(float *out, size_t ld_out, const float *x, const uint16_t *w,
                      const float *bias, size_t n, size_t m, size_t k);

    /* out = sum_j softmax_j(scale q.k_j) v_j one query of one head: q, out (D); k, v (T, D);
     * scores: T floats of any content, T at least 1 */
    void (*attend)(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                   float scale, float *scores);

    /* db[c] += sum_i dout[i][c] dout (n, C) with ld floats from row to row */
    void (*bias_backward)(float *db, const float *dout, size_t n, size_t C, size_t ld);
    /* dout bfloat16 */
    void (*bias_backward_bf16)(float *db, const uint16_t *dout, size_t n, size_t C, size_t ld);

    /* out = x rounded to the nearest number of that format, halfway cases to even; still float32.
     * out may be x. */
    void (*round_to)(float *out, const float *x, size_t n, sgt_rounding to);

    /* The same to bfloat16, stored as such. */
    void (*to_bf16)(uint16_t *out, const float *x, size_t n);

    void (*add)(float *x, const float *y, size_t n); /* x += y */
    double (*sum_squares)(const float *x, size_t n); /* sum x^2, accumulated in double */
    /* add, and then sum_squares of x: the same bits */
    double (*add_squares)(float *x, const float *y, size_t n);
    /* n numbers; copy: where the new p goes as bfloat16, to_bf16's bits, or NULL */
    void (*adamw)(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                  uint16_t *copy);
    void (*sgd)(float *p, float *m, const float *g, size_t n, const sgt_sgd *o);
} sgt_kernels;

const sgt_kernels *sgt_kernels_ref(void); /* the definition: double inside, no tricks */
/* the table of sgt_cpu()'s level; every level's is complete */
const sgt_kernels *sgt_kernels_cpu(void);
/* The same, but where products of bfloat16 are our own with attention's operands rounded to it:
 * queries, keys, values, dout, probabilities, the scores' gradients. Sums and what is between
 * products stay float. (With AMX products are oneDNN's, and vectors of bfloat16 no faster than of
 * float.) */
const sgt_kernels *sgt_kernels_bf16(void);
/* The table of one level (for tests and benchmarks); NULL where this machine or --cpu does not
 * allow it. */
const sgt_kernels *sgt_kernels_level(int level);

/* ---- matrix products ---- C (m, n) = op(A) op(B) [+ bias (n)] [+ C]; op(X) is X or its transpose;
 * lda, ldb, ldc floats from row to row as stored. The product is cut into tiles, each computed by
 * one thread, and a number's sum over k has one order however they are cut: the same bits for any
 * number of threads. Runs its own OpenMP parallel region: call it from serial code.
 *
 * With bf16 set, A and B are bfloat16 (uint16_t); products are exact, and sums, bias and C
 * float32. */
typedef struct sgt_gemm_shape {
    size_t m, n, k;
    int trans_a, trans_b; /* A is stored (k, m) when trans_a, B is stored (n, k) when trans_b */
    size_t lda, ldb, ldc;
    int bias;       /* add bias[n] to each row */
    int accumulate; /* add to what C holds */
    int bf16;       /* A and B are bfloat16, lda and ldb counted in them */
    int onednn;     /* oneDNN's product in any case: to compare with */
    void *
        scratch; /* sgt_gemm_scratch(threads) bytes for run, SGT_ARENA_ALIGN-aligned, which plans whose runs
                              take turns may share; NULL: the plan takes its own */
    int squares; /* the squares of C's numbers are summed too (sgt_gemm_squares) */
} sgt_gemm_shape;

typedef struct sgt_gemm sgt_gemm;

/* Products are our own, except those of bfloat16 on a CPU with AMX and those with `onednn` set: the
 * first such plan loads oneDNN (dlopen), and fails with SGT_EUNSUPPORTED and the package's name if
 * it is missing. */
int sgt_gemm_plan(sgt_gemm **out, const sgt_gemm_shape *s, int threads, sgt_error *err);
void sgt_gemm_run(const sgt_gemm *g, const void *a, const void *b, const float *bias, float *c);

/* Work that waits for memory, in shares of some tens of microseconds, for threads to do beside a
 * product, which leaves memory idle: one core alone gets most of what memory gives, so that a pass
 * over it by all of them wastes the others. While the product runs every other thread takes shares,
 * and then tiles; who finds no tile takes shares until the last tile is done. Shares are begun in
 * their order, and those begun are complete when the call returns. Which threads begin with shares
 * is by their number and `rank`: of processes side by side, of one thread each, every other one. */
typedef struct sgt_beside {
    void (*share)(void *of, size_t i);
    void *of;
    size_t next, count; /* shares begun, of how many */
    unsigned rank;
} sgt_beside;

void sgt_gemm_run_beside(const sgt_gemm *g, const void *a, const void *b, const float *bias,
                         float *c, sgt_beside *w);
/* Completes the shares before `end`, by so many threads and nothing else. */
void sgt_beside_finish(sgt_beside *w, size_t end, int threads);
/* sum C_ij^2 of what the last run wrote, of a plan with `squares`: summed as C is written, some
 * dozens of numbers in float first, which are infinite from 1.8e19 on. The same bits for any number
 * of threads. */
double sgt_gemm_squares(const sgt_gemm *g);
void sgt_gemm_free(sgt_gemm *g);
/* Whether this CPU multiplies bfloat16 by itself, and we or oneDNN know how: 1 or 0. Where it does,
 * and oneDNN alone knows how: SGT_EUNSUPPORTED if oneDNN is missing, SGT_EIO if it is there and
 * cannot be loaded now. */
int sgt_gemm_bf16(sgt_error *err);
int sgt_gemm_has_bf16(void); /* whether that is 1 */
size_t sgt_gemm_scratch(int threads);
/* Whose products a plan in float32 or in bfloat16 has: "own matrix products", "oneDNN 2.6.3"; NULL:
 * oneDNN's, not loaded yet. */
const char *sgt_gemm_library(int bf16);

/* The definition: double sums. */
void sgt_gemm_ref(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias,
                  float *c);

/* ---- the head with its loss ---- logits (n, V) = x w', x (n, C), w (V, C) loss_i =
 * logsumexp(logits_i) - logits_i[target_i], 0 for a target < 0 dx = d(scale * sum loss)/dx,
 * written; dw the same of w, written or added to; neither where scale is 0. The logits are nowhere
 * stored. x and w as products take them, x32 the same as x before it was rounded. Returns the sum
 * of squares of what dw holds then, 0 without it. Runs its own parallel regions; the same bits for
 * any number of threads. */
typedef struct sgt_head {
    size_t n, V, C; /* most rows of a run */
    int bf16, threads;
    void *memory;  /* sgt_head_memory bytes, SGT_ARENA_ALIGN-aligned */
    void *scratch; /* sgt_gemm_scratch(threads) bytes, which runs of products may share */
    /* (n), of targets that count: whether no logit is above the target's. NULL: not wanted. */
    uint8_t *greedy;
} sgt_head;

/* 0 if products are oneDNN's, and for C past what fits (3072 groups) */
int sgt_head_possible(const sgt_head *h);
size_t sgt_head_memory(const sgt_head *h);
double sgt_head_run(const sgt_head *h, size_t n, const void *x, const float *x32, const void *w,
                    const int32_t *targets, double scale, float *loss, float *dx, float *dw,
                    int add);
/* The definition, in double; float32 only. */
void sgt_head_ref(size_t n, size_t V, size_t C, const float *x, const float *w,
                  const int32_t *targets, double scale, float *loss, double *dx, double *dw);

#ifdef __cplusplus
}
#endif
#endif
