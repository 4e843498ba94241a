/* round.h: floats rounded to 16 bits and kept as floats, by their bits: the loops have no step that depends on another,
 * and the compiler makes vectors of them. */
#include "kernels.h"
#include "simd.h"

/* The upper 32 - `drop` bits, halfway cases to even; a carry out of the fraction is a larger exponent, past the largest
 * one infinity. */
SGT_INLINE uint32_t round_bits(uint32_t u, int drop)
{
    uint32_t half = (1u << (drop - 1)) - 1 + (u >> drop & 1);
    return (u + half) & ~((1u << drop) - 1);
}

SGT_INLINE float from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

SGT_INLINE uint32_t to_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* All ones or none: what a branch would choose. */
SGT_INLINE uint32_t pick(int yes) { return 0u - (uint32_t)yes; }

SGT_INLINE float round_bf16(float x)
{
    uint32_t u = to_bits(x), r = round_bits(u, 16);
    return from_bits((u & 0x7fffffff) > 0x7f800000 ? u : r); /* a NaN stays one */
}

/* Below 2^-14 fp16 has steps of 2^-24, which is what adding 0.5 and taking it away again leaves. */
SGT_INLINE float round_fp16(float x)
{
    uint32_t u = to_bits(x), sign = u & 0x80000000, size = u & 0x7fffffff;
    uint32_t normal = round_bits(size, 13), small = to_bits(from_bits(size) + 0.5f - 0.5f);
    uint32_t low = pick(size < 0x38800000), high = pick(normal > 0x477fe000); /* 2^-14 and 65504 */
    uint32_t r = (small & low) | (normal & ~low & ~high) | (0x7f800000 & high & ~low), nan = pick(size > 0x7f800000);
    return from_bits((u & nan) | ((sign | r) & ~nan));
}

static void round_to(float *out, const float *x, size_t n, sgt_rounding to)
{
    if (to == SGT_FORMAT_BF16)
        for (size_t i = 0; i < n; i++) out[i] = round_bf16(x[i]);
    else
        for (size_t i = 0; i < n; i++) out[i] = round_fp16(x[i]);
}

static void to_bf16(uint16_t *out, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u = to_bits(x[i]), nan = pick((u & 0x7fffffff) > 0x7f800000);
        out[i] = (uint16_t)(((u | 0x400000) & nan) >> 16 | (round_bits(u, 16) & ~nan) >> 16);
    }
}
