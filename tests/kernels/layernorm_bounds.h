/* layernorm_bounds.h: error bounds of layer normalization and of its gradients, on a CPU and on the
 * device. */
#ifndef SGT_LAYERNORM_BOUNDS_H
#define SGT_LAYERNORM_BOUNDS_H

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

#endif
