/* share.h: how the second pass, which makes shards of all parts, is divided among connected ranks.
 *
 *     sgt_share s = {.index = rank, .count = ranks, .ranks = connected};
 *     for (i = sgt_share_first(&s, n, s.index); i < sgt_share_first(&s, n, s.index + 1); i++)
 *         ...;                               // our share of n things
 *     rc = sgt_share_meet(&s, &err);         // now all ranks have done theirs
 *
 * A process that is alone has share 0 of 1, which is everything. */
#ifndef SGT_SHARE_H
#define SGT_SHARE_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/ranks.h"

/* Limit of `count`, for what is divided through files: each rank writes a file for each share. A
 * rank with a number from there on has an empty share. */
#define SGT_SHARE_MOST 256

typedef struct sgt_share {
    uint32_t index, count; /* index >= count: an empty share */
    sgt_ranks *ranks;      /* the ranks with the other shares; NULL: none */
} sgt_share;

/* Return the index of the first of n things that are in share `index`, or in a later one. */
static inline uint64_t sgt_share_first(const sgt_share *s, uint64_t n, uint64_t index)
{
    const uint64_t i = index < s->count ? index : s->count;
    return n / s->count * i + n % s->count * i / s->count;
}

/* Return the share that thing `at` of n is in. */
static inline uint32_t sgt_share_of(const sgt_share *s, uint64_t n, uint64_t at)
{
    uint32_t i = 0;
    while (sgt_share_first(s, n, i + 1) <= at) i++;
    return i;
}

/* Barrier: what other ranks wrote before it can be read after it. */
static inline int sgt_share_meet(const sgt_share *s, sgt_error *err)
{
    double none = 0;
    return s->ranks ? s->ranks->sum(s->ranks, &none, 1, err) : SGT_OK;
}

#endif
