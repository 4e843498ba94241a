/* sgd.c: gradient descent with momentum, optionally Nesterov's, and decoupled weight decay;
 * kernels.h has the formula (sgt_sgd). */
#include "kernels/ref/ref.h"

void sgt_ref_sgd(float *p, float *m, const float *g, size_t n, const sgt_sgd *o)
{
    for (size_t i = 0; i < n; i++) {
        double grad = (double)g[i] * o->grad_scale, m1 = (double)o->momentum * m[i] + grad;
        double change = o->nesterov ? grad + o->momentum * m1 : m1;
        p[i] = (float)(p[i] - o->lr * (change + (double)o->decay * p[i]));
        m[i] = (float)m1;
    }
}
