/* mix.h: several sets in one order: of which set row `row` of a run is, and which of that set's own
 * rows. Like sampler.h arithmetic alone; no row is looked for, counted or kept.
 *
 *     sgt_mix m;
 *     if (sgt_mix_init(&m, SGT_SAMPLING_SHUFFLE, seed, T, sets, count, &err) < 0) ...;
 *     sgt_mix_memo memo;                                      // one a thread; or NULL
 *     if (sgt_mix_memo_open(&memo, &m, &err) < 0) ...;
 *     sgt_window w = sgt_mix_window(&m, &memo, k * B + r);    // shards counted through all sets
 *     sgt_mix_memo_free(&memo);
 *     sgt_mix_free(&m);
 *
 * The definition. It may never change silently, as sampler.h's may not. One set is that set: rows
 * and seed are its sampler's. Of two sets and more, set i has a share p_i, a whole number: its
 * weight times 10^9, rounded; or without weights the windows of its epoch, so that all sets' epochs
 * end together. What divides all of them is divided out. N is the sum of all shares.
 *
 * Sets i ... j-1 have count(i ... j, r) of the first r rows. That of all sets is r. They, if more
 * than one, are halved at h = floor((i + j) / 2): with P of their shares in the first half, and S
 * in all,
 *
 *     count(i ... h, r) = floor(count(i ... j, r) * P / S), the second half has the rest.
 *
 * It grows with r by nothing or one, and one set's count is within D of r * p_i / N, D the halvings
 * that lead to it: of two sets less than 1, of n less than 1 + log2 n. At every multiple of N it is
 * exact.
 *
 * Rows come in turns of 64: rows 64k ... 64k + 63, turn k, are count(i, 64k + 64) - count(i, 64k)
 * of set i, in an order of the turn's own, so that no batch, rank or set falls into step with
 * another. The list of sets, set 0 so many times, then set 1, ..., is shuffled: for j = 63 ... 1,
 * places j and floor(word_j * (j + 1) / 2^32) are exchanged, word_j = word j mod 4 of philox(key:
 * seed, counter: (k, floor(j / 4) * 256 + 7)). Row 64k + j is of the set i at place j, and is that
 * set's row count(i, 64k) + those of i before place j: each set's rows are 0, 1, 2, ... in this
 * order.
 *
 * Set i's rows are those of a sampler of its shards with the seed that is the first 64 bits of
 * philox(key: seed, counter: (i, 8)): with one seed for all of them sets of a size would be in
 * step. */
#ifndef SGT_MIX_H
#define SGT_MIX_H

#include <stdint.h>

#include "sample/sampler.h"

#define SGT_MIX_TURN 64u
#define SGT_MIX_SETS 4096u /* at most */
#define SGT_MIX_LEAST 1e-9 /* weights: from this ... */
#define SGT_MIX_MOST 1e6   /* ... to this, so that the sum of all shares has 62 bits */

typedef struct sgt_mix_set {
    double weight;          /* 0 in all sets: by their windows */
    const uint64_t *tokens; /* of each shard, as sgt_sampler_init takes them */
    uint32_t shards;
} sgt_mix_set;

typedef struct sgt_mix {
    uint64_t seed;
    uint32_t sets;
    int weighted;
    sgt_sampler *samplers;   /* (sets) */
    uint32_t *shards_before; /* (sets + 1) */
    uint64_t *shares_before; /* (sets + 1) */
    uint64_t windows;        /* of all sets' epochs */
} sgt_mix;

/* What neighbouring rows have in common. */
typedef struct sgt_mix_memo {
    sgt_sampler_memo *samplers; /* (sets), or NULL: they work it out again */
    uint64_t turn;
    int ready;
    uint16_t set[SGT_MIX_TURN]; /* of each row of the turn */
    uint64_t row[SGT_MIX_TURN]; /* which of that set's rows it is */
} sgt_mix_memo;

/* sets: 1 ... SGT_MIX_SETS. SGT_EUSAGE for a weight that is not one (which the caller, who knows
 * its name, looks at first with sgt_mix_weight), for more than 2^63 windows. */
int sgt_mix_init(sgt_mix *m, sgt_sampling sampling, uint64_t seed, uint32_t seq,
                 const sgt_mix_set *sets, uint32_t count, sgt_error *err);
void sgt_mix_free(sgt_mix *m);

/* Whether it can be a weight: a number from SGT_MIX_LEAST to SGT_MIX_MOST. */
int sgt_mix_weight(double weight);
uint64_t sgt_mix_billionths(double weight); /* times 10^9, rounded */
/* the greatest that both have; of 0 and a number, the number */
uint64_t sgt_mix_divisor(uint64_t a, uint64_t b);

int sgt_mix_memo_open(sgt_mix_memo *memo, const sgt_mix *m, sgt_error *err);
void sgt_mix_memo_free(sgt_mix_memo *memo);

/* Row `row`: its set, and which of the set's rows it is. */
uint32_t sgt_mix_row(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row, uint64_t *own);

/* The window that it is, its shard counted through all sets' shards. Of `documents`, see
 * sgt_sampler_window. */
sgt_window sgt_mix_window(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row);

/* Rows row, row + step, ..., n of them, as that call has them one by one. memo: not NULL. */
void sgt_mix_windows(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row, uint64_t step, uint32_t n,
                     sgt_window *windows);

/* How many of the first `rows` rows are set `set`'s. */
uint64_t sgt_mix_drawn(const sgt_mix *m, uint32_t set, uint64_t rows);

/* The set that a shard is of. */
uint32_t sgt_mix_set_of(const sgt_mix *m, uint32_t shard);

uint64_t sgt_mix_share(const sgt_mix *m, uint32_t set); /* p_i; of one set 1 */

#endif
