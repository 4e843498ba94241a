/* bounds.h: error bounds of layer normalization and its gradients, of cross entropy and of AdamW's
 * update, on a CPU and on the device. attention_head.h has those of attention. */
#ifndef SGT_CHECK_BOUNDS_H
#define SGT_CHECK_BOUNDS_H

#include <math.h>

#include "tests/kernels/harness.h"

static const float EPS = 1e-5f;

/* First-order errors of a row of width C, computed from its values. r is rstd, m is the mean, and
 * e_x is the error of x. `chain` is the number of additions in the longest chain of a sum of C
 * floats. `more` is 1 if mean and variance come from float sums, which adds a rounding.
 *   mean: (chain + 1) u mean|x|, one rounding for each addition
 *   variance: (chain + 3) u, relative, and 2 e_mean mean|x - m|, which is at most 2 e_mean
 *     sqrt(variance)
 *   rstd: half of the variance's relative error, and u
 *   out = (x - m) r w + b: (e_mean + u |x - m|) r |w|, |xhat w| (e_rstd + 2u), and the last
 *     rounding */
static inline void row_bounds(double *out, double *mean, double *rstd, const float *x,
                              const float *w, const float *b, size_t C, double chain, int more)
{
    double sum = 0, absolute = 0, squares = 0;
    for (size_t c = 0; c < C; c++) sum += x[c], absolute += fabs(x[c]);
    double m = sum / (double)C;
    for (size_t c = 0; c < C; c++) squares += (x[c] - m) * (x[c] - m);
    double r = 1 / sqrt(squares / (double)C + EPS);
    double e_mean = (chain + 1 + more) * UNIT * absolute / (double)C;
    double e_rstd = (chain + 3) / 2 * UNIT + e_mean * r + (1 + more) * UNIT;
    *mean = e_mean + UNIT * fabs(m);
    *rstd = r * (e_rstd + UNIT);
    for (size_t c = 0; c < C; c++) {
        double xhat = fabs(x[c] - m) * r;
        out[c] = fabs(w[c]) * (r * e_mean + xhat * (e_rstd + 3 * UNIT)) +
                 2 * UNIT * (xhat * fabs(w[c]) + fabs(b[c]));
    }
}

typedef struct gradients {
    size_t n, C;
    const float *x, *w, *dout, *mean, *rstd;
    float *dx, *dw, *db;
} gradients;

/* Error bounds of the gradients.
 *   dx: two sums along the row, each with an error of (chain + 4) u |terms|, and a few roundings of
 *     each term
 *   dw, db: sums over n rows with at most n + 1 additions, and `more` where rows are added in
 *     groups; a term of dw has four more roundings */
static inline void gradient_bounds(double *dx, double *dw, double *db, const gradients *g,
                                   double chain, int more)
{
    size_t n = g->n, C = g->C;
    for (size_t c = 0; c < C; c++)
        dw[c] = UNIT * (fabs(g->dw[c]) + 1), db[c] = UNIT * (fabs(g->db[c]) + 1);
    for (size_t i = 0; i < n; i++) {
        const float *x = g->x + i * C, *dout = g->dout + i * C;
        double sum = 0, sum_x = 0, r = g->rstd[i], k = (chain + 4) * UNIT / (double)C;
        for (size_t c = 0; c < C; c++) {
            double term = fabs((double)dout[c] * g->w[c]),
                   xhat = fabs(((double)x[c] - g->mean[i]) * r);
            sum += term;
            sum_x += term * xhat;
            dw[c] += ((double)n + 5 + more) * UNIT * fabs(dout[c]) * xhat;
            db[c] += ((double)n + 1 + more) * UNIT * fabs(dout[c]);
        }
        for (size_t c = 0; c < C; c++) {
            double term = fabs((double)dout[c] * g->w[c]),
                   xhat = fabs(((double)x[c] - g->mean[i]) * r);
            dx[i * C + c] = r * (k * (sum + xhat * sum_x) +
                                 6 * UNIT * (term + (sum + xhat * sum_x) / (double)C)) +
                            2 * UNIT * fabs(g->dx[i * C + c]);
        }
    }
}

