/* decode.c: kernels for generating text one token at a time: products with few rows, and attention
 * of one query. */
#include <math.h>

#include "kernels/ref/ref.h"

void sgt_ref_dots(float *out, size_t ld_out, const float *x, const float *w, const float *bias,
                  size_t n, size_t m, size_t k)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double sum = bias ? bias[j] : 0;
            for (size_t p = 0; p < k; p++) sum += (double)x[i * k + p] * w[j * k + p];
            out[i * ld_out + j] = (float)sum;
        }
}

void sgt_ref_dots_bf16(float *out, size_t ld_out, const float *x, const uint16_t *w,
                       const float *bias, size_t n, size_t m, size_t k)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double sum = bias ? bias[j] : 0;
            for (size_t p = 0; p < k; p++) sum += x[i * k + p] * sgt_ref_widened(w[j * k + p]);
            out[i * ld_out + j] = (float)sum;
        }
}

void sgt_ref_attend(float *out, const float *q, const float *k, const float *v, size_t T, size_t D,
                    float scale, float *scores)
{
    double max = -INFINITY, total = 0;
    for (size_t j = 0; j < T; j++) {
        double s = 0;
        for (size_t d = 0; d < D; d++) s += (double)q[d] * k[j * D + d];
        scores[j] = (float)(scale * s);
        if (scores[j] > max) max = scores[j];
    }
    for (size_t j = 0; j < T; j++) total += exp(scores[j] - max);
    for (size_t d = 0; d < D; d++) {
        double sum = 0;
        for (size_t j = 0; j < T; j++) sum += exp(scores[j] - max) / total * v[j * D + d];
        out[d] = (float)sum;
    }
}
