/* normals.c: normal random numbers from Philox, by the method of Box and Muller ("A note on the
 * generation of random normal deviates", 1958). A draw has two pairs of words, and each pair gives
 * two numbers. */
#include <math.h>

#include "loader/base/philox.h"
#include "kernels/ref/ref.h"

void sgt_ref_normals(float *out, size_t n, const sgt_normals *d)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t element = d->first + i;
        sgt_philox4 r = sgt_philox(d->seed, element / 4, d->draw);
        const uint32_t *pair = r.x + element % 4 / 2 * 2;
        float u = ((float)pair[0] + 1.0f) * 0x1p-32f; /* above 0, at most 1 */
        double radius = (double)d->sigma * sqrt(-2 * log((double)u)),
               angle = 2 * M_PI * 0x1p-32 * (double)pair[1];
        out[i] = (float)(radius * (element % 2 ? sin(angle) : cos(angle)));
    }
}
