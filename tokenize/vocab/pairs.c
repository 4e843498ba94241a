/* pairs.c: computes the factors of a perfect hash. Groups are placed by size, the largest first,
 * each with the first factor that gives all its pairs free slots. With half of the slots in use at
 * the end, the last groups of six need some sixty tries, and few groups are that large. */
#include "tokenize/vocab/pairs.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_LOG 17
/* token 65,535 twice, which is never merged: as the last token it is the end of text */
#define NO_PAIR UINT32_MAX

/* Merges by group: those of group g are ids[ends[g - 1] .. ends[g]). */
typedef struct groups {
    const uint16_t (*halves)[2];
    uint32_t ends[SGT_PAIR_GROUPS], largest;
    uint16_t ids[65536];
} groups;

static inline uint32_t key_of(const groups *g, uint32_t id)
{
    return (uint32_t)g->halves[id][0] << 16 | g->halves[id][1];
}

static uint32_t size_of(const groups *g, uint32_t group)
{
    return g->ends[group] - (group ? g->ends[group - 1] : 0);
}

static void sort(groups *g, uint32_t first, uint32_t end)
{
    uint32_t *at = g->ends; /* start of each group; once all merges are stored, its end */
    for (uint32_t id = first; id < end; id++) at[sgt_pair_group(sgt_pair_hash(key_of(g, id)))]++;
    for (uint32_t i = 0, before = 0; i < SGT_PAIR_GROUPS; i++) {
        uint32_t size = at[i];
        if (size > g->largest) g->largest = size;
        at[i] = before;
        before += size;
    }
    for (uint32_t id = first; id < end; id++)
        g->ids[at[sgt_pair_group(sgt_pair_hash(key_of(g, id)))]++] = (uint16_t)id;
}

/* Put the group's pairs into the slots that this factor selects. If a slot is taken, undo that and
 * return 0. */
static int place(sgt_pairs *p, const groups *g, uint32_t group, uint32_t factor)
{
    uint32_t count = size_of(g, group);
    const uint16_t *ids = g->ids + g->ends[group] - count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = key_of(g, ids[i]);
        sgt_pair_slot *at = &p->slots[sgt_pair_hash(key) * factor >> p->shift];
        if (at->key == NO_PAIR) {
            *at = (sgt_pair_slot){key, ids[i]};
            continue;
        }
        while (i--)
            p->slots[sgt_pair_hash(key_of(g, ids[i])) * factor >> p->shift] =
                (sgt_pair_slot){NO_PAIR, SGT_NO_TOKEN};
        return 0;
    }
    return 1;
}

static int place_all(sgt_pairs *p, const groups *g)
{
    for (uint32_t size = g->largest; size > 0; size--)
        for (uint32_t i = 0; i < SGT_PAIR_GROUPS; i++) {
            uint32_t factor = 1;
            if (size_of(g, i) != size) continue;
            while (factor < 65536 && !place(p, g, i, factor)) factor += 2;
            if (factor > 65535) return 0;
            p->factors[i] = (uint16_t)factor;
        }
    return 1;
}

/* Make 2^log empty slots. All factors are 1. */
static int make_slots(sgt_pairs *p, unsigned log, sgt_error *err)
{
    const size_t slots = sizeof *p->slots << log;
    sgt_arena_unmap(&p->memory);
    int rc = sgt_arena_map(&p->memory, slots + SGT_PAIR_GROUPS * sizeof *p->factors, 0, err);
    if (rc < 0) return rc;
    p->slots = sgt_arena_take(&p->memory, slots, 1);
    p->factors = sgt_arena_take(&p->memory, SGT_PAIR_GROUPS, sizeof *p->factors);
    memset(p->slots, 0xFF, slots);
    for (uint32_t i = 0; i < SGT_PAIR_GROUPS; i++) p->factors[i] = 1;
    p->shift = 32 - log;
    return SGT_OK;
}

int sgt_pairs_make(sgt_pairs *p, const uint16_t (*halves)[2], uint32_t first, uint32_t end,
                   sgt_error *err)
{
    groups *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "vocabulary");
    g->halves = halves;
    sort(g, first, end);
    int rc = SGT_OK, done = 0;
    /* Double the table until all pairs find a slot. No trained vocabulary is known to need that. */
    for (unsigned log = SLOTS_LOG; !rc && !done && log <= 22; log++)
        if ((rc = make_slots(p, log, err)) == 0) done = place_all(p, g);
    free(g);
    if (rc < 0 || done) return rc;
    return sgt_fail(err, SGT_ENOMEM, "vocabulary: no table for its %u merges", end - first);
}

int sgt_pairs_take(sgt_pairs *p, const uint16_t (*halves)[2], uint32_t first, uint32_t end,
                   const uint16_t *factors, sgt_error *err)
{
    int rc = make_slots(p, SLOTS_LOG, err);
    if (rc < 0) return rc;
    memcpy(p->factors, factors, SGT_PAIR_GROUPS * sizeof *p->factors);
    for (uint32_t id = first; id < end; id++) {
        uint32_t key = (uint32_t)halves[id][0] << 16 | halves[id][1], hash = sgt_pair_hash(key);
        p->slots[hash * factors[sgt_pair_group(hash)] >> p->shift] = (sgt_pair_slot){key, id};
    }
    return SGT_OK;
}

void sgt_pairs_free(sgt_pairs *p) { sgt_arena_unmap(&p->memory); }
