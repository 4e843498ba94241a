/* adamw.h: the AdamW update in one pass over parameters, moments and gradients. The pass also
 * writes the bfloat16 copy of the parameters that matrix products read. Prefetch instructions
 * gained nothing on a Zen 4 (check-kernels --bench --kernel adamw). */
#include "kernels/kernels.h"
#include "kernels/moments.h"
#include "kernels/cpu/round.h"
#include "kernels/cpu/simd.h"

/* floats updated at a time; then copied, while in the first-level cache */
enum { COPIED_FLOATS = 64 };

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

SGT_INLINE adamw_factors adamw_factors_of(const sgt_adamw *a)
{
    return (adamw_factors){
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
}

static void adamw(float *p, float *m, float *v, const float *g, size_t n, const sgt_adamw *a,
                  uint16_t *copy)
{
    const adamw_factors f = adamw_factors_of(a);
    for (size_t i = 0, end; i < n; i = end) {
        end = n - i < COPIED_FLOATS ? n : i + COPIED_FLOATS;
        for (size_t j = i; j < end; j += W) adamw_lanes(p + j, m + j, v + j, g + j, end - j, &f);
        if (copy) stream_bf16(copy + i, p + i, end - i);
    }
    if (copy) stream_end();
}

SGT_INLINE void widen_moments(float *to, const uint16_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = from_bits((uint32_t)from[i] << 16);
}

/* Round n elements' moments to bfloat16 at random (kernels/moments.h); all share `key`. */
SGT_INLINE void round_moments(uint16_t *m, uint16_t *v, const float *m1, const float *v1,
                              uint32_t key, uint32_t element, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t random = sgt_moments_random(key, element + (uint32_t)i);
        m[i] = sgt_moment_rounded(to_bits(m1[i]), random & 0xffff);
        v[i] = sgt_moment_rounded(to_bits(v1[i]), random >> 16);
    }
}

static void adamw_bf16(float *p, uint16_t *m, uint16_t *v, const float *g, size_t n,
                       const sgt_adamw *a, const sgt_random *r, uint16_t *copy)
{
    const adamw_factors f = adamw_factors_of(a);
    float m1[COPIED_FLOATS], v1[COPIED_FLOATS];
    uint32_t key = sgt_moments_key(r->seed, r->draw, r->first);
    for (size_t i = 0, part; i < n; i += part) {
        uint64_t element = r->first + i, left = UINT64_C(0x100000000) - (uint32_t)element;
        if (!(uint32_t)element) key = sgt_moments_key(r->seed, r->draw, element);
        part = n - i < COPIED_FLOATS ? n - i : COPIED_FLOATS;
        /* stop where the random generator's next key begins: one serves 2^32 elements */
        if (part > left) part = left;
        widen_moments(m1, m + i, part);
        widen_moments(v1, v + i, part);
        for (size_t j = 0; j < part; j += W)
            adamw_lanes(p + i + j, m1 + j, v1 + j, g + i + j, part - j, &f);
        round_moments(m + i, v + i, m1, v1, key, (uint32_t)element, part);
        if (copy) stream_bf16(copy + i, p + i, part);
    }
    if (copy) stream_end();
}
