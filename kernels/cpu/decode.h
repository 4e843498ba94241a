/* decode.h: kernels for generating text one token at a time: products of few rows, which read the
 * weights from memory once, and attention of one query over the preceding positions.
 *
 * A dot product is added up in order of k in one vector of W partial sums, whose total is taken
 * last. Its bits are therefore the same in every tile, and for any number of rows. A tile
 * multiplies rows of x with DOT_COLUMNS rows of weights. While the first rows of x are multiplied
 * with them, the next tile's weights are prefetched. So even with a single row of x, memory is the
 * only limit. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* DOT_ROWS * DOT_COLUMNS sums stay in registers */
enum { DOT_ROWS = W == 16 ? 4 : 2, DOT_COLUMNS = 4 };

SGT_INLINE void dots_step(vf sum[DOT_ROWS][DOT_COLUMNS], const float *x, const void *w, size_t k,
                          size_t p, size_t n, int rows, int columns, int bf16)
{
    vf right[DOT_COLUMNS];
    for (int j = 0; j < columns; j++) right[j] = vload_either(w, j * k + p, n, bf16);
    for (int i = 0; i < rows; i++) {
        vf left = vload_upto(x + i * k + p, n);
        for (int j = 0; j < columns; j++) sum[i][j] = vfma(left, right[j], sum[i][j]);
    }
}

/* Compute out (rows, columns) = x (rows, k) w' + bias, and prefetch the next tile's weights at
 * `ahead`, unless that is NULL. rows, columns and bf16 are constants in every call. */
SGT_INLINE void dots_tile(float *out, size_t ld_out, const float *x, const void *w,
                          const float *bias, size_t k, const char *ahead, int rows, int columns,
                          int bf16)
{
    vf sum[DOT_ROWS][DOT_COLUMNS];
    size_t p = 0, size = bf16 ? sizeof(uint16_t) : sizeof(float);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) sum[i][j] = vset(0);
    for (; p + W <= k; p += W) {
        if (ahead)
            for (int j = 0; j < columns; j++) __builtin_prefetch(ahead + (j * k + p) * size);
        dots_step(sum, x, w, k, p, W, rows, columns, bf16);
    }
    if (p < k) dots_step(sum, x, w, k, p, k - p, rows, columns, bf16);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            out[i * ld_out + j] = (float)(vtotal(sum[i][j]) + (bias ? (double)bias[j] : 0));
}

/* Multiply all n rows of x with `columns` rows of weights. */
SGT_INLINE void dots_columns(float *out, size_t ld_out, const float *x, const void *w,
                             const float *bias, size_t n, size_t k, const char *ahead, int columns,
                             int bf16)
{
    size_t i = 0;
    for (; i + DOT_ROWS <= n; i += DOT_ROWS, ahead = NULL)
        dots_tile(out + i * ld_out, ld_out, x + i * k, w, bias, k, ahead, DOT_ROWS, columns, bf16);
    for (; i < n; i++, ahead = NULL)
        dots_tile(out + i * ld_out, ld_out, x + i * k, w, bias, k, ahead, 1, columns, bf16);
}

SGT_INLINE void dots_of(float *out, size_t ld_out, const float *x, const void *w, const float *bias,
                        size_t n, size_t m, size_t k, int bf16)
{
    size_t j = 0, line = k * (bf16 ? sizeof(uint16_t) : sizeof(float));
    for (; j + DOT_COLUMNS <= m; j += DOT_COLUMNS) {
        const char *here = (const char *)w + j * line, *next = here + DOT_COLUMNS * line;
        dots_columns(out + j, ld_out, x, here, bias ? bias + j : NULL, n, k,
                     j + 2 * DOT_COLUMNS <= m ? next : NULL, DOT_COLUMNS, bf16);
    }
    for (; j < m; j++)
        dots_columns(out + j, ld_out, x, (const char *)w + j * line, bias ? bias + j : NULL, n, k,
                     NULL, 1, bf16);
}

static void dots(float *out, size_t ld_out, const float *x, const float *w, const float *bias,
                 size_t n, size_t m, size_t k)
{
    dots_of(out, ld_out, x, w, bias, n, m, k, 0);
}

static void dots_bf16(float *out, size_t ld_out, const float *x, const uint16_t *w,
                      const float *bias, size_t n, size_t m, size_t k)
{
    dots_of(out, ld_out, x, w, bias, n, m, k, 1);
}

/* Compute out (count) = sum_j p_j v_j for `count` columns of v (row stride ld), held in `vectors`
 * vectors. */
SGT_INLINE void weighted_sum(float *out, const float *p, const float *v, size_t ld, size_t T,
                             size_t count, int vectors)
{
    vf sum[4];
    for (int x = 0; x < vectors; x++) sum[x] = vset(0);
    for (size_t j = 0; j < T; j++, v += ld)
        for (int x = 0; x < vectors; x++)
            sum[x] = vfma(vset(p[j]), vload_upto(v + x * W, count - x * W), sum[x]);
    for (int x = 0; x < vectors; x++) vstore_upto(out + x * W, sum[x], count - x * W);
}

static void attend(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                   float scale, float *scores)
{
    float max = -INFINITY;
    vf sum = vset(0);
    dots_of(scores, T, q, k, NULL, 1, T, D, 0);
    for (size_t j = 0; j < T; j++) {
        scores[j] *= scale;
        max = scores[j] > max ? scores[j] : max;
    }
    vf most = vset(max);
    for (size_t j = 0; j < T; j += W) {
        vf e = vkeep(vexp(vload_upto(scores + j, T - j) - most), T - j);
        vstore_upto(scores + j, e, T - j);
        sum += e;
    }
    vf share = vset((float)(1 / vtotal(sum)));
    for (size_t j = 0; j < T; j += W)
        vstore_upto(scores + j, vload_upto(scores + j, T - j) * share, T - j);
    size_t d = 0;
    for (; d + 4 * W <= D; d += 4 * W) weighted_sum(out + d, scores, v + d, D, T, 4 * W, 4);
    for (; d < D; d += W) weighted_sum(out + d, scores, v + d, D, T, D - d, 1);
}
