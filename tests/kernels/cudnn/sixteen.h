/* sixteen.h: 16-bit numbers, bf16 or IEEE's half, for tests in C. Rounds to nearest even, by
 * arithmetic. */
#ifndef SGT_SIXTEEN_H
#define SGT_SIXTEEN_H

#include <math.h>
#include <stdint.h>

static inline float sixteen_to_float(uint16_t bits, int bf16)
{
    int fraction = bf16 ? 7 : 10, bias = bf16 ? 127 : 15, most = 2 * bias + 1;
    int exponent = bits >> fraction & most, low = bits & ((1 << fraction) - 1);
    float x = exponent == most ? (low ? NAN : INFINITY)
              : exponent       ? ldexpf((float)(low + (1 << fraction)), exponent - bias - fraction)
                               : ldexpf((float)low, 1 - bias - fraction);
    return bits >> 15 ? -x : x;
}

static inline uint16_t float_to_sixteen(float x, int bf16)
{
    int fraction = bf16 ? 7 : 10, bias = bf16 ? 127 : 15, infinity = (2 * bias + 1) << fraction,
        exponent;
    int sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return (uint16_t)(sign | infinity | 1);
    if (isinf(x)) return (uint16_t)(sign | infinity);
    if (x == 0) return (uint16_t)sign;
    frexpf(x, &exponent);
    /* subnormal: the same spacing as the smallest normal numbers */
    if (--exponent < 1 - bias) exponent = 1 - bias;
    int steps = (int)nearbyint(ldexp(fabs((double)x), fraction - exponent));
    /* includes the leading one of a normal number */
    int bits = ((exponent + bias - 1) << fraction) + steps;
    return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

#endif
