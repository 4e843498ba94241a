/* rows.h: windows of 16-bit ids into rows: the functions that touch every token, in plain C and in vectors. The widths
 * agree to the bit; tests/loader/test_rows.c holds them to it. Each returns the largest id it met, so that the check
 * against the vocabulary costs no second pass. Nothing needs alignment; nothing outside the given lengths is
 * touched.
 *
 * What was tried for windows at random places of memory larger than the caches, and what it gave: microseconds a batch
 * of 32 x 1024 from 4 GB in huge pages (AMD EPYC Zen 4, one thread, 2026-11-21, medians of 11, all in one run; memcpy
 * of the same windows 12.4, the plain loop over single ids 37.9):
 *
 *     inputs and targets, no prefetch                             20.9
 *     8 lines of each window 1, 2, 4 ahead, to L1                 16.4, 16.1, 15.9
 *     a line of the window 2 ahead with each line widened, L1     13.6    (to L2: 12.3)
 *     each window whole, in one go, to L1, 1 ahead                15.8
 *     each window whole, in one go, to L2, 1, 4, 8 ahead          10.0, 9.2, 9.0
 *     groups of 4, 8, 16 windows whole to L2, then widened        8.35, 8.2, 8.1    <- sgt_rows_group
 *
 * To L2 there are about twice as many lines on their way at once as to L1, where the stores want the same room; and a
 * group that is asked for in one go overlaps its misses of the TLB too, which small windows consist of: 64 x 512 took
 * 28.4 without prefetch, 14.4 with windows 8 ahead, 9.5 in groups of 16 and 9.2 of 32. Drawing (sampler.h) and
 * prefetching window by window, in turns, was slower (9.9) than all draws first. Of the rest: stores prefetched for
 * writing 13.5 (against 13.6), 256-bit vectors 13.9, inputs and targets in two passes 15.0, source past L2 (nta) 13.5:
 * nothing, or worse. One (B, T+1) array instead of inputs and targets: 7.0 against 8.1; who can work with views has
 * rows of 16 bits in that form already, which are half of its bytes. Rows of 16 bits: unaligned stores 9.3 (T+1 ids are
 * never a whole number of lines), aligned ones 8.2, in fours of loads and then of stores 6.5; memcpy, which looks at no
 * id, 6.4. Widening gains nothing by fours, nor by making the second load of two from the first by permutation: 7.6,
 * 7.5, 7.5 in one run; its stores are what takes the time.
 *
 * Stores past the caches (copy_past, widen_past), into a ring of buffers, made by one thread for another (stream.c),
 * microseconds a batch, plain and past: nobody reading 4 MiB 17.8 24.6, 32 MiB (the last cache's size) 27.6 23.5, 64
 * MiB 31.3 22.6; with a consumer that reads every number 18.5 30.7, 28.1 27.0, 34.9 27.0. What fits the last cache is
 * better left there. */
#ifndef SGT_ROWS_H
#define SGT_ROWS_H

#include <stddef.h>
#include <stdint.h>

typedef uint16_t sgt_rows_copy(uint16_t *dst, const uint16_t *src, size_t n);
typedef uint16_t sgt_rows_widen(int32_t *inputs, int32_t *targets, const uint16_t *src, size_t n);

typedef struct sgt_rows {
    const char *level; /* "plain", "avx2", "avx512", "neon" */

    sgt_rows_copy *copy;   /* dst[i] = src[i], i < n */
    sgt_rows_widen *widen; /* inputs[i] = src[i], targets[i] = src[i + 1], i < n: reads src[0 ... n] */
    uint16_t (*largest)(const uint16_t *src, size_t n);

    /* The same, past the caches, for memory that will not be read soon. They are done when the call is. */
    sgt_rows_copy *copy_past;
    sgt_rows_widen *widen_past;
} sgt_rows;

const sgt_rows *sgt_rows_best(void);
const sgt_rows *sgt_rows_level(int level); /* an sgt_cpu_level; NULL where sgt_cpu() does not allow it */

/* Windows are asked for in groups: the next one is on its way to L2 while this one is being copied. */
#define SGT_ROWS_GROUP 32768u /* bytes: two of them fit any L2, with the rows beside */

/* How many windows of n ids make a group. */
static inline uint32_t sgt_rows_group(size_t n)
{
    size_t windows = SGT_ROWS_GROUP / (2 * n + 1);
    return windows ? (uint32_t)windows : 1;
}

/* Asks for one window, or for the beginning of a very long one: the machine's own prefetching does the rest. */
static inline void sgt_rows_expect(const uint16_t *src, size_t n)
{
    const char *p = (const char *)src;
    size_t bytes = 2 * n < SGT_ROWS_GROUP ? 2 * n : SGT_ROWS_GROUP;
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 2);
    __builtin_prefetch(p + bytes - 1, 0, 2);
    __asm__ volatile(""); /* gcc 12 takes a function that only prefetches for one that does nothing */
}

extern const sgt_rows sgt_rows_plain, sgt_rows_avx2, sgt_rows_avx512, sgt_rows_neon; /* for rows.c */

#endif
