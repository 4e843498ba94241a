/* share.h: how the second pass, which makes shards of all parts, is divided among connected ranks.
 *
 *     sgt_share s = {.index = rank, .count = ranks, .ranks = connected};
 *     for (i = sgt_share_first(&s, n, s.index); i < sgt_share_first(&s, n, s.index + 1); i++)
 *         ...;                               // our share of n things
 *     rc = sgt_share_barrier(&s, &err);      // now all ranks have done theirs
 *
 * A process that is alone has share 0 of 1, which is everything; so has a zeroed sgt_share. */
#ifndef SGT_SHARE_H
#define SGT_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "loader/base/ranks.h"

/* Limit of `count`, for what is divided through files: each rank writes a file for each share. A
 * rank with a number from there on has an empty share. */
#define SGT_SHARE_MOST 256

#define SGT_SHARE_PIECES 4 /* pieces of work for each share, at least */

typedef struct sgt_share {
    uint32_t index, count; /* index >= count: an empty share */
    sgt_ranks *ranks;      /* the ranks with the other shares; NULL: none */
    /* half of the free memory of the machine, in bytes; 0: the ranks run on several machines
     * (sgt_share_memory) */
    uint64_t memory;
} sgt_share;

/* Return s, or share 0 of 1 if s is zeroed. */
static inline sgt_share sgt_share_or_all(sgt_share s)
{
    return s.count ? s : (sgt_share){.count = 1};
}

/* Return the index of the first of n things that are in share `index`, or in a later one. */
static inline uint64_t sgt_share_first(const sgt_share *s, uint64_t n, uint64_t index)
{
    const uint64_t i = index < s->count ? index : s->count;
    return n / s->count * i + n % s->count * i / s->count;
}

/* Return `pieces`, a power of two, or enough times as many that the shares are about equal. */
static inline size_t sgt_share_pieces(const sgt_share *s, size_t pieces)
{
    while (s->count > 1 && pieces < (size_t)SGT_SHARE_PIECES * s->count) pieces *= 2;
    return pieces;
}

/* Barrier: what other ranks wrote before it can be read after it. */
static inline int sgt_share_barrier(const sgt_share *s, sgt_error *err)
{
    double none = 0;
    return s->ranks ? s->ranks->sum(s->ranks, &none, 1, err) : SGT_OK;
}

/* Set s->memory to the same number in all ranks. Collective. */
static inline int sgt_share_memory(sgt_share *s, sgt_error *err)
{
    sgt_memory m;
    double sum;
    if (!s->ranks) return SGT_OK;
    sgt_memory_look(&m, NULL);
    sum = (double)m.available;
    int rc = s->ranks->sum(s->ranks, &sum, 1, err);
    /* ranks on one machine can share memory */
    s->memory = !rc && s->ranks->here == s->ranks->size ? (uint64_t)(sum / 2 / s->ranks->size) : 0;
    return rc;
}

#endif
