/* adamw.h: one pass over parameter, moments and gradient. */
#include "kernels.h"
#include "simd.h"

enum { AHEAD_FLOATS = 512 };

typedef struct adamw_factors {
    vf scale, b1, b1_rest, b2, b2_rest, step, root, eps, decay;
} adamw_factors;

SGT_INLINE void adamw_lanes(float *p, float *m, float *v, const float *g, size_t n, const adamw_factors *f)
{
    vf grad = vload_upto(g, n) * f->scale, old = vload_upto(p, n);
    vf m1 = vfma(f->b1, vload_upto(m, n), f->b1_rest * grad);
    vf v1 = vfma(f->b2, vload_upto(v, n), f->b2_rest * grad * grad);
    vstore_upto(m, m1, n);
    vstore_upto(v, v1, n);
    vf change = m1 * f->step / vfma(vsqrt(v1), f->root, f->eps);
    vstore_upto(p, old - vfma(f->decay, old, change), n);
}

static void adamw(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a)
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
    for (size_t i = 0; i < n; i += W) {
        /* 2 KiB ahead: the processor's own prefetching stops at every page's end */
        __builtin_prefetch(p + i + AHEAD_FLOATS, 1);
        __builtin_prefetch(m + i + AHEAD_FLOATS, 1);
        __builtin_prefetch(v + i + AHEAD_FLOATS, 1);
        __builtin_prefetch(g + i + AHEAD_FLOATS);
        adamw_lanes(p + i, m + i, v + i, g + i, n - i, &f);
    }
}
