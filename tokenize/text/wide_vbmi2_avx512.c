/* wide_vbmi2_avx512.c: converts 16 units to UTF-8 at a time. Each becomes four bytes, as if it
 * needed them all; the last byte of each and the bytes before it that its length needs are then
 * compressed. */
#include "tokenize/text/wide_levels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define UNITS(x) _mm512_set1_epi32((int)(x))

/* Return the units of text[i ... i+16) that `lanes` has bits for, and 0 for the others. */
static inline __m512i load(const void *text, size_t i, size_t width, __mmask16 lanes)
{
    const uint8_t *p = (const uint8_t *)text + i * width;
    if (width == 1) return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, p));
    if (width == 2) return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, p));
    return _mm512_maskz_loadu_epi32(lanes, p);
}

/* Write 64 / width units if all are ASCII. Return whether they are. */
static inline int narrow(uint8_t *out, const void *text, size_t i, size_t width)
{
    __m512i v = _mm512_loadu_si512((const uint8_t *)text + i * width);
    if (width == 1) {
        if (_mm512_movepi8_mask(v)) return 0;
        _mm512_storeu_si512(out, v);
    } else if (width == 2) {
        if (_mm512_test_epi16_mask(v, _mm512_set1_epi16((short)0xFF80))) return 0;
        _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi16_epi8(v));
    } else {
        if (_mm512_test_epi32_mask(v, UNITS(~0x7F))) return 0;
        _mm_storeu_si128((__m128i *)(void *)out, _mm512_cvtepi32_epi8(v));
    }
    return 1;
}

/* Return whether a unit is a surrogate or too large. */
static inline int is_hard(__m512i v, size_t width)
{
    __m512i upper = _mm512_and_si512(v, UNITS(0xFFFFF800));
    __mmask16 large = width == 4 ? _mm512_cmpgt_epu32_mask(v, UNITS(0x10FFFF)) : 0;
    return _mm512_cmpeq_epi32_mask(upper, UNITS(0xD800)) | large;
}

/* Write the characters that `lanes` has bits for, and up to 64 bytes. Return their length. */
static inline size_t put(uint8_t *out, __m512i v, size_t width, __mmask16 lanes)
{
    /* the lowest bit that each byte has, for two characters: 18, 12, 6, 0; and 32 more */
    const __m512i places = _mm512_set1_epi64(0x20262C3200060C12);
    __mmask16 two = _mm512_cmpge_epu32_mask(v, UNITS(0x80));
    __mmask16 three = _mm512_cmpge_epu32_mask(v, UNITS(0x800));
    __mmask16 four = width == 4 ? _mm512_cmpge_epu32_mask(v, UNITS(0x10000)) : 0;
    __m512i bytes = _mm512_multishift_epi64_epi8(places, v), kept = UNITS(0xFF000000);
    bytes = _mm512_or_si512(_mm512_and_si512(bytes, UNITS(0x3F3F3F07)), UNITS(0x808080F0));
    /* a first byte that is not the first of four */
    bytes = _mm512_mask_or_epi32(bytes, three & ~four, bytes, UNITS(0x6000));
    bytes = _mm512_mask_or_epi32(bytes, two & ~three, bytes, UNITS(0x400000));
    bytes = _mm512_mask_slli_epi32(bytes, (__mmask16)~two, v, 24);
    kept = _mm512_mask_mov_epi32(kept, two, UNITS(0xFFFF0000));
    kept = _mm512_mask_mov_epi32(kept, three, UNITS(0xFFFFFF00));
    kept = _mm512_mask_mov_epi32(kept, four, UNITS(~0));
    __mmask64 mask = _mm512_movepi8_mask(_mm512_maskz_mov_epi32(lanes, kept));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(mask, bytes));
    return (size_t)__builtin_popcountll(mask);
}

/* Inline: each width gets a loop of its own. */
static inline size_t convert(uint8_t *out, const void *text, size_t n, size_t width, size_t *units)
{
    const size_t step = 64 / width;
    size_t used = 0, i = 0;
    while (i < n) {
        if (n - i >= step && narrow(out + used, text, i, width)) {
            i += step;
            used += step;
            continue;
        }
        size_t end = n - i < step ? n : i + step;
        for (; i < end; i += 16) {
            __mmask16 lanes = end - i < 16 ? (__mmask16)((1u << (end - i)) - 1) : 0xFFFF;
            __m512i v = load(text, i, width, lanes);
            if (width > 1 && is_hard(v, width)) {
                *units = i;
                return used;
            }
            used += put(out + used, v, width, lanes);
        }
        i = end;
    }
    *units = n;
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
