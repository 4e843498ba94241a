/* vector.h: sums over plain vectors. */
#include "kernels.h"
#include "simd.h"

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += W) vstore_upto(x + i, vload_upto(x + i, n - i) + vload_upto(y + i, n - i), n - i);
}

static double sum_squares(const float *x, size_t n)
{
    vd low = vdset(0), high = vdset(0);
    for (size_t i = 0; i < n; i += W) {
        vf v = vload_upto(x + i, n - i);
        low = vdfma(vlow(v), vlow(v), low);
        high = vdfma(vhigh(v), vhigh(v), high);
    }
    return vdtotal(low + high);
}
