/* rows_avx512.c: 32 ids at a time. The first vector is stored at the row's beginning, the next at
 * the following cache line. So all stores but the first and the last are aligned. Where two of them
 * overlap they write the same ids. Rows of fewer than 32 ids use a mask. Masked stores are slow (32
 * rows of 1025 with both ends masked: 6.8 us, without 5.1 us). With non-temporal stores the ends
 * use masks all the same: a line written by both kinds of store takes as long as two lines.
 * loader/NOTES.md has more. */
#include "loader/rows/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Return the mask that selects the first n < 32 ids. */
static __mmask32 first(size_t n) { return (__mmask32)((1ull << n) - 1); }

static uint16_t top_of(__m512i v)
{
    __m256i h = _mm256_max_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    /* minpos returns the smallest of 8 values, so complement them to find the largest */
    m = _mm_xor_si128(m, _mm_set1_epi16(-1));
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

static __m512i top_of_four(__m512i a, __m512i b, __m512i c, __m512i d)
{
    return _mm512_max_epu16(_mm512_max_epu16(a, b), _mm512_max_epu16(c, d));
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

/* Return how many items of `size` bytes lie between p and the next cache line, at most n. */
static size_t to_line(const void *p, size_t size, size_t n)
{
    size_t left = (-(uintptr_t)p & 63) / size;
    return left < n ? left : n;
}

/* ---- copy ---- */

static __m512i copy_few(uint16_t *dst, const uint16_t *src, size_t n)
{
    __m512i v = _mm512_maskz_loadu_epi16(first(n), src);
    _mm512_mask_storeu_epi16(dst, first(n), v);
    return v;
}

static inline __m512i copy32(uint16_t *dst, const uint16_t *src, int past)
{
    __m512i v = _mm512_loadu_si512(src);
    store(dst, v, past);
    return v;
}

/* Copy all whole vectors from id *i on, and advance *i. Four loads come before four stores. */
static inline __m512i copy_whole(uint16_t *dst, const uint16_t *src, size_t *i, size_t n, int past)
{
    __m512i top = _mm512_setzero_si512();
    for (; *i + 128 <= n; *i += 128) {
        const uint16_t *from = src + *i;
        uint16_t *to = dst + *i;
        __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 32);
        __m512i c = _mm512_loadu_si512(from + 64), d = _mm512_loadu_si512(from + 96);
        store(to, a, past);
        store(to + 32, b, past);
        store(to + 64, c, past);
        store(to + 96, d, past);
        top = _mm512_max_epu16(top, top_of_four(a, b, c, d));
    }
    for (; *i + 32 <= n; *i += 32) top = _mm512_max_epu16(top, copy32(dst + *i, src + *i, past));
    return top;
}

static uint16_t copy(uint16_t *dst, const uint16_t *src, size_t n)
{
    if (n < 32) return top_of(copy_few(dst, src, n));
    size_t i = 32 - ((uintptr_t)dst & 63) / 2;
    __m512i ends = _mm512_max_epu16(copy32(dst, src, 0), copy32(dst + n - 32, src + n - 32, 0));
    return top_of(_mm512_max_epu16(ends, copy_whole(dst, src, &i, n, 0)));
}

static uint16_t copy_past(uint16_t *dst, const uint16_t *src, size_t n)
{
    size_t i = to_line(dst, sizeof *dst, n);
    __m512i top = copy_few(dst, src, i);
    top = _mm512_max_epu16(top, copy_whole(dst, src, &i, n, 1));
    top = _mm512_max_epu16(top, copy_few(dst + i, src + i, n - i));
    _mm_sfence();
    return top_of(top);
}

/* ---- widen ---- */

static inline void store32(int32_t *dst, __m512i v, int past)
{
    store(dst, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)), past);
    store(dst + 16, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)), past);
}

static void store_few(int32_t *dst, __m512i v, __mmask32 m)
{
    _mm512_mask_storeu_epi32(dst, (__mmask16)m, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
    if (m >> 16)
        _mm512_mask_storeu_epi32(dst + 16, (__mmask16)(m >> 16),
                                 _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
}

static __m512i widen_few(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    __mmask32 m = first(n);
    __m512i next = _mm512_maskz_loadu_epi16(m, src + 1);
    store_few(inputs, _mm512_maskz_loadu_epi16(m, src), m);
    store_few(targets, next, m);
    return next;
}

static inline __m512i widen32(int32_t *inputs, int32_t *targets, const uint16_t *src, int past)
{
    __m512i next = _mm512_loadu_si512(src + 1);
    store32(inputs, _mm512_loadu_si512(src), past);
    store32(targets, next, past);
    return next;
}

static uint16_t widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    __m512i top = _mm512_maskz_set1_epi16(1, (short)src[0]);
    if (n < 32) return top_of(_mm512_max_epu16(top, widen_few(inputs, targets, src, n)));
    top = _mm512_max_epu16(top, widen32(inputs, targets, src, 0));
    for (size_t i = 16 - ((uintptr_t)inputs & 63) / 4; i + 32 <= n; i += 32)
        top = _mm512_max_epu16(top, widen32(inputs + i, targets + i, src + i, 0));
    return top_of(
        _mm512_max_epu16(top, widen32(inputs + n - 32, targets + n - 32, src + n - 32, 0)));
}

static uint16_t widen_past(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    /* the two outputs are aligned differently, so their stores cannot both be aligned */
    if (((uintptr_t)inputs ^ (uintptr_t)targets) & 63) return widen(inputs, targets, src, n);
    size_t i = to_line(inputs, sizeof *inputs, n);
    __m512i top = _mm512_maskz_set1_epi16(1, (short)src[0]);
    if (i) top = _mm512_max_epu16(top, widen_few(inputs, targets, src, i));
    for (; i + 32 <= n; i += 32)
        top = _mm512_max_epu16(top, widen32(inputs + i, targets + i, src + i, 1));
    if (i < n) top = _mm512_max_epu16(top, widen_few(inputs + i, targets + i, src + i, n - i));
    _mm_sfence();
    return top_of(top);
}

/* ---- widen to int64 ---- */

static inline __m512i load8(const uint16_t *src)
{
    return _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(const void *)src));
}

