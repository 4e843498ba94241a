/* rows_simd.h: the functions of rows.h in vectors of IDS 16-bit ids, for rows_avx2.c and
 * rows_avx512.c. The including file defines vec, IDS, load, max, top_of (the largest id of a vector),
 * store, and put: write IDS ids as numbers of `size` bytes, and return them.
 *
 * The first vector is stored at the row's beginning, the next at the following multiple of a
 * vector's bytes. So all stores but the first and the last are aligned (those of the targets too, in
 * streams). Where two of them overlap they write the same ids. Rows of fewer than IDS ids are left to
 * plain C. */
#include "loader/rows/rows.h"

#define INLINE static inline __attribute__((always_inline))

/* What is written: bytes of a number, 1 if there are targets, and 1 for non-temporal stores. It is
 * constant wherever a function is inlined. */
typedef struct form {
    size_t size;
    int pairs, past;
} form;

/* Write ids i ... i + IDS - 1 of a row, and return those that follow them if there are targets, else
 * themselves. */
INLINE vec put_ids(void *inputs, void *targets, const uint16_t *src, size_t i, form f)
{
    vec ids = put((char *)inputs + i * f.size, src + i, f.size, f.past);
    return f.pairs ? put((char *)targets + i * f.size, src + i + 1, f.size, f.past) : ids;
}

/* Write whole vectors from id *i on, and advance *i. */
INLINE vec put_whole(void *inputs, void *targets, const uint16_t *src, size_t *i, size_t n, form f)
{
    vec top = load(src);
    /* copies: four loads, then four stores */
    for (; f.size == 2 && *i + 4 * IDS <= n; *i += 4 * IDS) {
        uint16_t *to = (uint16_t *)inputs + *i;
        vec a = load(src + *i), b = load(src + *i + IDS);
        vec c = load(src + *i + 2 * IDS), d = load(src + *i + 3 * IDS);
        store(to, a, f.past);
        store(to + IDS, b, f.past);
        store(to + 2 * IDS, c, f.past);
        store(to + 3 * IDS, d, f.past);
        top = max(top, max(max(a, b), max(c, d)));
    }
    for (; *i + IDS <= n; *i += IDS) top = max(top, put_ids(inputs, targets, src, *i, f));
    return top;
}

INLINE uint16_t put_row(void *inputs, void *targets, const uint16_t *src, size_t n, form f)
{
    const size_t bytes = 2 * IDS;
    if (n < IDS && f.size == 2) return sgt_rows_plain.copy(inputs, src, n);
    if (n < IDS && f.size == 8) return sgt_rows_plain.widen64(inputs, targets, src, n);
    if (n < IDS && f.pairs) return sgt_rows_plain.widen(inputs, targets, src, n);
    if (n < IDS) return sgt_rows_plain.widen_row(inputs, src, n);
    size_t i = (bytes - ((uintptr_t)inputs & (bytes - 1))) / f.size;
    vec top = max(put_ids(inputs, targets, src, 0, f), put_ids(inputs, targets, src, n - IDS, f));
    return top_of(max(top, put_whole(inputs, targets, src, &i, n, f)));
}

static uint16_t copy(uint16_t *dst, const uint16_t *src, size_t n)
{
    return put_row(dst, NULL, src, n, (form){2, 0, 0});
}

static uint16_t widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n)
{
    return put_row(inputs, targets, src, n, (form){4, 1, 0});
}

static uint16_t widen64(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n)
{
    return put_row(inputs, targets, src, n, (form){8, 1, 0});
}

static uint16_t widen_row(int32_t *dst, const uint16_t *src, size_t n)
{
    return put_row(dst, NULL, src, n, (form){4, 0, 0});
}

static uint16_t largest(const uint16_t *src, size_t n)
{
    if (n < IDS) return sgt_rows_plain.largest(src, n);
    vec top = load(src + n - IDS);
    for (size_t i = 0; i + IDS <= n; i += IDS) top = max(top, load(src + i));
    return top_of(top);
}
