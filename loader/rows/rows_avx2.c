/* rows_avx2.c: the functions of rows.h with AVX2. They copy 16 ids of 2 bytes, or 8 ids of 4 bytes,
 * at a time, and convert ids to wider integers with the instruction vpmovzx. */
#include "loader/rows/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m256i vec;

static inline vec load(const void *src) { return _mm256_loadu_si256(src); }

static inline void store(void *dst, vec v) { _mm256_storeu_si256(dst, v); }

SGT_ROWS_INLINE vec max(vec a, vec b, size_t width)
{
    return width == 2 ? _mm256_max_epu16(a, b) : _mm256_max_epu32(a, b);
}

SGT_ROWS_INLINE uint32_t top_of(vec v, size_t width)
{
    __m128i a = _mm256_castsi256_si128(v), b = _mm256_extracti128_si256(v, 1);
    if (width == 2) {
        /* The instruction phminposuw finds the smallest of 8 values. To find the largest instead,
         * invert all bits, which reverses the order, and invert the bits of the result again. */
        a = _mm_xor_si128(_mm_max_epu16(a, b), _mm_set1_epi16(-1));
        return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(a), 0);
    }
    a = _mm_max_epu32(a, b);
    a = _mm_max_epu32(a, _mm_srli_si128(a, 8));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(a, _mm_srli_si128(a, 4)));
}

/* Copy a vector of ids from src to dst, as integers of `size` bytes, and return the ids as a
 * vector. Ids that are widened to 8 bytes are loaded a second time, 4 at a time, because vpmovzx
 * can widen them directly from memory. Taking each 4 ids out of the vector would need additional
 * shuffle instructions. */
SGT_ROWS_INLINE vec put(char *dst, const char *src, size_t width, size_t size)
{
    vec v = load(src);
    if (size == width) store(dst, v);
    if (size == 4 && width == 2) {
        store(dst, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)));
        store(dst + 32, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)));
    }
    for (size_t i = 0; size == 8 && i < sizeof v / width; i += 4) {
        const void *four = src + i * width;
        vec wide = width == 2 ? _mm256_cvtepu16_epi64(_mm_loadl_epi64(four))
                              : _mm256_cvtepu32_epi64(_mm_loadu_si128(four));
        store(dst + 8 * i, wide);
    }
    return v;
}

#include "loader/rows/rows_simd.h"

const sgt_rows sgt_rows_avx2 = {"avx2", largest, write_row};
#endif
