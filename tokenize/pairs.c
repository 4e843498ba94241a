/* pairs.c: the factors of a perfect hash. Groups are placed by size, the largest first, each with the first factor that
 * finds all its pairs free slots. With half of the slots in use at the end, the last groups of six take some sixty
 * tries, and few are that large. */
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

#define MOST 64 /* pairs of a group: 8 on the average at 65,536 */
#define NO_PAIR UINT32_MAX /* tokens 65,535 twice: never merged, because the last token is the end of text */

typedef struct group {
    uint32_t count, pairs[MOST]; /* ids of what they merge to */
} group;

/* Puts the group's pairs into slots by this factor; undone where two meet. */
static int place(sgt_pairs *p, const uint16_t (*halves)[2], const group *g, uint32_t factor)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const uint16_t *h = halves[g->pairs[i]];
        uint32_t key = (uint32_t)h[0] << 16 | h[1];
        sgt_pair_slot *at = &p->slots[sgt_pair_hash(key) * factor >> p->shift];
        if (at->key == NO_PAIR) {
            *at = (sgt_pair_slot){key, g->pairs[i]};
            continue;
        }
        while (i--) {
            h = halves[g->pairs[i]];
            key = (uint32_t)h[0] << 16 | h[1];
            p->slots[sgt_pair_hash(key) * factor >> p->shift] = (sgt_pair_slot){NO_PAIR, SGT_NO_TOKEN};
        }
        return 0;
    }
    return 1;
}

static int place_all(sgt_pairs *p, const uint16_t (*halves)[2], const group *groups, uint32_t largest)
{
    for (uint32_t size = largest; size > 0; size--)
        for (uint32_t i = 0; i < SGT_PAIR_GROUPS; i++) {
            uint32_t factor = 1;
            if (groups[i].count != size) continue;
            while (factor < 65536 && !place(p, halves, &groups[i], factor)) factor += 2;
            if (factor > 65535) return 0;
            p->factors[i] = (uint16_t)factor;
        }
    return 1;
}

/* The largest group's size, or 0: one is larger than MOST. */
static uint32_t sort(group *groups, const uint16_t (*halves)[2], uint32_t first, uint32_t end)
{
    uint32_t largest = 1;
    for (uint32_t id = first; id < end; id++) {
        group *g = &groups[sgt_pair_group(sgt_pair_hash((uint32_t)halves[id][0] << 16 | halves[id][1]))];
        if (g->count == MOST) return 0;
        g->pairs[g->count++] = id;
        if (g->count > largest) largest = g->count;
    }
    return largest;
}

int sgt_pairs_make(sgt_pairs *p, const uint16_t (*halves)[2], uint32_t first, uint32_t end, sgt_error *err)
{
    group *groups = calloc(SGT_PAIR_GROUPS, sizeof *groups);
    p->factors = calloc(SGT_PAIR_GROUPS, sizeof *p->factors);
    uint32_t largest = groups ? sort(groups, halves, first, end) : 0;
    /* A table twice as large where one was too small, which nobody has seen with pairs that a trainer made. */
    for (unsigned log = 17; groups && p->factors && largest && log <= 22; log++) {
        size_t bytes = sizeof *p->slots << log;
        free(p->slots);
        p->slots = aligned_alloc(64, bytes);
        if (!p->slots) break;
        memset(p->slots, 0xFF, bytes);
        p->shift = 32 - log;
        if (!place_all(p, halves, groups, largest)) continue;
        free(groups);
        return SGT_OK;
    }
    free(groups);
    return sgt_fail(err, SGT_ENOMEM, "vocabulary: no table for its %u merges", end - first);
}

void sgt_pairs_free(sgt_pairs *p)
{
    free(p->slots);
    free(p->factors);
}
