/* adamw.h: one pass over parameter, moments and gradient, which also writes the copy that products
 * read. Prefetching by hand gained nothing on a Zen 4 (check-kernels --bench --kernel adamw). */
#include "kernels/kernels.h"
#include "kernels/cpu/round.h"
#include "kernels/cpu/simd.h"

enum { COPIED_FLOATS = 64 }; /* floats copied at a time, while they are in the first-level cache */

typedef struct adamw_factors {
    vf scale, b1, b1_rest, b2, b2_rest, step, root, eps, decay;
} adamw_factors;

SGT_INLINE void adamw_lanes(float *p, float *m, float *v, const float *g, size_t n,
                            const adamw_factors *f)
{
    vf grad = vload_upto(g, n) * f->scale, old = vload_upto(p, n);
    vf m1 = vfma(f->b1, vload_upto(m, n), f->b1_rest * grad);
    vf v1 = vfma(f->b2, vload_upto(v, n), f->b2_rest * grad * grad);
    vstore_upto(m, m1, n);
    vstore_upto(v, v1, n);
    vf change = m1 * f->step / vfma(vsqrt(v1), f->root, f->eps);
    vstore_upto(p, old - vfma(f->decay, old, change), n);
}

static void adamw(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                  uint16_t *copy)
{
    const adamw_factors f = {
        .scale = vset(a->grad_scale),
        .b1 = vset(a->beta1),
        .b1_rest = vset(1 - a->beta1),
        .b2 = vset(a->beta2),
        .b2_rest = vset(1 - a->beta2),
        .step = vset((float)(a->lr / a->c1)),
        .root = vset((float)(1 / sqrt(a->c2))),
        .eps = vset(a->eps),
        .decay = vset(a->lr * a->decay),
    };
    for (size_t i = 0, end; i < n; i = end) {
        end = n - i < COPIED_FLOATS ? n : i + COPIED_FLOATS;
        for (size_t j = i; j < end; j += W) adamw_lanes(p + j, m + j, v + j, g + j, end - j, &f);
        if (copy) stream_bf16(copy + i, p + i, end - i);
    }
    if (copy) stream_end();
}
