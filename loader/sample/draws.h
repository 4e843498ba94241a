/* draws.h: the arithmetic of sampler.c for many rows at once, in plain C and with vector
 * instructions. All versions give the same results (tests/loader/test_draws.c). Computing many rows
 * at once is faster because the CPU can overlap multiplications of different rows, while each
 * multiplication for a single row must wait for the previous one.
 *
 * Time in microseconds to draw a batch of 32 rows from 20 shards (AMD EPYC Zen 4, one thread,
 * 2026-11-21, `make bench-rows` of commit aa7c1b9e). Columns: one row at a time; all rows at once
 * in plain C; all rows at once with AVX2; all rows at once with AVX-512.
 *
 *     random     0.93    0.90    0.58    0.55
 *     shuffle    3.22    2.35    1.15    0.95
 *     block      6.02    4.09    1.98    1.67
 *
 * For comparison, copying the tokens of such a batch takes 7 microseconds (rows.h). */
#ifndef SGT_DRAWS_H
#define SGT_DRAWS_H

#include <stddef.h>

#include "loader/sample/sampler.h"

#define SGT_DRAWS_WIDTH 16u /* the argument n of the functions below must be a multiple of this */

typedef struct sgt_draws {
    const char *level; /* "plain", "avx2", "avx512" */

    /* Set u[i] to sgt_philox_u64(key, lo[i], hi[i]) for i < n */
    void (*philox)(uint64_t *u, uint64_t key, const uint64_t *lo, const uint64_t *hi, size_t n);

    /* Replace at[i] with sgt_permute_once(p, at[i]) for i < n */
    void (*permute)(uint64_t *at, const sgt_permutation *p, size_t n);
} sgt_draws;

const sgt_draws *sgt_draws_best(void); /* return the fastest version for this CPU */

extern const sgt_draws sgt_draws_plain, sgt_draws_avx2, sgt_draws_avx512; /* for sampler.c */

#endif
