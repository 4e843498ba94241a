/* cuts.c: divide first bytes into eight groups. Merge the two groups whose union forbids the fewest
 * cuts, until eight are left. */
#include "tokenize/text/cuts.h"

#include <string.h>

typedef struct group {
    uint64_t before[4]; /* bit set: all bytes that come before one of the members in some token */
    uint64_t members;   /* bit set: first bytes, by their lower 6 bits */
} group;

static int bits(const uint64_t x[4])
{
    int n = 0;
    for (int i = 0; i < 4; i++) n += __builtin_popcountll(x[i]);
    return n;
}

/* Return how many pairs of bytes could no longer be cut if a and b were one group. */
static int cost(const group *a, const group *b)
{
    uint64_t both[4];
    for (int i = 0; i < 4; i++) both[i] = a->before[i] | b->before[i];
    int n = bits(both);
    return (n - bits(a->before)) * __builtin_popcountll(a->members) +
           (n - bits(b->before)) * __builtin_popcountll(b->members);
}

static int gather(group groups[64], const uint64_t *joins)
{
    int count = 0;
    for (unsigned first = 0xC0; first < 256; first++) {
        group g = {.members = (uint64_t)1 << (first & 63)};
        for (unsigned b = 0; b < 256; b++)
            if (joins[b << 2 | first >> 6] >> (first & 63) & 1)
                g.before[b >> 6] |= (uint64_t)1 << (b & 63);
        if (bits(g.before)) groups[count++] = g;
    }
    return count;
}

static void put_together(group *groups, int count)
{
    int a = 0, b = 1, least = cost(&groups[0], &groups[1]);
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            int c = cost(&groups[i], &groups[j]);
            if (c < least) least = c, a = i, b = j;
        }
    for (int i = 0; i < 4; i++) groups[a].before[i] |= groups[b].before[i];
    groups[a].members |= groups[b].members;
    groups[b] = groups[count - 1];
}

void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins)
{
    group groups[64];
    int count = gather(groups, joins);
    for (; count > 8; count--) put_together(groups, count);
    memset(c, 0, sizeof *c);
    for (int g = 0; g < count; g++)
        for (unsigned i = 0; i < 256; i++) {
            if (groups[g].before[i >> 6] >> (i & 63) & 1) c->before[i] |= (uint8_t)(1 << g);
            if (i < 64 && groups[g].members >> i & 1) c->first[i] = (uint8_t)(1 << g);
        }
}
