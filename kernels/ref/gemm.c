/* gemm.c: the matrix product by its definition, with sums in double. */
#include <string.h>

#include "kernels/ref/ref.h"

static double number(const void *x, size_t i, int bf16)
{
    float y;
    if (!bf16) return ((const float *)x)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)x)[i] << 16;
    memcpy(&y, &bits, sizeof y);
    return y;
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
