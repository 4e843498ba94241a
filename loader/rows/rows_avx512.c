/* rows_avx512.c: 32 ids at a time, and rows with non-temporal stores. Masked stores are slow (32 rows
 * of 1025 with both ends masked: 6.8 us, without 5.1 us). With non-temporal stores the ends use
 * masks all the same: a line written by both kinds of store takes as long as two lines.
 * loader/NOTES.md has more. */
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

typedef __m512i vec;
#define IDS 32

static inline vec load(const uint16_t *src) { return _mm512_loadu_si512(src); }

static inline vec max(vec a, vec b) { return _mm512_max_epu16(a, b); }

static inline void store(void *dst, vec v, int past)
{
    if (past) _mm512_stream_si512(dst, v);
    else _mm512_storeu_si512(dst, v);
}

static uint16_t top_of(vec v)
{
    __m256i h = _mm256_max_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    /* minpos returns the smallest of 8 values, so complement them to find the largest */
    m = _mm_xor_si128(m, _mm_set1_epi16(-1));
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

/* vpmovzxwq loads its 8 ids from memory. Taking them from a vector would need shuffles. */
static inline vec put(char *dst, const uint16_t *src, size_t size, int past)
{
    vec v = load(src);
    if (size == 2) store(dst, v, past);
    if (size == 4) store(dst, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)), past);
    if (size == 4) store(dst + 64, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)), past);
    for (size_t i = 0; size == 8 && i < IDS; i += 8) {
        __m128i eight = _mm_loadu_si128((const __m128i *)(const void *)(src + i));
        store(dst + 8 * i, _mm512_cvtepu16_epi64(eight), past);
    }
    return v;
}

#include "loader/rows/rows_simd.h"

/* ---- past the caches ---- */

/* Return the mask that selects the first n < 32 ids. */
static __mmask32 mask_of(size_t n) { return (__mmask32)((1ull << n) - 1); }

/* Write n < 32 ids. */
INLINE void put_few(char *dst, const uint16_t *src, size_t n, size_t size)
{
    if (size == 2)
        _mm512_mask_storeu_epi16(dst, mask_of(n), _mm512_maskz_loadu_epi16(mask_of(n), src));
    for (size_t i = 0; size > 2 && i < n; i += 64 / size) {
        __mmask32 m = mask_of(n - i < 64 / size ? n - i : 64 / size);
        __m256i ids = _mm256_maskz_loadu_epi16((__mmask16)m, src + i);
        if (size == 4)
            _mm512_mask_storeu_epi32(dst + 4 * i, (__mmask16)m, _mm512_cvtepu16_epi32(ids));
        else
            _mm512_mask_storeu_epi64(dst + 8 * i, (__mmask8)m,
                                     _mm512_cvtepu16_epi64(_mm256_castsi256_si128(ids)));
    }
}

/* Write ids i ... i + n - 1, n < 32, as put_ids does. */
INLINE vec put_end(char *first, char *second, const uint16_t *src, size_t i, size_t n, sgt_output o)
{
    const size_t size = sgt_output_bytes(o), pairs = (size_t)sgt_output_pairs(o);
    put_few(first + i * size, src + i, n, size);
    if (pairs) put_few(second + i * size, src + i + 1, n, size);
    return _mm512_maskz_loadu_epi16(mask_of(n), src + i + pairs);
}

INLINE uint16_t put_row_past(void *first, void *second, const uint16_t *src, size_t n, sgt_output o)
{
    /* if the two outputs are aligned differently, or ids are not aligned to their size, the stores
     * cannot be aligned */
    if (n < IDS || (uintptr_t)first % sgt_output_bytes(o) ||
        (sgt_output_pairs(o) && ((uintptr_t)first ^ (uintptr_t)second) & 63))
        return put_row(first, second, src, n, o);
    size_t i = (-(uintptr_t)first & 63) / sgt_output_bytes(o);
    vec top = max(load(src), put_end(first, second, src, 0, i, o));
    i = put_whole(first, second, src, i, n, o, 1, &top);
    top = max(top, put_end(first, second, src, i, n - i, o));
    _mm_sfence();
    return top_of(top);
}

static uint16_t write_u16_past(void *first, void *second, const uint16_t *src, size_t n)
{
    return put_row_past(first, second, src, n, SGT_OUTPUT_U16);
}

static uint16_t write_i32_past(void *first, void *second, const uint16_t *src, size_t n)
{
    return put_row_past(first, second, src, n, SGT_OUTPUT_I32);
}

static uint16_t write_i64_past(void *first, void *second, const uint16_t *src, size_t n)
{
    return put_row_past(first, second, src, n, SGT_OUTPUT_I64);
}

const sgt_rows sgt_rows_avx512 = {"avx512",
                                  largest,
                                  {write_u16, write_i32, write_i64},
                                  {write_u16_past, write_i32_past, write_i64_past}};
#else
typedef int nothing_here;
#endif
