/* rows.h: the functions that turn windows of 16-bit ids into rows, and so touch every token: in
 * plain C and in vectors. All CPU levels give the same bits (tests/loader/test_rows.c). Each
 * function returns the largest id that it read, so that checking ids against the vocabulary needs
 * no second pass. Pointers need no alignment, and nothing outside the given lengths is read or
 * written. loader/NOTES.md has measurements. */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/sgt_loader.h"

typedef uint16_t sgt_rows_copy(uint16_t *dst, const uint16_t *src, size_t n);
typedef uint16_t sgt_rows_widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n);
typedef uint16_t sgt_rows_widen64(int64_t *inputs, int64_t *targets, const uint16_t *src, size_t n);
typedef uint16_t sgt_rows_widen_row(int32_t *dst, const uint16_t *src, size_t n);

typedef struct sgt_rows {
    const char *level; /* "plain", "avx2", "avx512", "neon" */

    sgt_rows_copy *copy; /* dst[i] = src[i], i < n */
    /* inputs[i] = src[i], targets[i] = src[i + 1], i < n; reads src[0 .. n] */
    sgt_rows_widen *widen;
    uint16_t (*largest)(const uint16_t *src, size_t n);
    sgt_rows_widen64 *widen64;     /* like widen, but into int64 */
    sgt_rows_widen_row *widen_row; /* dst[i] = src[i], i < n */

    /* The same functions with non-temporal stores, for memory that will not be read soon. The
     * stores are complete when the call returns. */
    sgt_rows_copy *copy_past;
    sgt_rows_widen *widen_past;
    sgt_rows_widen64 *widen64_past;
    sgt_rows_widen_row *widen_row_past;
} sgt_rows;

const sgt_rows *sgt_rows_best(void);
/* Return the functions of a level (an sgt_cpu_level); NULL if sgt_cpu() is below it. */
const sgt_rows *sgt_rows_level(int level);

/* Return the index of the first of n ids that is not below `vocab`; n if all are. */
static inline size_t sgt_rows_first_beyond(const uint16_t *ids, size_t n, uint32_t vocab)
{
    size_t i = 0;
    if (sgt_rows_best()->largest(ids, n) < vocab) return n;
    while (ids[i] < vocab) i++;
    return i;
}

/* A group of windows: while one group is copied, the next one is prefetched into the L2 cache. */
#define SGT_ROWS_GROUP 32768u /* bytes; two groups and the rows fit any L2 cache */

/* Return how many windows of n ids are in a group. */
static inline uint32_t sgt_rows_group(size_t n)
{
    size_t windows = SGT_ROWS_GROUP / (2 * n + 1);
    return windows ? (uint32_t)windows : 1;
}

/* Prefetch a window into the L2 cache. Of a very long window prefetch only the beginning; the
 * hardware prefetcher loads the rest. */
static inline void sgt_rows_expect(const uint16_t *src, size_t n)
{
    const char *p = (const char *)src;
    size_t bytes = 2 * n < SGT_ROWS_GROUP ? 2 * n : SGT_ROWS_GROUP;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
    __builtin_prefetch(p + bytes - 1, 0, 2);
    /* without this, gcc 12 removes calls to a function that only prefetches */
    __asm__ volatile("");
}

/* Make the loader's batches with these functions from now on. Call it while no batch is being made. */
void sgt_loader_set_rows(sgt_loader *l, const sgt_rows *rows);

/* One token at a time and without prefetching, for u16 and int32 pairs: the simple way that
 * vectorized batching is compared with (sgt-train --batching scalar, sgt-bench). */
extern const sgt_rows sgt_rows_scalar;

/* used by rows.c, and the plain ones by the others */
extern const sgt_rows sgt_rows_plain, sgt_rows_avx2, sgt_rows_avx512, sgt_rows_neon;

#endif
