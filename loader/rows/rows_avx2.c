/* rows_avx2.c: 16 ids at a time, widened by vpmovzxwd from two loads one id apart. The first vector
 * is stored at the row's beginning, the next at the following multiple of 32 bytes. So all stores
 * but the first and the last are aligned. Where two of them overlap they write the same ids. Rows
 * of fewer than 16 ids are left to plain C.
 * Non-temporal stores are not used: AVX2 writes half a cache line at a time, and they were
 * slower. */
#include "loader/rows/rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

static uint16_t top_of(__m256i v)
{
    __m128i m = _mm_max_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    /* minpos returns the smallest of 8 values, so complement them to find the largest */
    m = _mm_xor_si128(m, _mm_set1_epi16(-1));
    return (uint16_t)~_mm_extract_epi16(_mm_minpos_epu16(m), 0);
}

static __m256i load(const uint16_t *src)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)src);
}

static inline void store(void *dst, __m256i v) { _mm256_storeu_si256(dst, v); }

static uint16_t largest(const uint16_t *src, size_t n)
{
    __m256i top = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) top = _mm256_max_epu16(top, load(src + i));
    uint16_t t = top_of(top);
    for (; i < n; i++) t = src[i] > t ? src[i] : t;
    return t;
}

/* ---- copy ---- */

static inline __m256i copy16(uint16_t *dst, const uint16_t *src)
{
    __m256i v = load(src);
    store(dst, v);
    return v;
}

static uint16_t copy(uint16_t *dst, const uint16_t *src, size_t n)
{
    if (n < 16) return sgt_rows_plain.copy(dst, src, n);
    __m256i top = copy16(dst, src);
    size_t i = 16 - ((uintptr_t)dst & 31) / 2;
    for (; i + 64 <= n; i += 64) { /* four loads, then four stores */
        __m256i a = load(src + i), b = load(src + i + 16), c = load(src + i + 32),
                d = load(src + i + 48);
        store(dst + i, a);
        store(dst + i + 16, b);
        store(dst + i + 32, c);
        store(dst + i + 48, d);
        top =
            _mm256_max_epu16(top, _mm256_max_epu16(_mm256_max_epu16(a, b), _mm256_max_epu16(c, d)));
    }
    for (; i + 16 <= n; i += 16) top = _mm256_max_epu16(top, copy16(dst + i, src + i));
    return top_of(_mm256_max_epu16(top, copy16(dst + n - 16, src + n - 16)));
}

/* ---- widen ---- */

static inline void store16(int32_t *dst, __m256i v)
{
    store(dst, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)));
    store(dst + 8, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)));
}

static inline __m256i widen16(int32_t *inputs, int32_t *targets, const uint16_t *src)
{
    __m256i next = load(src + 1);
    store16(inputs, load(src));
    store16(targets, next);
    return next;
}

static uint16_t widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    if (n < 16) return sgt_rows_plain.widen(inputs, targets, src, n);
    __m256i top = _mm256_max_epu16(load(src), widen16(inputs, targets, src));
    for (size_t i = 8 - ((uintptr_t)inputs & 31) / 4; i + 16 <= n; i += 16)
        top = _mm256_max_epu16(top, widen16(inputs + i, targets + i, src + i));
    return top_of(_mm256_max_epu16(top, widen16(inputs + n - 16, targets + n - 16, src + n - 16)));
}

/* ---- widen to int64 ---- */

/* vpmovzxwq loads its 4 ids from memory. Taking them from a vector would need shuffles. */
static inline void store4(int64_t *dst, const uint16_t *src)
{
    store(dst, _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(const void *)src)));
}

static inline __m256i widen64_16(int64_t *inputs, int64_t *targets, const uint16_t *src)
{
    for (size_t i = 0; i < 16; i += 4) {
        store4(inputs + i, src + i);
        store4(targets + i, src + i + 1);
    }
    return load(src + 1);
}

static uint16_t widen64(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n)
{
    if (n < 16) return sgt_rows_plain.widen64(inputs, targets, src, n);
    __m256i top = _mm256_max_epu16(load(src), widen64_16(inputs, targets, src));
    for (size_t i = 4 - ((uintptr_t)inputs & 31) / 8; i + 16 <= n; i += 16)
        top = _mm256_max_epu16(top, widen64_16(inputs + i, targets + i, src + i));
    return top_of(
        _mm256_max_epu16(top, widen64_16(inputs + n - 16, targets + n - 16, src + n - 16)));
}

/* ---- widen into one array ---- */

static inline __m256i widen_row16(int32_t *dst, const uint16_t *src)
{
    __m256i v = load(src);
    store16(dst, v);
    return v;
}

static uint16_t widen_row(int32_t *dst, const uint16_t *src, size_t n)
{
    if (n < 16) return sgt_rows_plain.widen_row(dst, src, n);
    __m256i top = widen_row16(dst, src);
    for (size_t i = 8 - ((uintptr_t)dst & 31) / 4; i + 16 <= n; i += 16)
        top = _mm256_max_epu16(top, widen_row16(dst + i, src + i));
    return top_of(_mm256_max_epu16(top, widen_row16(dst + n - 16, src + n - 16)));
}

const sgt_rows sgt_rows_avx2 = {"avx2",    copy, widen, largest, widen64,
                                widen_row, copy, widen, widen64, widen_row};
#else
typedef int nothing_here;
#endif
