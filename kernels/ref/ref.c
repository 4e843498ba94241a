/* ref.c: defines what every kernel computes, in plain C and with sums in double. The functions are
 * in the order in which a training step uses them. kernels.h has the shapes and formulas. Tests
 * compare the results of the fast kernels with the results of these functions. */
#include <math.h>
#include <string.h>

#include "kernels/dropout.h"
#include "kernels/kernels.h"
#include "kernels/moments.h"
#include "kernels/muon.h"
#include "loader/base/philox.h"

/* Return the value of a bfloat16, whose 16 bits are the upper half of a float's bits. */
static double widened(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- rounding ---- */

/* Floats are rounded to the nearest number of a 16-bit format, ties to even (IEEE 754). */

/* Return the number nearest to x in a 16-bit format. `bits`: number of bits in the format's
 * significand; `lowest`: exponent of the format's smallest positive number, 2^lowest, of which all
 * numbers of the format are multiples; `largest`: the format's largest finite number. If the result
 * would exceed `largest` in absolute value, return infinity with the sign of x. */
static double nearest(double x, int bits, int lowest, double largest)
{
    int exponent, last;
    if (!isfinite(x) || x == 0) return x;
    frexp(x, &exponent); /* set `exponent` so that 2^(exponent - 1) <= |x| < 2^exponent */
    last = exponent - bits > lowest ? exponent - bits : lowest;
    double y = ldexp(nearbyint(ldexp(x, -last)), last);
    return fabs(y) > largest ? copysign(INFINITY, x) : y;
}

static void round_to(float *out, const float *x, size_t n, sgt_rounding to)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(to == SGT_FORMAT_BF16 ? nearest(x[i], 8, -133, 0x1.fep127)
                                               : nearest(x[i], 11, -24, 65504));
}

/* Convert n floats to bfloat16: round each float, and keep the upper half of its bits. */
static void to_bf16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        float y = (float)nearest(x[i], 8, -133, 0x1.fep127);
        memcpy(&bits, &y, sizeof bits);
        /* set a fraction bit of a NaN: if all fraction bits of its upper half were 0, the result
         * would be infinity */
        out[i] = (uint16_t)(bits >> 16 | (isnan(y) ? 0x40 : 0));
    }
}

/* ---- normal random numbers ---- */

/* Normally distributed random numbers, by the method of Box and Muller ("A note on the generation
 * of random normal deviates", 1958). One call to Philox gives four random words, and each pair of
 * words gives two normally distributed numbers. */

static void normals(float *out, size_t n, const sgt_normals *d)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t element = d->first + i;
        sgt_philox4 r = sgt_philox(d->seed, element / 4, d->draw);
        const uint32_t *pair = r.x + element % 4 / 2 * 2;
        float u = ((float)pair[0] + 1.0f) * 0x1p-32f; /* above 0, at most 1 */
        double radius = (double)d->sigma * sqrt(-2 * log((double)u)),
               angle = 2 * M_PI * 0x1p-32 * (double)pair[1];
        out[i] = (float)(radius * (element % 2 ? sin(angle) : cos(angle)));
    }
}

/* ---- sums ---- */

/* `add` adds n floats y to x, and sum_squares returns the sum of the squares of n floats x, in
 * double. */

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] += y[i];
}

static double sum_squares(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    return sum;
}

/* ---- token plus position embedding ---- */

static void embed(float *out, const int32_t *ids, const float *wte, const float *wpe, size_t row0,
                  size_t n, size_t T, size_t C)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < C; c++)
            out[i * C + c] = wte[(size_t)ids[i] * C + c] + wpe[(row0 + i) % T * C + c];
}

/* Add the rows of dout to dwte and dwpe in float, in ascending order of i. All CPU levels add in
 * this order, so they give the same bits. Return the increase of the sum of the squares of dwte's
 * elements. */
static double embed_backward(float *dwte, float *dwpe, const int32_t *ids, const float *dout,
                             size_t n, size_t T, size_t C, size_t c0, size_t c1)
{
    double grown = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = c0; c < c1; c++) {
            float *token = dwte + (size_t)ids[i] * C + c, old = *token;
            *token += dout[i * C + c];
            dwpe[i % T * C + c] += dout[i * C + c];
            grown += (double)*token * *token - (double)old * old;
        }
    return grown;
}

