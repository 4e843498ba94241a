/* rows_avx512.c: the functions of rows.h with AVX-512. They copy 32 ids of 2 bytes, or 16 ids of 4
 * bytes, at a time. They do not use masked stores, which are slow: writing 32 rows of 1,025 ids
 * took 6.8 us when the first and the last store of each row were masked, and 5.1 us without
 * masks. */
#include "loader/rows/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m512i vec;

static inline vec load(const void *src) { return _mm512_loadu_si512(src); }

static inline void store(void *dst, vec v) { _mm512_storeu_si512(dst, v); }

SGT_ROWS_INLINE vec max(vec a, vec b, size_t width)
{
    return width == 2 ? _mm512_max_epu16(a, b) : _mm512_max_epu32(a, b);
}

SGT_ROWS_INLINE uint32_t top_of(vec v, size_t width)
{
    if (width == 4) return _mm512_reduce_max_epu32(v);
    __m256i h = _mm256_max_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    /* The instruction phminposuw finds the smallest of 8 values. To find the largest instead,
     * invert all bits, which reverses the order, and invert the bits of the result again. */
    m = _mm_xor_si128(m, _mm_set1_epi16(-1));
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

/* Copy a vector of ids from src to dst, as integers of `size` bytes, and return the ids as a
 * vector. Ids that are widened to 8 bytes are loaded a second time, 8 at a time, because vpmovzx
 * can widen them directly from memory. Taking each 8 ids out of the vector would need additional
 * shuffle instructions. */
SGT_ROWS_INLINE vec put(char *dst, const char *src, size_t width, size_t size)
{
    vec v = load(src);
    if (size == width) store(dst, v);
    if (size == 4 && width == 2) {
        store(dst, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
        store(dst + 64, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
    }
    for (size_t i = 0; size == 8 && i < sizeof v / width; i += 8) {
        const void *eight = src + i * width;
        vec wide = width == 2 ? _mm512_cvtepu16_epi64(_mm_loadu_si128(eight))
                              : _mm512_cvtepu32_epi64(_mm256_loadu_si256(eight));
        store(dst + 8 * i, wide);
    }
    return v;
}

#include "loader/rows/rows_simd.h"

const sgt_rows sgt_rows_avx512 = {"avx512", largest, write_row};
#endif
