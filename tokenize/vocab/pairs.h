/* pairs.h: which token two tokens merge to, found in one memory access: a perfect hash over all
 * merges of a vocabulary.
 *
 *     uint32_t merged = sgt_pair(&v->pairs, left, right);      // SGT_NO_TOKEN: no merge
 *
 * A pair's hash selects one of 8,192 groups, and the group's factor selects the slot. Factors are
 * chosen so that each pair has its own slot (Fredman, Komlós, Szemerédi 1984). Most of the pairs
 * that are looked up have no merge, the slowest case of an open-addressing table. */
#ifndef SGT_PAIRS_H
#define SGT_PAIRS_H

#include <stdint.h>

#include "loader/base/arena.h"
#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_NO_TOKEN UINT32_MAX
#define SGT_PAIR_GROUPS 8192

typedef struct sgt_pair_slot {
    uint32_t key, merged; /* key: left id << 16 | right id */
} sgt_pair_slot;

typedef struct sgt_pairs {
    sgt_arena memory; /* of slots and factors: a huge page, as each look-up is a random access */
    sgt_pair_slot *slots;
    uint16_t *factors; /* (SGT_PAIR_GROUPS): odd factors */
    unsigned shift;    /* 32 - log2(slots) */
} sgt_pairs;

static inline uint32_t sgt_pair_hash(uint32_t key) { return key * 0x9E3779B1u; } /* one to one */
static inline uint32_t sgt_pair_group(uint32_t hash) { return hash >> 19; }

static inline uint32_t sgt_pair(const sgt_pairs *p, uint32_t left, uint32_t right)
{
    uint32_t key = left << 16 | right, hash = sgt_pair_hash(key);
    const sgt_pair_slot *at = &p->slots[hash * p->factors[sgt_pair_group(hash)] >> p->shift];
    /* no branch, because it would be mispredicted about every second time */
    return at->merged | (0u - (at->key != key));
}

/* Build the table: halves[i] merge to id i, for i = first ... end - 1, and all pairs differ.
 * Returns 0, or SGT_ENOMEM. */
int sgt_pairs_make(sgt_pairs *p, const uint16_t (*halves)[2], uint32_t first, uint32_t end,
                   sgt_error *err);
/* Build the same table faster: with 2^17 slots and factors[SGT_PAIR_GROUPS] that are known to give
 * no collision. */
int sgt_pairs_take(sgt_pairs *p, const uint16_t (*halves)[2], uint32_t first, uint32_t end,
                   const uint16_t *factors, sgt_error *err);
void sgt_pairs_free(sgt_pairs *p);

#ifdef __cplusplus
}
#endif
#endif
