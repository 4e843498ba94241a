/* advance.h: how far the second pass over the tokens is, for whoever draws a bar. */
#ifndef SGT_ADVANCE_H
#define SGT_ADVANCE_H

#include <stdint.h>

#define SGT_ADVANCE_STEP ((uint64_t)1 << 20) /* tokens between two calls, at least */

typedef struct sgt_advance {
    /* So many tokens of the split are behind, in the step of the work that this is given to. NULL:
     * nobody asks. */
    void (*tell)(void *ctx, int split, uint64_t tokens);
    void *ctx;
} sgt_advance;

/* *told: what was last said, from 0. */
static inline void sgt_advance_to(const sgt_advance *a, int split, uint64_t tokens, uint64_t *told)
{
    if (!a->tell || tokens < *told + SGT_ADVANCE_STEP) return;
    *told = tokens;
    a->tell(a->ctx, split, tokens);
}

#endif
