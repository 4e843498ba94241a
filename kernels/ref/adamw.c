/* adamw.c: Adam with decoupled weight decay; kernels.h has the formula (sgt_adamw). */
#include <math.h>
#include <string.h>

#include "kernels/moments.h"
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

void sgt_ref_adamw_bf16(float *p, uint16_t *m, uint16_t *v, const float *g, size_t n,
                        const sgt_adamw *a, const sgt_random *r, uint16_t *copy)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t element = r->first + i;
        uint32_t random = sgt_moments_random(sgt_moments_key(r->seed, r->draw, element), element);
        uint32_t bits[2] = {(uint32_t)m[i] << 16, (uint32_t)v[i] << 16};
        float both[2];
        memcpy(both, bits, sizeof both);
        sgt_ref_adamw(p + i, &both[0], &both[1], g + i, 1, a, NULL);
        memcpy(bits, both, sizeof bits);
        m[i] = sgt_moment_rounded(bits[0], random & 0xffff);
        v[i] = sgt_moment_rounded(bits[1], random >> 16);
    }
    if (copy) sgt_ref_to_bf16(copy, p, n);
}
