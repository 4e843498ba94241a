/* sgd.h: the SGD update with momentum, in one pass over parameters, momentum and gradients. */
#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

static void sgd(float *p, float *m, const float *g, size_t n, const sgt_sgd *o)
{
    const vf scale = vset(o->grad_scale), momentum = vset(o->momentum), lr = vset(o->lr),
             decay = vset(o->decay);
    for (size_t i = 0; i < n; i += W) {
        vf grad = vload_upto(g + i, n - i) * scale, old = vload_upto(p + i, n - i);
        vf m1 = vfma(momentum, vload_upto(m + i, n - i), grad);
        vf change = o->nesterov ? vfma(momentum, m1, grad) : m1;
        vstore_upto(m + i, m1, n - i);
        vstore_upto(p + i, old - lr * vfma(decay, old, change), n - i);
    }
}
