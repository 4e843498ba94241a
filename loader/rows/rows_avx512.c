/* rows_avx512.c: 32 ids at a time; what is before the first whole line of the row and after the last one goes under a
 * mask, so that there is no loop over single ids. What was tried, and what it gave, stands in rows.h. */
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

static __m512i top_of_four(__m512i a, __m512i b, __m512i c, __m512i d)
{
    return _mm512_max_epu16(_mm512_max_epu16(a, b), _mm512_max_epu16(c, d));
}

/* How many items of `size` bytes there are before the next line begins, n at most. */
static size_t to_line(const void *p, size_t size, size_t n)
{
    size_t left = (-(uintptr_t)p & 63) / size;
    return left < n ? left : n;
}

static uint16_t largest(const uint16_t *src, size_t n)
{
    __m512i top = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 128 <= n; i += 128) {
        __m512i a = _mm512_loadu_si512(src + i), b = _mm512_loadu_si512(src + i + 32);
        __m512i c = _mm512_loadu_si512(src + i + 64), d = _mm512_loadu_si512(src + i + 96);
        top = _mm512_max_epu16(top, top_of_four(a, b, c, d));
    }
    for (; i + 32 <= n; i += 32) top = _mm512_max_epu16(top, _mm512_loadu_si512(src + i));
    top = _mm512_max_epu16(top, _mm512_maskz_loadu_epi16(first(n - i), src + i));
    return top_of(top);
}

static inline void store(void *dst, __m512i v, int past)
{
    if (past) _mm512_stream_si512(dst, v);
    else _mm512_storeu_si512(dst, v);
}

/* ---- copy ---- */

static __m512i copy_some(uint16_t *dst, const uint16_t *src, size_t n)
{
    __m512i v = _mm512_maskz_loadu_epi16(first(n), src);
    _mm512_mask_storeu_epi16(dst, first(n), v);
    return v;
}

static inline uint16_t copy_by(uint16_t *dst, const uint16_t *src, size_t n, int past)
{
    size_t i = to_line(dst, sizeof *dst, n);
    __m512i top = copy_some(dst, src, i);
    for (; i + 128 <= n; i += 128) { /* four loads, then four stores: 8.2 -> 6.5 us for 32 rows of 1025 */
        __m512i a = _mm512_loadu_si512(src + i), b = _mm512_loadu_si512(src + i + 32);
        __m512i c = _mm512_loadu_si512(src + i + 64), d = _mm512_loadu_si512(src + i + 96);
        store(dst + i, a, past);
        store(dst + i + 32, b, past);
        store(dst + i + 64, c, past);
        store(dst + i + 96, d, past);
        top = _mm512_max_epu16(top, top_of_four(a, b, c, d));
    }
    for (; i + 32 <= n; i += 32) {
        __m512i v = _mm512_loadu_si512(src + i);
        store(dst + i, v, past);
        top = _mm512_max_epu16(top, v);
    }
    if (i < n) top = _mm512_max_epu16(top, copy_some(dst + i, src + i, n - i));
    if (past) _mm_sfence();
    return top_of(top);
}

static uint16_t copy(uint16_t *dst, const uint16_t *src, size_t n)
{
    return copy_by(dst, src, n, 0);
}

static uint16_t copy_past(uint16_t *dst, const uint16_t *src, size_t n)
{
    return copy_by(dst, src, n, 1);
}

/* ---- widen ---- */

static inline void store32(int32_t *dst, __m512i v, int past)
{
    store(dst, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)), past);
    store(dst + 16, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)), past);
}

static void store_some(int32_t *dst, __m512i v, __mmask32 m)
{
    _mm512_mask_storeu_epi32(dst, (__mmask16)m, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
    if (m >> 16)
        _mm512_mask_storeu_epi32(dst + 16, (__mmask16)(m >> 16),
                                 _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
}

static __m512i widen_some(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    __mmask32 m = first(n);
    __m512i next = _mm512_maskz_loadu_epi16(m, src + 1);
    store_some(inputs, _mm512_maskz_loadu_epi16(m, src), m);
    store_some(targets, next, m);
    return next;
}

static inline uint16_t widen_by(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n, int past)
{
    size_t i = to_line(inputs, sizeof *inputs, n);
    __m512i top = _mm512_maskz_set1_epi16(1, (short)src[0]);
    if (i) top = _mm512_max_epu16(top, widen_some(inputs, targets, src, i));
    for (; i + 32 <= n; i += 32) {
        __m512i next = _mm512_loadu_si512(src + i + 1);
        store32(inputs + i, _mm512_loadu_si512(src + i), past);
        store32(targets + i, next, past);
        top = _mm512_max_epu16(top, next);
    }
    if (i < n) top = _mm512_max_epu16(top, widen_some(inputs + i, targets + i, src + i, n - i));
    if (past) _mm_sfence();
    return top_of(top);
}

static uint16_t widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    return widen_by(inputs, targets, src, n, 0);
}

static uint16_t widen_past(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    int together = (((uintptr_t)inputs ^ (uintptr_t)targets) & 63) == 0; /* both come to a line's beginning at once */
    return together ? widen_by(inputs, targets, src, n, 1) : widen_by(inputs, targets, src, n, 0);
}

const sgt_rows sgt_rows_avx512 = {"avx512", copy, widen, largest, copy_past, widen_past};
#else
typedef int nothing_here;
#endif
