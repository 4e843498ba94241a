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
static __mmask32 first(size_t n) { return (__mmask32)((1ull << n) - 1); }

/* Write n < 32 ids. */
INLINE void put_few(char *dst, const uint16_t *src, size_t n, size_t size)
{
    if (size == 2) _mm512_mask_storeu_epi16(dst, first(n), _mm512_maskz_loadu_epi16(first(n), src));
    for (size_t i = 0; size > 2 && i < n; i += 64 / size) {
        __mmask32 m = first(n - i < 64 / size ? n - i : 64 / size);
        __m256i ids = _mm256_maskz_loadu_epi16((__mmask16)m, src + i);
        if (size == 4)
            _mm512_mask_storeu_epi32(dst + 4 * i, (__mmask16)m, _mm512_cvtepu16_epi32(ids));
        else
            _mm512_mask_storeu_epi64(dst + 8 * i, (__mmask8)m,
                                     _mm512_cvtepu16_epi64(_mm256_castsi256_si128(ids)));
    }
}

/* Write ids i ... i + n - 1, n < 32, as put_ids does. */
INLINE vec put_end(char *inputs, char *targets, const uint16_t *src, size_t i, size_t n, form f)
{
    put_few(inputs + i * f.size, src + i, n, f.size);
    if (f.pairs) put_few(targets + i * f.size, src + i + 1, n, f.size);
    return _mm512_maskz_loadu_epi16(first(n), src + i + f.pairs);
}

INLINE uint16_t put_row_past(void *inputs, void *targets, const uint16_t *src, size_t n, form f)
{
    /* if the two outputs are aligned differently, their stores cannot both be aligned */
    if (n < IDS || (f.pairs && ((uintptr_t)inputs ^ (uintptr_t)targets) & 63)) {
        f.past = 0;
        return put_row(inputs, targets, src, n, f);
    }
    size_t i = (-(uintptr_t)inputs & 63) / f.size;
    vec top = put_end(inputs, targets, src, 0, i, f);
    top = max(top, put_whole(inputs, targets, src, &i, n, f));
    top = max(top, put_end(inputs, targets, src, i, n - i, f));
    _mm_sfence();
    return top_of(top);
}

static uint16_t copy_past(uint16_t *dst, const uint16_t *src, size_t n)
{
    return put_row_past(dst, NULL, src, n, (form){2, 0, 1});
}

static uint16_t widen_past(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    return put_row_past(inputs, targets, src, n, (form){4, 1, 1});
}

static uint16_t widen64_past(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n)
{
    return put_row_past(inputs, targets, src, n, (form){8, 1, 1});
}

static uint16_t widen_row_past(int32_t *dst, const uint16_t *src, size_t n)
{
    return put_row_past(dst, NULL, src, n, (form){4, 0, 1});
}

const sgt_rows sgt_rows_avx512 = {"avx512",  copy,      widen,      largest,      widen64,
                                  widen_row, copy_past, widen_past, widen64_past, widen_row_past};
#else
typedef int nothing_here;
#endif