/* ---- layer normalization ---- */

/* Layer normalization (Ba, Kiros & Hinton 2016) brings each row to mean 0 and variance 1, and then
 * scales and shifts it. */

static void layernorm(float *out, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t n, size_t C, float eps)
{
    for (size_t i = 0; i < n; i++, x += C, out += C) {
        double sum = 0, squares = 0;
        for (size_t c = 0; c < C; c++) sum += x[c];
        double m = sum / (double)C;
        for (size_t c = 0; c < C; c++) squares += (x[c] - m) * (x[c] - m);
        double r = 1 / sqrt(squares / (double)C + eps);
        for (size_t c = 0; c < C; c++) out[c] = (float)((x[c] - m) * r * w[c] + b[c]);
        mean[i] = (float)m;
        rstd[i] = (float)r;
    }
}

static void residual_layernorm(float *sum, float *out, float *mean, float *rstd, const float *x,
                               const float *y, const float *w, const float *b, size_t n, size_t C,
                               float eps)
{
    for (size_t i = 0; i < n * C; i++) sum[i] = x[i] + y[i];
    layernorm(out, mean, rstd, sum, w, b, n, C, eps);
}

/* Gradient of one row's LayerNorm: add rstd * (g - mean(g) - xhat * mean(g*xhat)) to dx, with xhat
 * = (x - mean)*rstd and g = dout*w. Here, mean() is the mean over the row. */
static void row_backward(float *dx, const float *dout, const float *x, double mean, double rstd,
                         const float *w, size_t C)
{
    double sum_g = 0, sum_gx = 0;
    for (size_t c = 0; c < C; c++) {
        double g = (double)dout[c] * w[c];
        sum_g += g;
        sum_gx += g * (x[c] - mean) * rstd;
    }
    for (size_t c = 0; c < C; c++) {
        double g = (double)dout[c] * w[c], xhat = (x[c] - mean) * rstd;
        dx[c] = (float)(dx[c] + rstd * (g - sum_g / (double)C - xhat * (sum_gx / (double)C)));
    }
}

static void layernorm_backward(float *dx, float *dw, float *db, const float *dout, const float *x,
                               const float *mean, const float *rstd, const float *w, size_t n,
                               size_t C)
{
    for (size_t i = 0; i < n; i++)
        row_backward(dx + i * C, dout + i * C, x + i * C, mean[i], rstd[i], w, C);
    for (size_t c = 0; c < C; c++) {
        double sum_w = dw[c], sum_b = db[c];
        for (size_t i = 0; i < n; i++) {
            sum_w += dout[i * C + c] * (((double)x[i * C + c] - mean[i]) * rstd[i]);
            sum_b += dout[i * C + c];
        }
        dw[c] = (float)sum_w;
        db[c] = (float)sum_b;
    }
}

/* ---- dropout ---- */

/* Dropout (Srivastava et al. 2014); kernels/dropout.h decides which elements are set to 0. */

static void dropout(float *out, const float *x, size_t n, const sgt_dropout *d)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * sgt_dropout_factor(d->seed, d->draw, d->first + i, d->rate);
}

/* ---- the Gaussian error linear unit ---- */

/* GELU (Hendrycks & Gimpel 2016) is x times Phi(x), the distribution function of the normal
 * distribution. Phi is computed exactly (erf) or by GPT-2's approximation (tanh). */

static const double SQRT_2_OVER_PI = 0.79788456080286535588;
static const double ONE_OVER_SQRT_2 = 0.70710678118654752440;
static const double ONE_OVER_SQRT_2_PI = 0.39894228040143267794;

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)));
}

static double gelu_tanh_slope(double x)
{
    double t = tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x));
    double du = SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

static double gelu_erf(double x) { return 0.5 * x * erfc(-x * ONE_OVER_SQRT_2); }

static double gelu_erf_slope(double x)
{
    return 0.5 * erfc(-x * ONE_OVER_SQRT_2) + x * ONE_OVER_SQRT_2_PI * exp(-0.5 * x * x);
}

