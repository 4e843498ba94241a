/* layernorm.h: layer normalization, one row at a time, so that the row stays in the first-level
 * cache between the passes over it. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* Compute mean and 1/sqrt(variance + eps) of a row in two passes: the one-pass formula cancels if
 * the mean is large. */
SGT_INLINE void row_statistics(float *mean, float *rstd, const float *x, size_t C, float eps)
{
    vf a = vset(0), b = vset(0); /* two sums in parallel hide the additions' latency */
    size_t c = 0;
    for (; c + 2 * W <= C; c += 2 * W) {
        a += vload(x + c);
        b += vload(x + c + W);
    }
    for (; c < C; c += W) a += vload_upto(x + c, C - c);
    float m = (float)(vtotal(a + b) / (double)C);

    a = b = vset(0);
    for (c = 0; c + 2 * W <= C; c += 2 * W) {
        vf s = vload(x + c) - vset(m), t = vload(x + c + W) - vset(m);
        a = vfma(s, s, a);
        b = vfma(t, t, b);
    }
    for (; c < C; c += W) {
        vf s = vkeep(vload_upto(x + c, C - c) - vset(m), C - c);
        a = vfma(s, s, a);
    }
    *mean = m;
    *rstd = (float)(1 / sqrt(vtotal(a + b) / (double)C + eps));
}

SGT_INLINE void row_normalize(float *out, float *mean, float *rstd, const float *x, const float *w,
                              const float *b, size_t C, float eps)
{
    row_statistics(mean, rstd, x, C, eps);
    vf m = vset(*mean), r = vset(*rstd);
    for (size_t c = 0; c < C; c += W) {
        vf xhat = (vload_upto(x + c, C - c) - m) * r;
        vstore_upto(out + c, vfma(xhat, vload_upto(w + c, C - c), vload_upto(b + c, C - c)), C - c);
    }
}

static void layernorm(float *out, float *mean, float *rstd, const float *x, const float *w,
                      const float *b, size_t n, size_t C, float eps)
{
    for (size_t i = 0; i < n; i++)
        row_normalize(out + i * C, &mean[i], &rstd[i], x + i * C, w, b, C, eps);
}

static void residual_layernorm(float *sum, float *out, float *mean, float *rstd, const float *x,
                               const float *y, const float *w, const float *b, size_t n, size_t C,
                               float eps)
{
    for (size_t i = 0; i < n; i++, sum += C, out += C, x += C, y += C) {
        for (size_t c = 0; c < C; c += W)
            vstore_upto(sum + c, vload_upto(x + c, C - c) + vload_upto(y + c, C - c), C - c);
        row_normalize(out, &mean[i], &rstd[i], sum, w, b, C, eps);
    }
}

/* Compute mean(g) and mean(g*xhat) of one row, with g = dout*w. */
SGT_INLINE void row_means(float *mean_g, float *mean_gx, const float *dout, const float *x,
                          const float *w, float mean, float rstd, size_t C)
{
    vf g_sum = vset(0), gx_sum = vset(0);
    for (size_t c = 0; c < C; c += W) {
        /* g is 0 past the end, and so are both sums' terms */
        vf g = vload_upto(dout + c, C - c) * vload_upto(w + c, C - c);
        vf xhat = (vload_upto(x + c, C - c) - vset(mean)) * vset(rstd);
        g_sum += g;
        gx_sum = vfma(g, xhat, gx_sum);
    }
    *mean_g = (float)(vtotal(g_sum) / (double)C);
    *mean_gx = (float)(vtotal(gx_sum) / (double)C);
}

/* Complete the backward pass of `rows` rows whose mean(g) and mean(g*xhat) are known: add to dx,
 * and sum dw and db over the rows in registers before adding them. */
enum { LAYERNORM_ROWS = 8 };
SGT_INLINE void rows_backward(float *dx, float *dw, float *db, const float *dout, const float *x,
                              const float *mean, const float *rstd, const float *w,
                              const float *mean_g, const float *mean_gx, size_t rows, size_t C)
{
    for (size_t c = 0; c < C; c += W) {
        vf weight = vload_upto(w + c, C - c), w_sum = vset(0), b_sum = vset(0);
        for (size_t i = 0; i < rows; i++) {
            vf d = vload_upto(dout + i * C + c, C - c);
            vf xhat = (vload_upto(x + i * C + c, C - c) - vset(mean[i])) * vset(rstd[i]);
            vf g = vfma(d, weight, -vfma(xhat, vset(mean_gx[i]), vset(mean_g[i])));
            w_sum = vfma(d, xhat, w_sum);
            b_sum += d;
            vstore_upto(dx + i * C + c, vfma(g, vset(rstd[i]), vload_upto(dx + i * C + c, C - c)),
                        C - c);
        }
        vstore_upto(dw + c, vload_upto(dw + c, C - c) + w_sum, C - c);
        vstore_upto(db + c, vload_upto(db + c, C - c) + b_sum, C - c);
    }
}

static void layernorm_backward(float *dx, float *dw, float *db, const float *dout, const float *x,
                               const float *mean, const float *rstd, const float *w, size_t n,
                               size_t C)
{
    float mean_g[LAYERNORM_ROWS], mean_gx[LAYERNORM_ROWS];
    for (size_t i = 0; i < n; i += LAYERNORM_ROWS) {
        size_t rows = n - i < LAYERNORM_ROWS ? n - i : LAYERNORM_ROWS;
        for (size_t r = 0; r < rows; r++)
            row_means(&mean_g[r], &mean_gx[r], dout + (i + r) * C, x + (i + r) * C, w, mean[i + r],
                      rstd[i + r], C);
        rows_backward(dx + i * C, dw, db, dout + i * C, x + i * C, mean + i, rstd + i, w, mean_g,
                      mean_gx, rows, C);
    }
}
