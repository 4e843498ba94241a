/* rows_avx2.c: 16 ids at a time, widened by vpmovzxwd. */
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m256i vec;
#define IDS 16

static inline vec load(const uint16_t *src)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)src);
}

static inline vec max(vec a, vec b) { return _mm256_max_epu16(a, b); }

static inline void store(void *dst, vec v) { _mm256_storeu_si256(dst, v); }

static uint16_t top_of(vec v)
{
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    /* minpos returns the smallest of 8 values, so complement them to find the largest */
    m = _mm_xor_si128(m, _mm_set1_epi16(-1));
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

/* vpmovzxwq loads its 4 ids from memory. Taking them from a vector would need shuffles. */
static inline vec put(char *dst, const uint16_t *src, size_t size)
{
    vec v = load(src);
    if (size == 2) store(dst, v);
    if (size == 4) store(dst, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)));
    if (size == 4) store(dst + 32, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)));
    for (size_t i = 0; size == 8 && i < IDS; i += 4) {
        __m128i four = _mm_loadl_epi64((const __m128i *)(const void *)(src + i));
        store(dst + 8 * i, _mm256_cvtepu16_epi64(four));
    }
    return v;
}

#include "loader/rows/rows_simd.h"

const sgt_rows sgt_rows_avx2 = {"avx2", largest, write_row};
#else
typedef int nothing_here;
#endif