static void gelu(float *out, const float *x, size_t n, sgt_gelu_kind kind)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(kind == SGT_GELU_TANH ? gelu_tanh(x[i]) : gelu_erf(x[i]));
}

static void gelu_backward(float *dx, const float *dout, const float *x, size_t n,
                          sgt_gelu_kind kind)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = (float)(dout[i] *
                        (kind == SGT_GELU_TANH ? gelu_tanh_slope(x[i]) : gelu_erf_slope(x[i])));
}

/* ---- the matrix product ---- */

static double number(const void *x, size_t i, int bf16)
{
    return bf16 ? widened(((const uint16_t *)x)[i]) : (double)((const float *)x)[i];
}

void sgt_gemm_ref(const sgt_gemm_shape *s, const void *a, const void *b, const float *bias,
                  float *c)
{
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < s->n; j++) {
            double sum = s->bias ? bias[j] : 0;
            if (s->accumulate) sum += c[i * s->ldc + j];
            for (size_t p = 0; p < s->k; p++) {
                double x = number(a, s->trans_a ? p * s->lda + i : i * s->lda + p, s->bf16);
                double y = number(b, s->trans_b ? j * s->ldb + p : p * s->ldb + j, s->bf16);
                sum += x * y;
            }
            c[i * s->ldc + j] = (float)sum;
        }
}

/* ---- the gradient of a bias ---- */

/* A bias is added to every row, so its gradient is the sum of the rows of dout. */

static void bias_backward(float *db, const void *dout, size_t n, size_t C, size_t ld, int bf16)
{
    for (size_t c = 0; c < C; c++) {
        double sum = db[c];
        for (size_t i = 0; i < n; i++) sum += number(dout, i * ld + c, bf16);
        db[c] = (float)sum;
    }
}

/* ---- causal attention of one head ---- */

/* Causal attention (Vaswani et al. 2017). Query i attends to keys start[i] .. i: from the beginning
 * of its document to its own position. If `start` is NULL, query i attends to keys 0 .. i. */

static double dot(const float *a, const float *b, size_t D)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++) sum += (double)a[d] * b[d];
    return sum;
}

static double factor(const sgt_dropout *d, size_t T, size_t i, size_t j)
{
    return d ? sgt_dropout_factor(d->seed, d->draw, d->first + i * ((T + 3) / 4 * 4) + j, d->rate)
             : 1;
}

static size_t first_key(const int32_t *start, size_t i) { return start ? (size_t)start[i] : 0; }

/* Return the size of the scratch memory, counted in floats. The memory holds doubles. The forward
 * pass needs T doubles for a query's probabilities and D for its output. The backward pass needs D
 * doubles for a query's dq and 2*T*D for the sums of dk and dv. */
static size_t attention_scratch(size_t T, size_t D)
{
    return sizeof(double) / sizeof(float) * (T + D + 2 * T * D);
}

static void attention(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                      const float *v, size_t ld, size_t T, size_t D, float scale,
                      const sgt_dropout *drop, const int32_t *start, float *scratch)
{
    double *p = (double *)(void *)scratch, *sum = p + T; /* p (T), sum (D) */
    for (size_t i = 0; i < T; i++) {
        double max = -INFINITY, total = 0;
        size_t first = first_key(start, i);
        for (size_t j = first; j <= i; j++) {
            p[j] = scale * dot(q + i * ld, k + j * ld, D);
            if (p[j] > max) max = p[j];
        }
        for (size_t j = first; j <= i; j++) total += p[j] = exp(p[j] - max);
        for (size_t d = 0; d < D; d++) sum[d] = 0;
        for (size_t j = first; j <= i; j++) {
            double weight = factor(drop, T, i, j) * p[j] / total;
            for (size_t d = 0; d < D; d++) sum[d] += weight * v[j * ld + d];
        }
        for (size_t d = 0; d < D; d++) out[i * ld_out + d] = (float)sum[d];
        lse[i] = (float)(max + log(total));
    }
}

