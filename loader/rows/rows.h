/* rows.h: the functions that copy windows of ids into the rows of a batch. They process every
 * token, so besides plain C there are fast versions with vector instructions. All versions give
 * exactly the same results (tests/loader/test_rows.c). Each function returns the largest id that it
 * read, so that no second pass over the ids is needed to check them against the vocabulary.
 * Pointers need no alignment. Nothing outside the given lengths is read or written. loader/NOTES.md
 * has measurements. */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/ids.h"
#include "loader/sgt_loader.h"

#define SGT_ROWS_INLINE static inline __attribute__((always_inline))

typedef uint32_t sgt_write_row(size_t width, sgt_output o, void *first, void *second,
                               const void *src, size_t n);

/* The functions that copy ids, in the version for one CPU level. Each id in the source takes
 * `width` bytes, 2 or 4. */
typedef struct sgt_rows {
    const char *level; /* "plain", "avx2", "avx512", "neon" */
    uint32_t (*largest)(size_t width, const void *src, size_t n);
    /* Write n ids of a row: first[i] = src[i] for i < n. If the output has targets, also write
     * second[i] = src[i + 1] for i < n, so that n + 1 ids are read. SGT_OUTPUT_U16 requires `width`
     * 2. Returns the largest id */
    sgt_write_row *write;
} sgt_rows;

/* sgt_output_bytes returns the number of bytes per id in the arrays of the output `o`.
 * sgt_output_pairs returns 1 if a batch in this output consists of inputs and targets, or 0 if it
 * consists of rows. */
static inline size_t sgt_output_bytes(sgt_output o)
{
    return o == SGT_OUTPUT_U16 ? 2 : o == SGT_OUTPUT_I64 ? 8 : 4;
}

static inline int sgt_output_pairs(sgt_output o)
{
    return o == SGT_OUTPUT_I32 || o == SGT_OUTPUT_I64;
}

/* Set array[i] to `id`. The output `o` determines the type of the array's elements. */
static inline void sgt_output_put(void *array, sgt_output o, size_t i, int32_t id)
{
    if (o == SGT_OUTPUT_U16) ((uint16_t *)array)[i] = (uint16_t)id;
    else if (o == SGT_OUTPUT_I64) ((int64_t *)array)[i] = id;
    else ((int32_t *)array)[i] = id;
}

/* Call put(width, o, x, y, src, n) with constants for `width` and `o`, so that the compiler
 * generates a separate loop for each combination of the two. For this, `put` must be an inline
 * function. x and y are passed as its arguments `first` and `second`. */
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
/* Return the functions for `level`, an sgt_cpu_level, or NULL if the level of this CPU is lower. */
const sgt_rows *sgt_rows_level(int level);

/* Return the index of the first of n ids that is `vocab` or more, or n if there is no such id. */
static inline size_t sgt_rows_first_beyond(size_t width, const void *ids, size_t n, uint32_t vocab)
{
    size_t i = 0;
    if (sgt_rows_best()->largest(width, ids, n) < vocab) return n;
    while (sgt_id_at(ids, width, i) < vocab) i++;
    return i;
}

/* size in bytes of a group of windows. While the windows of one group are copied, those of the next
 * group are prefetched into the L2 cache. Two groups, together with the rows that are written, fit
 * into any L2 cache. */
#define SGT_ROWS_GROUP 32768u

/* Return the number of windows, of `bytes` bytes each, in a group (see SGT_ROWS_GROUP); at least
 * 1. */
static inline uint32_t sgt_rows_group(size_t bytes)
{
    size_t windows = SGT_ROWS_GROUP / (bytes + 1);
    return windows ? (uint32_t)windows : 1;
}

/* Prefetch the window of `bytes` bytes at `src` into the L2 cache. If it is larger than
 * SGT_ROWS_GROUP, prefetch only its beginning, because the hardware prefetcher loads the rest. */
static inline void sgt_rows_expect(const void *src, size_t bytes)
{
    const char *p = src;
    if (bytes > SGT_ROWS_GROUP) bytes = SGT_ROWS_GROUP;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
    __builtin_prefetch(p + bytes - 1, 0, 2);
    /* keep the calls of this function: gcc 12 removes calls of a function that only prefetches */
    __asm__ volatile("");
}

/* Make the loader use the functions `rows` for all further batches. Do not call this while a batch
 * is being made. */
void sgt_loader_set_rows(sgt_loader *l, const sgt_rows *rows);

/* The functions in plain C, which run on any machine and process one token at a time. When they are
 * used, tokens are not prefetched into the CPU caches. They are also the baseline in speed
 * comparisons (sgt-train --batching scalar, sgt-bench). */
extern const sgt_rows sgt_rows_plain;

extern const sgt_rows sgt_rows_avx2, sgt_rows_avx512, sgt_rows_neon; /* for rows.c */

#endif
