/* wide_vbmi2_avx512.c: converts 32 units to UTF-8 at a time. If all of them are below U+0800, each
 * becomes two bytes, else four in two halves, as if it needed them all. Those bytes that its length
 * needs are then compressed. */
#include "tokenize/text/wide_levels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define UNITS(x) _mm512_set1_epi32((int)(x))

/* Return `count` units from p on, at most 16, and zeros behind them. */
static inline __m512i load(const uint8_t *p, size_t width, size_t count)
{
    const __mmask16 lanes = (__mmask16)(0xFFFFu >> (16 - count));
    if (width == 1) return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, p));
    if (width == 2) return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, p));
    return _mm512_maskz_loadu_epi32(lanes, p);
}

/* Set *v to the 32 units from p on if all are below U+0800. Return whether they are. */
static inline int load_low(__m512i *v, const uint8_t *p, size_t width)
{
    if (width == 1) {
        *v = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
    } else if (width == 2) {
        *v = _mm512_loadu_si512(p);
        return !_mm512_test_epi16_mask(*v, _mm512_set1_epi16((short)0xF800));
    } else {
        const __m512i a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 64);
        if (_mm512_test_epi32_mask(_mm512_or_si512(a, b), UNITS(~0x7FF))) return 0;
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

/* Return whether a unit is a surrogate or too large. four: units above U+FFFF */
static inline int is_hard(__m512i v, __mmask16 four)
{
    __m512i upper = _mm512_and_si512(v, UNITS(0xFFFFF800));
    return _mm512_cmpeq_epi32_mask(upper, UNITS(0xD800)) ||
           (four && _mm512_cmpgt_epu32_mask(v, UNITS(0x10FFFF)));
}

/* Write `count` characters, of at most 16, and up to 64 bytes. Return their length; or 0 if one is
 * a surrogate or too large. */
static inline size_t put(uint8_t *out, __m512i v, size_t width, size_t count)
{
    /* the lowest bit that each byte has, for two characters: 18, 12, 6, 0; and 32 more */
    const __m512i places = _mm512_set1_epi64(0x20262C3200060C12);
    __mmask16 two = _mm512_cmpge_epu32_mask(v, UNITS(0x80));
    __mmask16 three = _mm512_cmpge_epu32_mask(v, UNITS(0x800));
    __mmask16 four = width == 4 ? _mm512_cmpge_epu32_mask(v, UNITS(0x10000)) : 0;
    if (width > 1 && is_hard(v, four)) return 0;
    __m512i bytes = _mm512_multishift_epi64_epi8(places, v);
    bytes = _mm512_ternarylogic_epi32(bytes, UNITS(0x3F3F3F07), UNITS(0x808080F0), 0xEA);
    /* a first byte that is not the first of four */
    if (width > 1) bytes = _mm512_mask_or_epi32(bytes, three & ~four, bytes, UNITS(0x6000));
    bytes = _mm512_mask_or_epi32(bytes, two & ~three, bytes, UNITS(0x400000));
    bytes = _mm512_mask_slli_epi32(bytes, (__mmask16)~two, v, 24);
    uint64_t kept = 0x8888888888888888 | _pdep_u64(two, 0x4444444444444444) |
                    _pdep_u64(three, 0x2222222222222222);
    if (width == 4) kept |= _pdep_u64(four, 0x1111111111111111);
    kept &= ~(uint64_t)0 >> (64 - 4 * count);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(kept, bytes));
    return (size_t)__builtin_popcountll(kept);
}

/* Inline: each width gets a loop of its own. */
static inline size_t convert(uint8_t *out, const void *text, size_t n, size_t width, size_t *units)
{
    const uint8_t *p = text;
    size_t used = 0, i = 0;
    while (i < n) {
        __m512i v;
        if (n - i >= 32 && load_low(&v, p + i * width, width)) {
            used += put_low(out + used, v);
            i += 32;
            continue;
        }
        size_t count = n - i < 16 ? n - i : 16;
        size_t bytes = put(out + used, load(p + i * width, width, count), width, count);
        if (!bytes) break;
        i += count;
        used += bytes;
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