/* Compute the gradients. With p_ij = exp(scale q_i.k_j - lse_i), delta_i = dout_i.out_i, and the
 * dropout factors f_ij:
 *   dv_j = sum_i f_ij p_ij dout_i    ds_ij = scale p_ij (f_ij dout_i.v_j - delta_i)
 *   dq_i = sum_j ds_ij k_j           dk_j = sum_i ds_ij q_i
 * For a query that attends only to itself, p is 1, whatever the score, so the exact ds is 0. The
 * formula would give the rounding errors of lse and out instead, so the code sets ds to 0. */
static void attention_backward(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                               const float *out, size_t ld_out, const float *lse, const float *q,
                               const float *k, const float *v, size_t ld, size_t T, size_t D,
                               float scale, const sgt_dropout *drop, const int32_t *start,
                               float *scratch)
{
    /* shapes: sum_q (D), sum_k (T, D), sum_v (T, D) */
    double *sum_q = (double *)(void *)scratch, *sum_k = sum_q + D, *sum_v = sum_k + T * D;
    for (size_t x = 0; x < T * D; x++) sum_k[x] = sum_v[x] = 0;
    for (size_t i = 0; i < T; i++) {
        const float *qi = q + i * ld, *douti = dout + i * ld_out;
        double delta = dot(douti, out + i * ld_out, D);
        for (size_t d = 0; d < D; d++) sum_q[d] = 0;
        for (size_t j = first_key(start, i); j <= i; j++) {
            double p = exp(scale * dot(qi, k + j * ld, D) - lse[i]), f = factor(drop, T, i, j);
            double ds =
                first_key(start, i) == i ? 0 : scale * p * (f * dot(douti, v + j * ld, D) - delta);
            for (size_t d = 0; d < D; d++) {
                sum_q[d] += ds * k[j * ld + d];
                sum_k[j * D + d] += ds * qi[d];
                sum_v[j * D + d] += f * p * douti[d];
            }
        }
        for (size_t d = 0; d < D; d++) dq[i * ld_d + d] = (float)sum_q[d];
    }
    for (size_t j = 0; j < T; j++)
        for (size_t d = 0; d < D; d++) {
            dk[j * ld_d + d] = (float)sum_k[j * D + d];
            dv[j * ld_d + d] = (float)sum_v[j * D + d];
        }
}

/* ---- generating text one token at a time ---- */

/* The functions here compute matrix products with few rows, and attention of a single query. */

static void dots(float *out, size_t ld_out, const float *x, const void *w, const float *bias,
                 size_t n, size_t m, size_t k, int bf16)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double sum = bias ? bias[j] : 0;
            for (size_t p = 0; p < k; p++) sum += x[i * k + p] * number(w, j * k + p, bf16);
            out[i * ld_out + j] = (float)sum;
        }
}

static void attend(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                   float scale, float *scores)
{
    double max = -INFINITY, total = 0;
    for (size_t j = 0; j < T; j++) {
        scores[j] = (float)(scale * dot(q, k + j * D, D));
        if (scores[j] > max) max = scores[j];
    }
    for (size_t j = 0; j < T; j++) total += exp(scores[j] - max);
    for (size_t d = 0; d < D; d++) {
        double sum = 0;
        for (size_t j = 0; j < T; j++) sum += exp(scores[j] - max) / total * v[j * D + d];
        out[d] = (float)sum;
    }
}

/* ---- the head and its loss ---- */

/* Compute the loss of one row x, whose logits are the dot products of x and the rows of w. Add the
 * gradients of x and w to dx and dw. If the target is negative (ignored), do nothing. */

static float head_row(size_t V, size_t C, const float *x, const float *w, int32_t target,
                      double scale, double *dx, double *dw)
{
    double max = -INFINITY, total = 0;
    if (target < 0) return 0;
    for (size_t j = 0; j < V; j++) max = fmax(max, dot(x, w + j * C, C));
    for (size_t j = 0; j < V; j++) total += exp(dot(x, w + j * C, C) - max);
    for (size_t j = 0; j < V; j++) {
        double d = scale * (exp(dot(x, w + j * C, C) - max) / total - (j == (size_t)target));
        for (size_t c = 0; c < C; c++) {
            dx[c] += d * w[j * C + c];
            dw[j * C + c] += d * x[c];
        }
    }
    return (float)(max + log(total) - dot(x, w + (size_t)target * C, C));
}

