/* dropout.c: dropout, Srivastava et al. 2014; kernels/dropout.h decides which numbers it drops. */
#include "kernels/dropout.h"

#include "kernels/ref/ref.h"

void sgt_ref_dropout(float *out, const float *x, size_t n, const sgt_dropout *d)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * sgt_dropout_factor(d->seed, d->draw, d->first + i, d->rate);
}
