/* rows_avx2.c: 16 ids at a time, widened by vpmovzxwd from two loads one id apart. */
#include "rows/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

static uint16_t top_of(__m256i v)
{
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_xor_si128(m, _mm_set1_epi16(-1)); /* minpos finds the smallest: of the complements */
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

static uint16_t largest(const uint16_t *src, size_t n)
{
    __m256i top = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) top = _mm256_max_epu16(top, _mm256_loadu_si256((const __m256i *)(src + i)));
    uint16_t t = top_of(top);
    for (; i < n; i++) t = src[i] > t ? src[i] : t;
    return t;
}

static uint16_t copy(uint16_t *dst, const uint16_t *src, size_t n)
{
    __m256i top = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(src + i));
        _mm256_storeu_si256((__m256i *)(dst + i), v);
        top = _mm256_max_epu16(top, v);
    }
    uint16_t t = top_of(top);
    for (; i < n; i++) {
        dst[i] = src[i];
        t = src[i] > t ? src[i] : t;
    }
    return t;
}

static void store16(int32_t *dst, __m256i v)
{
    _mm256_storeu_si256((__m256i *)dst, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)));
    _mm256_storeu_si256((__m256i *)(dst + 8), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)));
}

static uint16_t widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    __m256i top = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i next = _mm256_loadu_si256((const __m256i *)(src + i + 1));
        store16(inputs + i, _mm256_loadu_si256((const __m256i *)(src + i)));
        store16(targets + i, next);
        top = _mm256_max_epu16(top, next);
    }
    uint16_t t = top_of(top);
    t = src[0] > t ? src[0] : t;
    for (; i < n; i++) {
        inputs[i] = src[i];
        targets[i] = src[i + 1];
        t = src[i + 1] > t ? src[i + 1] : t;
    }
    return t;
}

const sgt_rows sgt_rows_avx2 = {"avx2", copy, widen, largest};
#else
typedef int nothing_here;
#endif
