/* rows.h: the functions that turn windows of 16-bit ids into rows, and so touch every token: in
 * plain C and in vectors. All CPU levels give the same bits; tests/loader/test_rows.c checks it.
 * Each function returns the largest id that it met, so that comparing ids with the vocabulary needs
 * no second pass. Nothing needs alignment, and nothing outside the given lengths is touched.
 * loader/NOTES.md has measurements. */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

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
    sgt_rows_widen64 *widen64;     /* as widen, into int64 */
    sgt_rows_widen_row *widen_row; /* dst[i] = src[i], i < n */

    /* The same with non-temporal stores, for memory that will not be read soon. The stores are
     * complete when the call returns. */
    sgt_rows_copy *copy_past;
    sgt_rows_widen *widen_past;
    sgt_rows_widen64 *widen64_past;
    sgt_rows_widen_row *widen_row_past;
} sgt_rows;

const sgt_rows *sgt_rows_best(void);
/* Return the functions of an sgt_cpu_level; NULL if sgt_cpu() does not allow it. */
const sgt_rows *sgt_rows_level(int level);

/* Windows are prefetched in groups: the next group is on its way to L2 while this one is copied. */
#define SGT_ROWS_GROUP 32768u /* bytes: two groups fit any L2 cache, beside the rows */

/* Return how many windows of n ids make a group. */
static inline uint32_t sgt_rows_group(size_t n)
{
    size_t windows = SGT_ROWS_GROUP / (2 * n + 1);
    return windows ? (uint32_t)windows : 1;
}

/* Prefetch one window, or the beginning of a very long one: the hardware prefetcher does the
 * rest. */
static inline void sgt_rows_expect(const uint16_t *src, size_t n)
{
    const char *p = (const char *)src;
    size_t bytes = 2 * n < SGT_ROWS_GROUP ? 2 * n : SGT_ROWS_GROUP;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
    __builtin_prefetch(p + bytes - 1, 0, 2);
    /* gcc 12 treats a function that only prefetches as one without effect */
    __asm__ volatile("");
}

/* used by rows.c only */
extern const sgt_rows sgt_rows_plain, sgt_rows_avx2, sgt_rows_avx512, sgt_rows_neon;

#endif
