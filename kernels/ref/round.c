/* round.c: floats rounded to the formats with 16 bits, IEEE 754's nearest with ties to even. */
#include <math.h>
#include <string.h>

#include "ref.h"

/* The nearest number of `bits` bits, the last of which is worth 2^lowest or more; past the largest:
 * infinite. */
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

/* bfloat16 is float32's upper half. */
void sgt_ref_to_bf16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        float y = (float)nearest(x[i], 8, -133, 0x1.fep127);
        memcpy(&bits, &y, sizeof bits);
        /* a NaN's lower half may be all that made it one */
        out[i] = (uint16_t)(bits >> 16 | (isnan(y) ? 0x40 : 0));
    }
}
