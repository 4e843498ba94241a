/* cuts.h: where a piece may be cut before a character past ASCII, because no token holds that
 * character's first byte and the byte before it side by side: merges on either side go on as if
 * apart. Text without spaces falls into short words that way, which come again and again.
 *
 * Two tables of a byte an entry instead of the 65,536 bits of a vocabulary's `joins`, so that
 * vectors can look them up: first bytes that follow similar bytes share one of eight bits. Where
 * those differ, less is cut than could be. */
#ifndef SGT_CUTS_H
#define SGT_CUTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_cuts {
    /* by a byte's lower 6 bits, of the bytes C0 to FF: its bit; 0: no token has it inside */
    uint8_t first[64];
    uint8_t before[256]; /* the bits of all that some token has behind this byte */
} sgt_cuts;

/* Whether a piece that holds p[-1] and p[0] may be cut between them. */
static inline int sgt_cuts_at(const sgt_cuts *c, const uint8_t *p)
{
    return p[0] >= 0xC0 && !(c->first[p[0] & 63] & c->before[p[-1]]);
}

/* joins (1024): bit first byte << 8 | second byte: some token holds the two side by side. */
void sgt_cuts_make(sgt_cuts *c, const uint64_t *joins);

#ifdef __cplusplus
}
#endif
#endif
