/* dropout.h: computes the factors of kernels/dropout.h and multiplies arrays by them. */
#ifndef SGT_CPU_DROPOUT_H
#define SGT_CPU_DROPOUT_H

#include "kernels/kernels.h"
#include "kernels/dropout.h"
#include "kernels/cpu/simd.h"

enum { DROP = 4 * W }; /* elements drawn at a time: W draws, one per lane */

/* Write the factors of DROP elements from `element` on, a multiple of 4. No iteration depends on
 * another, so the compiler vectorizes the loop. */
static void drop_factors(float *factor, const sgt_dropout *d, uint64_t element)
{
    const uint32_t limit = sgt_dropout_limit(d->rate);
    const float keep = sgt_dropout_keep(d->rate);
    for (size_t l = 0; l < W; l++) {
        sgt_philox4 r = sgt_philox(d->seed, element / 4 + l, d->draw);
        for (int i = 0; i < 4; i++) factor[4 * l + i] = r.x[i] >> 8 >= limit ? keep : 0;
    }
}

static void dropout(float *out, const float *x, size_t n, const sgt_dropout *d)
{
    float factor[DROP];
    size_t skip = d->first % 4; /* elements of the first draw that come before d->first */
    uint64_t element = d->first - skip;
    for (size_t i = 0; i < n; element += DROP, skip = 0) {
        drop_factors(factor, d, element);
        for (size_t f = skip, lanes; f < DROP && i < n; f += lanes, i += lanes) {
            lanes = DROP - f < n - i ? DROP - f : n - i;
            if (lanes > W) lanes = W;
            vstore_upto(out + i, vload_upto(x + i, lanes) * vload_upto(factor + f, lanes), lanes);
        }
    }
}

#endif
