/* gemm.c: the matrix product, by its definition. */
#include "ref.h"

void sgt_gemm_ref(const sgt_gemm_shape *s, const float *a, const float *b, const float *bias, float *c)
{
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < s->n; j++) {
            double sum = s->bias ? bias[j] : 0;
            if (s->accumulate) sum += c[i * s->ldc + j];
            for (size_t p = 0; p < s->k; p++) {
                double x = s->trans_a ? a[p * s->lda + i] : a[i * s->lda + p];
                double y = s->trans_b ? b[j * s->ldb + p] : b[p * s->ldb + j];
                sum += x * y;
            }
            c[i * s->ldc + j] = (float)sum;
        }
}