/* Error bounds of a row of cross entropy, where `range` is the largest logit minus the smallest.
 *   x - max: u |x - max|; exp: 4u
 *   on a CPU: sum of exp, its log and its use in p: (260 + range) u, relative, because a lane adds
 *     at most 1024/4 terms in float before double takes over
 *   on the device: 2u of the range more for the product with log2(e); the same for each of the
 *     running rescales, of which a thread and a block have V/4096 + 2; V/512 + 8 additions per
 *     thread, 5 in a warp, 16 in a block; 2u for log, relatively; the sum max + log rounds once
 *   p: also the error of its own term; p - 1 and the product with the scale round once each */
static inline void cross_entropy_bounds(double *logits, double *loss, const float *x,
                                        int32_t target, size_t V, float scale, int device)
{
    double max = -INFINITY, min = INFINITY, total = 0;
    for (size_t c = 0; c < V; c++) max = fmax(max, x[c]), min = fmin(min, x[c]);
    for (size_t c = 0; c < V; c++) total += exp(x[c] - max);
    double range = max - min, relative = (260 + range) * UNIT, row = max + log(total);
    if (device) {
        range = 3 * range + 5;
        relative = (range * (3 + (double)V / 4096) + (double)V / 512 + 8 + 5 + 16) * UNIT;
    }
    *loss = 0;
    if (target >= 0)
        *loss = relative + UNIT * (device ? 2 * log(total) + 2 * fabs(row) + fabs((double)x[target])
                                          : fabs(row - x[target]));
    for (size_t c = 0; c < V; c++) {
        double p = exp(x[c] - max) / total;
        logits[c] = fabs((double)scale) *
                        (p * (relative + (range + 6) * UNIT) + (c == (size_t)target) * 3 * UNIT) +
                    1e-37;
    }
}

/* Error bounds of p, m and v after an AdamW update of `old`. g' is the scaled gradient. If beta is
 * near 1, 1 - beta has few significant digits, so it counts as one more rounding.
 *   m: 4u (|beta1 m| + |(1 - beta1) g'|); the device computes m + (1 - beta1)(g' - m) instead of two
 *     products, which adds 2u (|m| + |g'|)
 *   v: 6u v, because all terms of v are positive; on the device 2u (v + g'^2) more
 *   change of p by the moments: the error of m, half of the relative error of v, and 9u for root,
 *     sum, quotients and products; 5u more on the device, 2u of them for the factors 1/c1 and 1/c2
 *   p: also 4u of the weight decay, and 2u for the last rounding, here and in ref */
static inline void adamw_bounds(double *const bound[3], const float *const old[3], const float *g,
                                size_t n, const sgt_adamw *a, int device)
{
    for (size_t i = 0; i < n; i++) {
        double p = fabs((double)old[0][i]), m = (double)old[1][i], v = (double)old[2][i];
        double grad = (double)g[i] * (double)a->grad_scale, more = device ? 2 * UNIT : 0;
        double first = fabs(a->beta1 * m) + fabs((1 - a->beta1) * grad);
        double second = a->beta2 * v + (1 - a->beta2) * grad * grad;
        double root = sqrt(second / a->c2) + (double)a->eps, rate = a->lr / a->c1;
        bound[1][i] = 4 * UNIT * first + more * (fabs(m) + fabs(grad));
        bound[2][i] = 6 * UNIT * second + more * (v + grad * grad) + 1e-44;
        double of_root = root > 0 && second > 0 ? bound[2][i] / second / 2 : 0;
        double change = bound[1][i] + ((device ? 14 : 9) * UNIT + of_root) * first;
        bound[0][i] = rate * change / root + 4 * UNIT * a->lr * a->decay * p +
                      2 * UNIT * (p + rate * first / root);
    }
}

#endif
