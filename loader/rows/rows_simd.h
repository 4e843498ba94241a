/* rows_simd.h: the functions of rows.h in vectors of IDS 16-bit ids, for rows_avx2.c, rows_avx512.c
 * and rows_neon.c. The including file defines vec, IDS, load, max, top_of (the largest id of a vector),
 * store, and put: write IDS ids as numbers of `size` bytes, and return them.
 *
 * The first vector is stored at the row's beginning, the next at the following multiple of a
 * vector's bytes. So all stores but the first and the last are aligned (those of the targets too, in
 * streams). Where two of them overlap they write the same ids. Rows of fewer than IDS ids are left to
 * plain C. */
#include "loader/rows/rows.h"

#define INLINE static inline __attribute__((always_inline))

/* Write ids i ... i + IDS - 1 of a row, and return those that follow them if there are targets, else
 * themselves. */
INLINE vec put_ids(char *first, char *second, const uint16_t *src, size_t i, sgt_output o)
{
    const size_t size = sgt_output_bytes(o);
    vec ids = put(first + i * size, src + i, size);
    return sgt_output_pairs(o) ? put(second + i * size, src + i + 1, size) : ids;
}

INLINE uint16_t put_row(sgt_output o, void *first, void *second, const uint16_t *src, size_t n)
{
    const size_t bytes = 2 * IDS, lead = bytes - ((uintptr_t)first & (bytes - 1));
    if (n < IDS) return sgt_rows_plain.write(o, first, second, src, n);
    vec top = max(load(src), put_ids(first, second, src, 0, o));
    size_t i = lead / sgt_output_bytes(o);
    /* copies: four loads, then four stores */
    for (; o == SGT_OUTPUT_U16 && i + 4 * IDS <= n; i += 4 * IDS) {
        char *to = (char *)first + 2 * i;
        vec a = load(src + i), b = load(src + i + IDS);
        vec c = load(src + i + 2 * IDS), d = load(src + i + 3 * IDS);
        store(to, a);
        store(to + 2 * IDS, b);
        store(to + 4 * IDS, c);
        store(to + 6 * IDS, d);
        top = max(top, max(max(a, b), max(c, d)));
    }
    for (; i + IDS <= n; i += IDS) top = max(top, put_ids(first, second, src, i, o));
    return top_of(max(top, put_ids(first, second, src, n - IDS, o)));
}

static uint16_t write_row(sgt_output o, void *first, void *second, const uint16_t *src, size_t n)
{
    if (o == SGT_OUTPUT_U16) return put_row(SGT_OUTPUT_U16, first, second, src, n);
    if (o == SGT_OUTPUT_I32) return put_row(SGT_OUTPUT_I32, first, second, src, n);
    return put_row(SGT_OUTPUT_I64, first, second, src, n);
}

static uint16_t largest(const uint16_t *src, size_t n)
{
    if (n < IDS) return sgt_rows_plain.largest(src, n);
    vec top = load(src + n - IDS);
    for (size_t i = 0; i + IDS <= n; i += IDS) top = max(top, load(src + i));
    return top_of(top);
}
