/* round.c: rounds floats to 16-bit formats, to nearest with ties to even (IEEE 754). */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

/* Return the number nearest to x whose significand has `bits` bits and whose last bit is worth at
 * least 2^lowest; infinity if that is above `largest`. */
static double nearest(double x, int bits, int lowest, double largest)
{
    int exponent, last;
    if (!isfinite(x) || x == 0) return x;
    frexp(x, &exponent); /* 2^(exponent - 1) <= |x| < 2^exponent */
    last = exponent - bits > lowest ? exponent - bits : lowest;
    double y = ldexp(nearbyint(ldexp(x, -last)), last);
    return fabs(y) > largest ? copysign(INFINITY, x) : y;
}

void sgt_ref_round(float *out, const float *x, size_t n, sgt_rounding to)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(to == SGT_FORMAT_BF16 ? nearest(x[i], 8, -133, 0x1.fep127)
                                               : nearest(x[i], 11, -24, 65504));
}

/* Convert floats to bfloat16, which is the upper half of a float. */
void sgt_ref_to_bf16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        float y = (float)nearest(x[i], 8, -133, 0x1.fep127);
        memcpy(&bits, &y, sizeof bits);
        /* keep a NaN a NaN, even if its only fraction bits are in the lower half */
        out[i] = (uint16_t)(bits >> 16 | (isnan(y) ? 0x40 : 0));
    }
}
