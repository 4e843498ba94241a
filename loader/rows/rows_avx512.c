/* rows_avx512.c: 32 ids at a time; the rest of a row under a mask, so that there is no loop over single ids. */
#include "rows/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

static __mmask32 first(size_t n) /* the first n < 32 ids */
{
    return (__mmask32)((1ull << n) - 1);
}

static uint16_t top_of(__m512i v)
{
    __m256i h = _mm256_max_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    m = _mm_xor_si128(m, _mm_set1_epi16(-1)); /* minpos finds the smallest: of the complements */
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

static uint16_t largest(const uint16_t *src, size_t n)
{
    __m512i top = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 32 <= n; i += 32) top = _mm512_max_epu16(top, _mm512_loadu_si512(src + i));
    top = _mm512_max_epu16(top, _mm512_maskz_loadu_epi16(first(n - i), src + i));
    return top_of(top);
}

static uint16_t copy(uint16_t *dst, const uint16_t *src, size_t n)
{
    __m512i top = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i v = _mm512_loadu_si512(src + i);
        _mm512_storeu_si512(dst + i, v);
        top = _mm512_max_epu16(top, v);
    }
    __m512i v = _mm512_maskz_loadu_epi16(first(n - i), src + i);
    _mm512_mask_storeu_epi16(dst + i, first(n - i), v);
    return top_of(_mm512_max_epu16(top, v));
}

static void store32(int32_t *dst, __m512i v)
{
    _mm512_storeu_si512(dst, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
    _mm512_storeu_si512(dst + 16, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
}

static void store_some(int32_t *dst, __m512i v, __mmask32 m)
{
    _mm512_mask_storeu_epi32(dst, (__mmask16)m, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
    if (m >> 16)
        _mm512_mask_storeu_epi32(dst + 16, (__mmask16)(m >> 16),
                                 _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
}

static uint16_t widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    __m512i top = _mm512_maskz_set1_epi16(1, (short)src[0]);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i next = _mm512_loadu_si512(src + i + 1);
        store32(inputs + i, _mm512_loadu_si512(src + i));
        store32(targets + i, next);
        top = _mm512_max_epu16(top, next);
    }
    if (i < n) {
        __mmask32 m = first(n - i);
        __m512i next = _mm512_maskz_loadu_epi16(m, src + i + 1);
        store_some(inputs + i, _mm512_maskz_loadu_epi16(m, src + i), m);
        store_some(targets + i, next, m);
        top = _mm512_max_epu16(top, next);
    }
    return top_of(top);
}

const sgt_rows sgt_rows_avx512 = {"avx512", copy, widen, largest};
#else
typedef int nothing_here;
#endif