void sgt_head_ref(size_t n, size_t V, size_t C, const float *x, const float *w,
                  const int32_t *targets, double scale, float *loss, double *dx, double *dw)
{
    memset(dx, 0, n * C * sizeof *dx);
    memset(dw, 0, V * C * sizeof *dw);
    for (size_t i = 0; i < n; i++)
        loss[i] = head_row(V, C, x + i * C, w, targets[i], scale, dx + i * C, dw);
}

/* ---- the loss of a softmax classifier ---- */

/* Compute the loss of one row of logits. If `scale` is not 0, also replace the logits with their
 * gradient. */

static void classify_row(float *logits, float *loss, int32_t target, size_t V, size_t ld,
                         float scale)
{
    double max = -INFINITY, total = 0;
    for (size_t c = 0; c < V; c++)
        if (logits[c] > max) max = logits[c];
    for (size_t c = 0; c < V; c++) total += exp(logits[c] - max);
    *loss = target < 0 ? 0 : (float)(max + log(total) - logits[target]);
    if (scale == 0) return;
    for (size_t c = 0; c < V; c++) {
        double p = exp(logits[c] - max) / total;
        logits[c] = target < 0 ? 0 : (float)((p - (c == (size_t)target)) * scale);
    }
    for (size_t c = V; c < ld; c++) logits[c] = 0;
}

static void cross_entropy(float *logits, float *loss, const int32_t *targets, size_t n, size_t V,
                          size_t ld, float scale)
{
    for (size_t i = 0; i < n; i++)
        classify_row(logits + i * ld, &loss[i], targets[i], V, ld, scale);
}

/* ---- Adam with decoupled weight decay ---- */

/* kernels.h has the formula of this update, at sgt_adamw. */

static void adamw(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                  uint16_t *copy)
{
    double b1 = a->beta1, b2 = a->beta2;
    for (size_t i = 0; i < n; i++) {
        double grad = (double)g[i] * a->grad_scale;
        double m1 = b1 * m[i] + (1 - b1) * grad;
        double v1 = b2 * v[i] + (1 - b2) * grad * grad;
        p[i] = (float)(p[i] - a->lr * (m1 / a->c1 / (sqrt(v1 / a->c2) + a->eps) +
                                       (double)a->decay * p[i]));
        m[i] = (float)m1;
        v[i] = (float)v1;
    }
    if (copy) to_bf16(copy, p, n);
}

static void adamw_bf16(float *p, uint16_t *m, uint16_t *v, const float *g, size_t n,
                       const sgt_adamw *a, const sgt_random *r, uint16_t *copy)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t element = r->first + i;
        uint32_t random = sgt_moments_random(sgt_moments_key(r->seed, r->draw, element), element);
        uint32_t bits[2] = {(uint32_t)m[i] << 16, (uint32_t)v[i] << 16};
        float both[2];
        memcpy(both, bits, sizeof both);
        adamw(p + i, &both[0], &both[1], g + i, 1, a, NULL);
        memcpy(bits, both, sizeof bits);
        m[i] = sgt_moment_rounded(bits[0], random & 0xffff);
        v[i] = sgt_moment_rounded(bits[1], random >> 16);
    }
    if (copy) to_bf16(copy, p, n);
}

/* ---- gradient descent with momentum ---- */

/* SGD with momentum, optionally Nesterov's, and decoupled weight decay. The formula is at sgt_sgd
 * in kernels.h. */

static void sgd(float *p, float *m, const float *g, size_t n, const sgt_sgd *o)
{
    for (size_t i = 0; i < n; i++) {
        double grad = (double)g[i] * o->grad_scale, m1 = (double)o->momentum * m[i] + grad;
        double change = o->nesterov ? grad + o->momentum * m1 : m1;
        p[i] = (float)(p[i] - o->lr * (change + (double)o->decay * p[i]));
        m[i] = (float)m1;
    }
}

/* ---- Muon's update of one matrix ---- */

