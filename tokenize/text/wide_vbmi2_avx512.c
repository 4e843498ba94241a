/* wide_vbmi2_avx512.c: converts 32 units to UTF-8 at a time. If all of them are below U+0800, each
 * becomes two bytes, else four in two halves, as if it needed them all. Those bytes that its length
 * needs are then compressed. Behind the end of a text are zeros, of one byte each. */
#include "tokenize/text/wide.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))
#define UNITS(x) _mm512_set1_epi32((int)(x))

/* Set *v to the `count` units from p on and zeros behind them, 32 in 16 bits each, if all are below
 * U+10000. Return whether they are. */
INLINE int load(__m512i *v, const uint8_t *p, size_t width, size_t count)
{
    const __mmask32 lanes = 0xFFFFFFFF >> (32 - count);
    if (width == 1) {
        *v = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(lanes, p));
    } else if (width == 2) {
        *v = _mm512_maskz_loadu_epi16(lanes, p);
    } else {
        const __m512i a = _mm512_maskz_loadu_epi32((__mmask16)lanes, p),
                      b = _mm512_maskz_loadu_epi32((__mmask16)(lanes >> 16), p + 64);
        if (_mm512_test_epi32_mask(_mm512_or_si512(a, b), UNITS(0xFFFF0000))) return 0;
        *v = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(a)),
                                _mm512_cvtepi32_epi16(b), 1);
    }
    return 1;
}

/* Write 32 characters below U+0800, and up to 64 bytes. Return their length. */
static inline size_t put_low(uint8_t *out, __m512i v)
{
    const __m512i low = _mm512_set1_epi16(0x3F1F), first = _mm512_set1_epi16((short)0x80C0);
    __mmask32 two = _mm512_cmpge_epu16_mask(v, _mm512_set1_epi16(0x80));
    if (!two) {
        _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi16_epi8(v));
        return 32;
    }
    __m512i bytes = _mm512_or_si512(_mm512_srli_epi16(v, 6), _mm512_slli_epi16(v, 8));
    bytes = _mm512_ternarylogic_epi32(bytes, low, first, 0xEA);
    bytes = _mm512_mask_slli_epi16(bytes, ~two, v, 8);
    uint64_t kept = 0xAAAAAAAAAAAAAAAA | _pdep_u64(two, 0x5555555555555555);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(kept, bytes));
    return (size_t)__builtin_popcountll(kept);
}

/* Write 16 characters, and up to 64 bytes. Return their length. two, three, four: masks of those
 * with at least so many bytes */
INLINE size_t put(uint8_t *out, __m512i v, uint32_t two, uint32_t three, uint32_t four)
{
    /* the lowest bit that each byte has, for two characters: 18, 12, 6, 0; and 32 more */
    const __m512i places = _mm512_set1_epi64(0x20262C3200060C12);
    __m512i bytes = _mm512_multishift_epi64_epi8(places, v);
    bytes = _mm512_ternarylogic_epi32(bytes, UNITS(0x3F3F3F07), UNITS(0x808080F0), 0xEA);
    /* a first byte that is not the first of four */
    bytes = _mm512_mask_or_epi32(bytes, (__mmask16)~four, bytes, UNITS(0x6000));
    bytes = _mm512_mask_or_epi32(bytes, (__mmask16)(two & ~three), bytes, UNITS(0x400000));
    bytes = _mm512_mask_slli_epi32(bytes, (__mmask16)~two, v, 24);
    uint64_t kept = 0x8888888888888888 | _pdep_u64(two, 0x4444444444444444) |
                    _pdep_u64(three, 0x2222222222222222) | _pdep_u64(four, 0x1111111111111111);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(kept, bytes));
    return (size_t)__builtin_popcountll(kept);
}

/* Write 32 characters below U+10000, and up to 112 bytes. Return their length; or 0 if one is a
 * surrogate. */
static inline size_t put_block(uint8_t *out, __m512i v, size_t width)
{
    const __m512i upper = _mm512_and_si512(v, _mm512_set1_epi16((short)0xF800));
    const uint32_t three = width > 1 ? _mm512_test_epi16_mask(upper, upper) : 0;
    if (!three) return put_low(out, v);
    if (_mm512_cmpeq_epi16_mask(upper, _mm512_set1_epi16((short)0xD800))) return 0;
    const uint32_t two = _mm512_cmpge_epu16_mask(v, _mm512_set1_epi16(0x80));
    const __m512i a = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)),
                  b = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1));
    size_t n = put(out, a, two & 0xFFFF, three & 0xFFFF, 0);
    return n + put(out + n, b, two >> 16, three >> 16, 0);
}

/* Write the `count` characters from p on, at most 16 of width 4, and up to 64 bytes. Return their
 * length and that of a zero for each of 16 they lack; or 0 if one is a surrogate or too large. */
static inline size_t put_large(uint8_t *out, const uint8_t *p, size_t count)
{
    const __m512i v = _mm512_maskz_loadu_epi32((__mmask16)(0xFFFF >> (16 - count)), p),
                  upper = _mm512_and_si512(v, UNITS(0xFFFFF800));
    if (_mm512_cmpeq_epi32_mask(upper, UNITS(0xD800)) ||
        _mm512_cmpgt_epu32_mask(v, UNITS(0x10FFFF)))
        return 0;
    return put(out, v, _mm512_cmpge_epu32_mask(v, UNITS(0x80)),
               _mm512_cmpge_epu32_mask(v, UNITS(0x800)),
               _mm512_cmpge_epu32_mask(v, UNITS(0x10000)));
}

/* Convert the `count` units from p on, at most 32, or some of them. Set *units to their number, and
 * return that of bytes. */
INLINE size_t convert_some(uint8_t *out, const uint8_t *p, size_t width, size_t count,
                           size_t *units)
{
    __m512i v;
    size_t bytes;
    *units = count;
    if (load(&v, p, width, count) && (bytes = put_block(out, v, width)))
        return bytes - (32 - count);
    *units = count = count < 16 ? count : 16;
    if (width == 4 && (bytes = put_large(out, p, count))) return bytes - (16 - count);
    return *units = 0;
}

/* Inline: each width gets a loop of its own. */
static inline size_t convert(uint8_t *out, const uint8_t *text, size_t n, size_t width,
                             size_t *units)
{
    size_t used = 0, i = 0, did = 1;
    while (i < n && did) {
        uint8_t *to = out + used;
        const uint8_t *p = text + i * width;
        used += n - i < 32 ? convert_some(to, p, width, n - i, &did)
                           : convert_some(to, p, width, 32, &did);
        i += did;
    }
    *units = i;
    return used;
}

size_t sgt_wide_avx512(uint8_t *out, const void *text, size_t n, size_t width, size_t *units)
{
    if (width == 1) return convert(out, text, n, 1, units);
    return width == 2 ? convert(out, text, n, 2, units) : convert(out, text, n, 4, units);
}
#else
typedef int nothing_here;
#endif
