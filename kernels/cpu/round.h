/* round.h: rounds floats to bfloat16 or fp16 by integer operations. No iteration depends on
 * another, so the compiler vectorizes the loops. */
#ifndef SGT_CPU_ROUND_H
#define SGT_CPU_ROUND_H

#include "kernels/kernels.h"
#include "kernels/cpu/simd.h"

/* Round away the lowest `drop` bits, ties to even. A carry out of the fraction increases the
 * exponent, past the largest to infinity. */
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

/* Return a mask: all ones if `yes` is 1, 0 if it is 0. */
SGT_INLINE uint32_t pick(int yes) { return 0u - (uint32_t)yes; }

SGT_INLINE float round_bf16(float x)
{
    uint32_t u = to_bits(x), r = round_bits(u, 16);
    return from_bits((u & 0x7fffffff) > 0x7f800000 ? u : r); /* a NaN stays one */
}

/* Round to fp16. Below 2^-14 fp16 has steps of 2^-24; adding and subtracting 0.5 rounds to them. */
SGT_INLINE float round_fp16(float x)
{
    uint32_t u = to_bits(x), sign = u & 0x80000000, size = u & 0x7fffffff;
    uint32_t normal = round_bits(size, 13), small = to_bits(from_bits(size) + 0.5f - 0.5f);
    uint32_t low = pick(size < 0x38800000), high = pick(normal > 0x477fe000); /* 2^-14 and 65504 */
    uint32_t r = (small & low) | (normal & ~low & ~high) | (0x7f800000 & high & ~low),
             nan = pick(size > 0x7f800000);
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

/* Convert as to_bf16 does, with non-temporal stores if the CPU has AVX-512 and `out` begins a cache
 * line. Meant for data that is read again only after much else: its lines then need not be fetched
 * before they are overwritten. Call stream_end after the last conversion, before another thread
 * reads the data. */
#if defined(__AVX512BW__)
SGT_INLINE __m512i bf16_in_upper_half(const float *x)
{
    __m512i u = _mm512_loadu_si512(x), one = _mm512_set1_epi32(1),
            quiet = _mm512_set1_epi32(0x400000);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    __m512i r = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    __mmask16 nan =
        _mm512_cmp_ps_mask(_mm512_castsi512_ps(u), _mm512_castsi512_ps(u), _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(r, nan, u, quiet);
}

static void stream_bf16(uint16_t *out, const float *x, size_t n)
{
    const __m512i upper = _mm512_setr_epi32(0x30001, 0x70005, 0xb0009, 0xf000d, 0x130011, 0x170015,
                                            0x1b0019, 0x1f001d, 0x230021, 0x270025, 0x2b0029,
                                            0x2f002d, 0x330031, 0x370035, 0x3b0039, 0x3f003d);
    size_t i = 0;
    for (; (uintptr_t)out % 64 == 0 && i + 2 * W <= n; i += 2 * W)
        _mm512_stream_si512((__m512i *)(void *)(out + i),
                            _mm512_permutex2var_epi16(bf16_in_upper_half(x + i), upper,
                                                      bf16_in_upper_half(x + i + W)));
    to_bf16(out + i, x + i, n - i);
}

static inline void stream_end(void) { _mm_sfence(); }
#else
static void stream_bf16(uint16_t *out, const float *x, size_t n) { to_bf16(out, x, n); }
static inline void stream_end(void) {}
#endif

#endif
