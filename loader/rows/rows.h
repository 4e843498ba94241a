/* rows.h: the functions that copy windows of ids into rows. They touch every token, so they exist
 * in plain C and for vector instructions. All CPU levels give the same bits
 * (tests/loader/test_rows.c). Each function returns the largest id that it read, so that checking
 * ids against the vocabulary needs no second pass. Pointers need no alignment, and nothing outside
 * the given lengths is read or written. loader/NOTES.md has measurements. */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/ids.h"
#include "loader/sgt_loader.h"

#define SGT_ROWS_INLINE static inline __attribute__((always_inline))

typedef uint32_t sgt_write_row(size_t width, sgt_output o, void *first, void *second,
                               const void *src, size_t n);

/* Both take ids of `width` bytes, 2 or 4. */
typedef struct sgt_rows {
    const char *level; /* "plain", "avx2", "avx512", "neon" */
    uint32_t (*largest)(size_t width, const void *src, size_t n);
    /* Write a row of an output: first[i] = src[i] for i < n; if the output has targets, also
     * second[i] = src[i + 1], which reads src[0 ... n]. SGT_OUTPUT_U16 is not allowed if the width
     * is 4. Returns the largest id */
    sgt_write_row *write;
} sgt_rows;

/* sgt_output_bytes returns the bytes of an id in an output; sgt_output_pairs returns whether the
 * output has inputs and targets. */
static inline size_t sgt_output_bytes(sgt_output o)
{
    return o == SGT_OUTPUT_U16 ? 2 : o == SGT_OUTPUT_I64 ? 8 : 4;
}

static inline int sgt_output_pairs(sgt_output o)
{
    return o == SGT_OUTPUT_I32 || o == SGT_OUTPUT_I64;
}

/* Set element i of an array whose type is that of the output. */
static inline void sgt_output_put(void *array, sgt_output o, size_t i, int32_t id)
{
    if (o == SGT_OUTPUT_U16) ((uint16_t *)array)[i] = (uint16_t)id;
    else if (o == SGT_OUTPUT_I64) ((int64_t *)array)[i] = id;
    else ((int32_t *)array)[i] = id;
}

/* Call put, which must be inlined, with constants for width and output, so that the compiler
 * generates a separate loop for each combination. x and y are the arguments `first` and `second` of
 * put. */
SGT_ROWS_INLINE uint32_t sgt_rows_write(sgt_write_row *put, size_t width, sgt_output o, void *x,
                                        void *y, const void *src, size_t n)
{
    const int wide = width == 4;
    if (o == SGT_OUTPUT_U16) return put(2, SGT_OUTPUT_U16, x, y, src, n);
    if (o == SGT_OUTPUT_I32)
        return wide ? put(4, SGT_OUTPUT_I32, x, y, src, n) : put(2, SGT_OUTPUT_I32, x, y, src, n);
    if (o == SGT_OUTPUT_I64)
        return wide ? put(4, SGT_OUTPUT_I64, x, y, src, n) : put(2, SGT_OUTPUT_I64, x, y, src, n);
    return wide ? put(4, SGT_OUTPUT_I32_ROWS, x, y, src, n)
                : put(2, SGT_OUTPUT_I32_ROWS, x, y, src, n);
}

const sgt_rows *sgt_rows_best(void);
/* Return the functions of a level (an sgt_cpu_level); NULL if sgt_cpu() is below it. */
const sgt_rows *sgt_rows_level(int level);

/* Return the index of the first of n ids that is not below `vocab`; n if all ids are below it. */
static inline size_t sgt_rows_first_beyond(size_t width, const void *ids, size_t n, uint32_t vocab)
{
    size_t i = 0;
    if (sgt_rows_best()->largest(width, ids, n) < vocab) return n;
    while (sgt_id_at(ids, width, i) < vocab) i++;
    return i;
}

/* A group of windows: while one group is copied, the next one is prefetched into the L2 cache. */
#define SGT_ROWS_GROUP 32768u /* bytes; two groups and the rows fit any L2 cache */

/* Return how many windows of `bytes` bytes are in a group, at least 1. */
static inline uint32_t sgt_rows_group(size_t bytes)
{
    size_t windows = SGT_ROWS_GROUP / (bytes + 1);
    return windows ? (uint32_t)windows : 1;
}

/* Prefetch a window into the L2 cache. If a window is larger than a group, prefetch only its
 * beginning; the hardware prefetcher loads the rest. */
static inline void sgt_rows_expect(const void *src, size_t bytes)
{
    const char *p = src;
    if (bytes > SGT_ROWS_GROUP) bytes = SGT_ROWS_GROUP;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
    __builtin_prefetch(p + bytes - 1, 0, 2);
    /* without this, gcc 12 removes calls to a function that only prefetches */
    __asm__ volatile("");
}

/* Make the loader's batches with these functions from now on. Call it while no batch is being
 * made. */
void sgt_loader_set_rows(sgt_loader *l, const sgt_rows *rows);

/* The functions for any machine, which handle one token at a time. Batches made with them use no
 * prefetching. They also serve as the baseline of comparisons with vectorized batching (sgt-train
 * --batching scalar, sgt-bench). */
extern const sgt_rows sgt_rows_plain;

extern const sgt_rows sgt_rows_avx2, sgt_rows_avx512, sgt_rows_neon; /* for rows.c */

#endif