/* Widen n < 32 ids to int64, and return the ids of the targets. */
static __m512i widen64_few(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        __mmask8 m = (__mmask8)first(n - i < 8 ? n - i : 8);
        _mm512_mask_storeu_epi64(inputs + i, m,
                                 _mm512_cvtepu16_epi64(_mm_maskz_loadu_epi16(m, src + i)));
        _mm512_mask_storeu_epi64(targets + i, m,
                                 _mm512_cvtepu16_epi64(_mm_maskz_loadu_epi16(m, src + i + 1)));
    }
    return _mm512_maskz_loadu_epi16(first(n), src + 1);
}

/* vpmovzxwq loads its 8 ids from memory. Taking them from a vector would need shuffles. */
static inline __m512i widen64_32(int64_t *inputs, int64_t *targets, const uint16_t *src, int past)
{
    for (size_t i = 0; i < 32; i += 8) {
        store(inputs + i, load8(src + i), past);
        store(targets + i, load8(src + i + 1), past);
    }
    return _mm512_loadu_si512(src + 1);
}

static uint16_t widen64(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n)
{
    __m512i top = _mm512_maskz_set1_epi16(1, (short)src[0]);
    if (n < 32) return top_of(_mm512_max_epu16(top, widen64_few(inputs, targets, src, n)));
    top = _mm512_max_epu16(top, widen64_32(inputs, targets, src, 0));
    for (size_t i = 8 - ((uintptr_t)inputs & 63) / 8; i + 32 <= n; i += 32)
        top = _mm512_max_epu16(top, widen64_32(inputs + i, targets + i, src + i, 0));
    return top_of(
        _mm512_max_epu16(top, widen64_32(inputs + n - 32, targets + n - 32, src + n - 32, 0)));
}

static uint16_t widen64_past(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n)
{
    if (((uintptr_t)inputs ^ (uintptr_t)targets) & 63) return widen64(inputs, targets, src, n);
    size_t i = to_line(inputs, sizeof *inputs, n);
    __m512i top = _mm512_maskz_set1_epi16(1, (short)src[0]);
    if (i) top = _mm512_max_epu16(top, widen64_few(inputs, targets, src, i));
    for (; i + 32 <= n; i += 32)
        top = _mm512_max_epu16(top, widen64_32(inputs + i, targets + i, src + i, 1));
    if (i < n) top = _mm512_max_epu16(top, widen64_few(inputs + i, targets + i, src + i, n - i));
    _mm_sfence();
    return top_of(top);
}

/* ---- widen into one array ---- */

static __m512i widen_row_few(int32_t *dst, const uint16_t *src, size_t n)
{
    __m512i v = _mm512_maskz_loadu_epi16(first(n), src);
    store_few(dst, v, first(n));
    return v;
}

static inline __m512i widen_row32(int32_t *dst, const uint16_t *src, int past)
{
    __m512i v = _mm512_loadu_si512(src);
    store32(dst, v, past);
    return v;
}

static uint16_t widen_row(int32_t *dst, const uint16_t *src, size_t n)
{
    if (n < 32) return top_of(widen_row_few(dst, src, n));
    __m512i top = widen_row32(dst, src, 0);
    for (size_t i = 16 - ((uintptr_t)dst & 63) / 4; i + 32 <= n; i += 32)
        top = _mm512_max_epu16(top, widen_row32(dst + i, src + i, 0));
    return top_of(_mm512_max_epu16(top, widen_row32(dst + n - 32, src + n - 32, 0)));
}

static uint16_t widen_row_past(int32_t *dst, const uint16_t *src, size_t n)
{
    size_t i = to_line(dst, sizeof *dst, n);
    __m512i top = widen_row_few(dst, src, i);
    for (; i + 32 <= n; i += 32) top = _mm512_max_epu16(top, widen_row32(dst + i, src + i, 1));
    top = _mm512_max_epu16(top, widen_row_few(dst + i, src + i, n - i));
    _mm_sfence();
    return top_of(top);
}

const sgt_rows sgt_rows_avx512 = {"avx512",  copy,      widen,      largest,      widen64,
                                  widen_row, copy_past, widen_past, widen64_past, widen_row_past};
#else
typedef int nothing_here;
#endif