/* kernels/muon.h has the formula. */

/* View of a matrix as Newton-Schulz needs it: with n rows and k columns, where n <= k. A matrix
 * with more rows than columns is read as its transpose. Element (i, j) of the view is at index
 * i*down + j*across of the array. */
typedef struct wide {
    size_t n, k, down, across;
} wide;

static void finish(double *x, size_t n, const sgt_muon_shape *s)
{
    for (size_t i = 0; s->rounding && i < n; i++) {
        float rounded = (float)x[i];
        round_to(&rounded, &rounded, 1, s->format);
        x[i] = rounded;
    }
}

/* Compute one iteration of Newton-Schulz for x (n, k): x = A x + (B G + C G G) x, where G = x x'
 * and A, B and C are constants. `room` is scratch memory of n*k + 2*n*n doubles. */
static void newton_schulz(double *x, const wide *w, const sgt_muon_shape *s, double *room)
{
    size_t n = w->n, k = w->k, down = w->down, across = w->across;
    double *y = room, *g = y + n * k, *b = g + n * n;
    memset(room, 0, (n * k + 2 * n * n) * sizeof *room);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t l = 0; l < k; l++)
                g[i * n + j] += x[i * down + l * across] * x[j * down + l * across];
    finish(g, n * n, s);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double square = 0;
            for (size_t l = 0; l < n; l++) square += g[i * n + l] * g[l * n + j];
            b[i * n + j] = SGT_MUON_B * g[i * n + j] + SGT_MUON_C * square;
        }
    finish(b, n * n, s);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            for (size_t l = 0; l < n; l++)
                y[i * down + j * across] += b[i * n + l] * x[l * down + j * across];
    for (size_t i = 0; i < n * k; i++) x[i] = SGT_MUON_A * x[i] + y[i];
    finish(x, n * k, s);
}

void sgt_muon_ref(float *p, float *m, const float *g, const sgt_muon_shape *s,
                  const sgt_muon_update *o, double *room)
{
    const wide w = s->rows <= s->columns ? (wide){s->rows, s->columns, s->columns, 1}
                                         : (wide){s->columns, s->rows, 1, s->columns};
    size_t count = s->rows * s->columns;
    double *x = room, squares = 0;
    for (size_t i = 0; i < count; i++) {
        double grad = (double)g[i] * o->grad_scale;
        double m1 = SGT_MUON_MOMENTUM * m[i] + (1 - SGT_MUON_MOMENTUM) * grad;
        x[i] = (1 - SGT_MUON_MOMENTUM) * grad + SGT_MUON_MOMENTUM * m1;
        squares += x[i] * x[i];
        m[i] = (float)m1;
    }
    double norm = fmax(sqrt(squares), SGT_MUON_EPS);
    for (size_t i = 0; i < count; i++) x[i] /= norm;
    finish(x, count, s);
    for (int i = 0; i < SGT_MUON_STEPS; i++) newton_schulz(x, &w, s, room + count);
    double lr = o->lr, step = lr * .2 * sqrt((double)w.k);
    for (size_t i = 0; i < count; i++) p[i] = (float)(p[i] * (1 - lr * o->decay) - step * x[i]);
}

/* ---- the table ---- */

const sgt_kernels *sgt_kernels_ref(void)
{
    static const sgt_kernels table = {
        .level = "ref",
        .embed = embed,
        .embed_backward = embed_backward,
        .layernorm = layernorm,
        .residual_layernorm = residual_layernorm,
        .layernorm_backward = layernorm_backward,
        .gelu = gelu,
        .gelu_backward = gelu_backward,
        .dropout = dropout,
        .normals = normals,
        .attention = attention,
        .attention_backward = attention_backward,
        .attention_scratch = attention_scratch,
        .cross_entropy = cross_entropy,
        .dots = dots,
        .attend = attend,
        .bias_backward = bias_backward,
        .round_to = round_to,
        .to_bf16 = to_bf16,
        .add = add,
        .sum_squares = sum_squares,
        .adamw = adamw,
        .adamw_bf16 = adamw_bf16,
        .sgd = sgd,
    };
    return &table;
}
