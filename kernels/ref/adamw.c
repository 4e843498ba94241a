/* adamw.c: Adam with decoupled weight decay; for the formula see sgt_adamw in kernels.h. */
#include <math.h>

#include "kernels/ref/ref.h"

void sgt_ref_adamw(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
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
    if (copy) sgt_ref_to_bf16(copy, p, n);
}
