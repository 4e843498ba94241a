/* rows.h: windows of 16-bit ids into rows: the functions that touch every token, in plain C and in
 * vectors. The widths agree to the bit; tests/loader/test_rows.c holds them to it. Each returns the
 * largest id it met, so that the check against the vocabulary costs no second pass. Nothing needs
 * alignment; nothing outside the given lengths is touched.
 *
 * Of windows at random places of memory larger than the caches it is the waiting for them that
 * takes the time. Microseconds a batch of 32 rows of 1,024, and in brackets of 64 of 512, from
 * memory in huge pages (`make bench-rows`, one run; AMD EPYC Zen 4, one thread, 2026-11-22; medians
 * of 11 turns):
 *
 *                                        AVX2             AVX-512
 *     u16, memcpy, which looks at no id  12.5 (14.4)      16.9 (18.6)
 *     u16, nothing asked for ahead       11.2 (13.0)      12.3 (13.2)
 *     u16, groups asked for ahead         5.1 (5.4)        5.2 (5.3)     <- sgt_rows_group
 *     i32, a token at a time             41.8 (54.1)      45.3 (61.1)
 *     i32, nothing asked for ahead       19.9 (30.3)      20.3 (33.8)
 *     i32, groups asked for ahead         6.9 (7.3)        7.2 (7.2)     <- sgt_rows_group
 *
 * To L2 there are about twice as many lines on their way at once as to L1, where the stores want
 * the same room; and a group that is asked for in one go overlaps its misses of the TLB too, which
 * small windows consist of. Tried, and slower: to ask for a few lines of each coming window, for a
 * line with each line widened, for one window at a time, to L1; to draw and to ask in turns. Tried,
 * and no faster: stores asked for ahead, inputs and targets in two passes, the second load of two
 * made from the first by permutation.
 *
 * Stores past the caches (copy_past, widen_past), into a ring of buffers, pay where the last cache
 * does not hold it: 32 x 1,024, AVX-512, through the caches and past them, 4 MiB 9.0 14.3, 16 MiB
 * 17.8 15.6, 32 MiB (that cache's size) 19.3 16.9, 64 MiB 19.4 14.8 (the same run; nobody reads the
 * rows). */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

typedef uint16_t sgt_rows_copy(uint16_t *dst, const uint16_t *src, size_t n);
typedef uint16_t sgt_rows_widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n);

typedef struct sgt_rows {
    const char *level; /* "plain", "avx2", "avx512", "neon" */

    sgt_rows_copy *copy; /* dst[i] = src[i], i < n */
    /* inputs[i] = src[i], targets[i] = src[i + 1], i < n; reads src[0 .. n] */
    sgt_rows_widen *widen;
    uint16_t (*largest)(const uint16_t *src, size_t n);

    /* The same with non-temporal stores, for memory that will not be read soon. The stores are
     * complete when the call returns. */
    sgt_rows_copy *copy_past;
    sgt_rows_widen *widen_past;
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
