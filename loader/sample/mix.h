/* mix.h: the order of rows that come from several sets: compute for row `row` of a run which set it
 * comes from, and its index among the rows of that set. As in sampler.h, this needs no search, no
 * counters and no stored rows.
 *
 *     sgt_mix m;
 *     if (sgt_mix_init(&m, &options, sets, count, tokens, &err) < 0) ...;
 *     sgt_mix_memo *memo = calloc(1, sgt_mix_memo_bytes(&m));             // one per thread
 *     sgt_mix_windows(&m, memo, k * B, 1, B, windows);    // shards are counted across all sets
 *     free(memo);
 *     sgt_mix_free(&m);
 *
 * The following definition must never change silently, because a resumed run depends on it. If
 * there is only one set, its rows are those of its sampler, with the run's seed. If there are two
 * or more sets, each set i has a share p_i, which is an integer: the set's weight times 10^9,
 * rounded. If no set has a weight, p_i is instead the number of windows in an epoch of the set, so
 * that the epochs of all sets end together. All shares are divided by their greatest common
 * divisor. N is the sum of the shares.
 *
 * count(i ... j, r) is the number of rows, among the run's first r rows, that come from sets i ...
 * j-1; count(i, r) is the number that come from set i. For the range of all sets, the count is r. A
 * range of more than one set is divided into two halves at h = floor((i + j) / 2). If P is the sum
 * of the shares in the first half, and S the sum in the entire range, then
 *
 *     count(i ... h, r) = floor(count(i ... j, r) * P / S), and the second half gets the rest.
 *
 * When r grows by 1, the count of a set grows by 0 or 1. The count differs from the exact
 * proportion r * p_i / N by at most D, the number of halvings that lead to the set: by less than 1
 * for two sets, and by less than 1 + log2 n for n sets. It is exact if r is a multiple of N.
 *
 * Rows are divided into groups of 64, called turns. Turn k has rows 64k ... 64k + 63, of which
 * count(i, 64k + 64) - count(i, 64k) come from set i. The order of the sets within a turn is
 * random, because with a fixed order, a rank could always get rows of the same set. To find this
 * order, make a list with one element for each row of the turn: the index of the set from which the
 * row comes. Sort the list and shuffle it: for j = 63 ... 1, swap elements j and floor(word_j * (j
 * + 1) / 2^32), where word_j = word j mod 4 of philox(key: seed, counter: (k, floor(j / 4) * 256 +
 * 7)). After that, row 64k + j comes from the set i that is element j. The index of the row among
 * the rows of set i is count(i, 64k) plus the number of elements before element j that are i. As a
 * result, the rows of each set come in the order 0, 1, 2, ...
 *
 * The rows of set i come from a sampler of the set's shards. The seed of this sampler is the first
 * 64 bits of philox(key: seed, counter: (i, 8)). It is different for each set, because with the
 * same seed, sets of equal size would draw their rows in the same order. */
#ifndef SGT_MIX_H
#define SGT_MIX_H

#include <stdint.h>

#include "loader/sample/sampler.h"

#define SGT_MIX_TURN 64u
#define SGT_MIX_SETS 4096u /* largest number of sets */
#define SGT_MIX_LEAST 1e-9 /* smallest weight */
/* largest weight. With this limit, the sum of all shares fits into 62 bits */
#define SGT_MIX_MOST 1e6

typedef struct sgt_mix {
    uint64_t seed;
    uint32_t sets;
    sgt_sampler *samplers;   /* (sets) */
    uint64_t *shares_before; /* (sets + 1) */
    uint64_t windows;        /* number of windows in one epoch of each set, summed over all sets */
} sgt_mix;

/* A cache of the values that are the same for all rows of a turn (64 consecutive rows), so that
 * they are not computed for every row. Each thread has its own cache, which must be zeroed before
 * its first use. */
typedef struct sgt_mix_memo {
    uint64_t turns;             /* 1 + the index of the turn whose values are cached; 0: none */
    uint16_t set[SGT_MIX_TURN]; /* set of each row of the turn */
    /* for each row of the turn: number of earlier rows of the run that come from the same set */
    uint64_t row[SGT_MIX_TURN];
    sgt_sampler_memo samplers[]; /* (sets) */
} sgt_mix_memo;

/* Initialize m for `count` sets, from 1 to SGT_MIX_SETS. The caller has checked the sets' weights:
 * either all are 0, or sgt_mix_weight accepts all of them. `tokens` has one element for each shard
 * of all sets: the size of the shard, as sgt_sampler_init expects it. Of the options, only seq,
 * seed and sampling are used. This function sets `share` and `windows_per_epoch` of each set.
 * Returns SGT_EUSAGE if there are more than 2^63 windows. */
int sgt_mix_init(sgt_mix *m, const sgt_loader_options *o, sgt_loader_set_info *sets, uint32_t count,
                 const uint64_t *tokens, sgt_error *err);
void sgt_mix_free(sgt_mix *m);

/* Return 1 if `weight` is a number from SGT_MIX_LEAST to SGT_MIX_MOST, otherwise 0. */
int sgt_mix_weight(double weight);

static inline size_t sgt_mix_memo_bytes(const sgt_mix *m)
{
    return sizeof(sgt_mix_memo) + m->sets * sizeof(sgt_sampler_memo);
}

/* Return the index of the set from which row `row` of the run comes, and set *own to the index of
 * this row among the rows of that set. `memo` may be NULL. */
uint32_t sgt_mix_row(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row, uint64_t *own);

/* Return the window of row `row`. Its `shard` is an index into the list of the shards of all sets.
 * For the samplings `documents` and `packed`, its other fields are those that sgt_sampler_window
 * sets. */
sgt_window sgt_mix_window(const sgt_mix *m, uint64_t row);

/* Set windows[i] to the window of row `row` + i * step of the run, for i < n. */
void sgt_mix_windows(const sgt_mix *m, sgt_mix_memo *memo, uint64_t row, uint64_t step, uint32_t n,
                     sgt_window *windows);

/* Return the number of rows, among the run's first `rows` rows, that come from set `set`. */
uint64_t sgt_mix_drawn(const sgt_mix *m, uint32_t set, uint64_t rows);

#endif
