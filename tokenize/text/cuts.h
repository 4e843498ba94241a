/* cuts.h: where a piece may be cut before a non-ASCII character. A cut is allowed if no token holds
 * the character's first byte right behind the byte before it: then no merge crosses the cut. Text
 * without spaces falls into short words that way, and short words repeat often.
 *
 * A vocabulary's `joins` has 65,536 bits, too many for vector look-ups. These two tables have one
 * byte an entry instead: first bytes that follow similar bytes share one of eight bits. Sharing a
 * bit can only forbid cuts that `joins` would allow. */
#ifndef SGT_CUTS_H
#define SGT_CUTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_cuts {
    /* for each byte from C0 to FF, by its lower 6 bits: the bit of its group; 0: inside no token */
    uint8_t first[64];
    /* for each byte b: the bits of the groups of all bytes from C0 to FF that come right after b
     * within some token */
    uint8_t before[256];
} sgt_cuts;

/* Return whether a piece that holds p[-1] and p[0] may be cut between these two bytes. */
static inline int sgt_cuts_at(const sgt_cuts *c, const uint8_t *p)
{
    return p[0] >= 0xC0 && !(c->first[p[0] & 63] & c->before[p[-1]]);
}

/* Fill *c from joins (1024 words). Its bit `first byte << 8 | second byte` is 1 if some token holds
 * these two bytes side by side. */
void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins);

#ifdef __cplusplus
}
#endif
#endif
