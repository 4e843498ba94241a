/* rows_avx512.c: 32 ids at a time. Masked stores are slow (32 rows of 1025 with both ends masked: 6.8
 * us, without 5.1 us). */
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m512i vec;
#define IDS 32

static inline vec load(const uint16_t *src) { return _mm512_loadu_si512(src); }

static inline vec max(vec a, vec b) { return _mm512_max_epu16(a, b); }

static inline void store(void *dst, vec v) { _mm512_storeu_si512(dst, v); }

static uint16_t top_of(vec v)
{
    __m256i h = _mm256_max_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    /* minpos returns the smallest of 8 values, so complement them to find the largest */
    m = _mm_xor_si128(m, _mm_set1_epi16(-1));
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

/* vpmovzxwq loads its 8 ids from memory. Taking them from a vector would need shuffles. */
static inline vec put(char *dst, const uint16_t *src, size_t size)
{
    vec v = load(src);
    if (size == 2) store(dst, v);
    if (size == 4) store(dst, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
    if (size == 4) store(dst + 64, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
    for (size_t i = 0; size == 8 && i < IDS; i += 8) {
        __m128i eight = _mm_loadu_si128((const __m128i *)(const void *)(src + i));
        store(dst + 8 * i, _mm512_cvtepu16_epi64(eight));
    }
    return v;
}

#include "loader/rows/rows_simd.h"

const sgt_rows sgt_rows_avx512 = {"avx512", largest, write_row};
#else
typedef int nothing_here;
#endif
