/* layernorm.c: layer normalization, Ba, Kiros & Hinton 2016: bring each row to mean 0 and variance
 * 1, then scale and shift it. */
#include <math.h>

#include "kernels/ref/ref.h"

void sgt_ref_layernorm(float *out, float *mean, float *rstd, const float *x, const float *w,
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

void sgt_ref_residual_layernorm(float *sum, float *out, float *mean, float *rstd, const float *x,
                                const float *y, const float *w, const float *b, size_t n, size_t C,
                                float eps)
{
    for (size_t i = 0; i < n * C; i++) sum[i] = x[i] + y[i];
    sgt_ref_layernorm(out, mean, rstd, sum, w, b, n, C, eps);
}

/* Add to dx: rstd * (g - mean(g) - xhat * mean(g*xhat)), with xhat = (x - mean)*rstd, g = dout*w,
 * and mean() along the row. */
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

void sgt_ref_layernorm_backward(float *dx, float *dw, float *db, const float *dout, const float *x,
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
