/* rows.h: the functions that copy windows of ids into the rows of a batch. They handle every token,
 * so there are fast versions with vector instructions, besides plain C. All versions give the same
 * bits (tests/loader/test_rows.c). Each function returns the largest id that it read, so that
 * checking ids against the vocabulary needs no second pass. Pointers need no alignment. Nothing
 * outside the given lengths is read or written. loader/NOTES.md has measurements. */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/ids.h"
#include "loader/sgt_loader.h"

#define SGT_ROWS_INLINE static inline __attribute__((always_inline))

typedef uint32_t sgt_write_row(size_t width, sgt_output o, void *first, void *second,
                               const void *src, size_t n);

/* The functions that write rows, in the version for one CPU level. Ids in the source have `width`
 * bytes, 2 or 4. */
typedef struct sgt_rows {
    const char *level; /* "plain", "avx2", "avx512", "neon" */
    uint32_t (*largest)(size_t width, const void *src, size_t n);
    /* Write n ids of a row: first[i] = src[i] for i < n. If the output has targets, also second[i]
     * = src[i + 1], which reads src[0 ... n]. Ids of 4 bytes do not allow SGT_OUTPUT_U16. Returns
     * the largest id */
    sgt_write_row *write;
} sgt_rows;

/* sgt_output_bytes returns the bytes per id in the arrays of an output. sgt_output_pairs returns 1
 * if the output has inputs and targets, or 0 if it has rows. */
static inline size_t sgt_output_bytes(sgt_output o)
{
    return o == SGT_OUTPUT_U16 ? 2 : o == SGT_OUTPUT_I64 ? 8 : 4;
}

static inline int sgt_output_pairs(sgt_output o)
{
    return o == SGT_OUTPUT_I32 || o == SGT_OUTPUT_I64;
}

/* Set array[i] to `id`; the output `o` determines the type of the elements. */
static inline void sgt_output_put(void *array, sgt_output o, size_t i, int32_t id)
{
    if (o == SGT_OUTPUT_U16) ((uint16_t *)array)[i] = (uint16_t)id;
    else if (o == SGT_OUTPUT_I64) ((int64_t *)array)[i] = id;
    else ((int32_t *)array)[i] = id;
}

/* Call put(width, o, x, y, src, n) with width and o as constants, so that the compiler generates a
 * separate loop for each combination. `put` must be inlined. x and y are its arguments `first` and
 * `second`. */
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
/* Return the functions of `level`, an sgt_cpu_level. Return NULL if this CPU's level is lower. */
const sgt_rows *sgt_rows_level(int level);

/* Return the index of the first of n ids that is not below `vocab`, or n if all ids are below
 * it. */
static inline size_t sgt_rows_first_beyond(size_t width, const void *ids, size_t n, uint32_t vocab)
{
    size_t i = 0;
    if (sgt_rows_best()->largest(width, ids, n) < vocab) return n;
    while (sgt_id_at(ids, width, i) < vocab) i++;
    return i;
}

/* Windows are copied in groups: while one group is copied, the next group is prefetched into the L2
 * cache. This is the size of a group in bytes. It is small enough that two groups, and the rows
 * written, fit into any L2 cache. */
#define SGT_ROWS_GROUP 32768u

/* Return how many windows of `bytes` bytes each form a group (see SGT_ROWS_GROUP): at least 1. */
static inline uint32_t sgt_rows_group(size_t bytes)
{
    size_t windows = SGT_ROWS_GROUP / (bytes + 1);
    return windows ? (uint32_t)windows : 1;
}

/* Prefetch a window into the L2 cache. If the window is larger than a group, prefetch only its
 * beginning, because the hardware prefetcher loads the rest. */
static inline void sgt_rows_expect(const void *src, size_t bytes)
{
    const char *p = src;
    if (bytes > SGT_ROWS_GROUP) bytes = SGT_ROWS_GROUP;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
    __builtin_prefetch(p + bytes - 1, 0, 2);
    /* keep calls to this function: gcc 12 removes calls to a function that only prefetches */
    __asm__ volatile("");
}

/* Make the loader use `rows` for all further batches. Do not call this while a batch is being
 * made. */
void sgt_loader_set_rows(sgt_loader *l, const sgt_rows *rows);

/* The plain C functions, which run on any machine and handle one token at a time. Batches made with
 * them are not prefetched. They are also the baseline of speed comparisons (sgt-train --batching
 * scalar, sgt-bench). */
extern const sgt_rows sgt_rows_plain;

extern const sgt_rows sgt_rows_avx2, sgt_rows_avx512, sgt_rows_neon; /* for rows.c */

#endif
