/* advance.h: report the progress of the second pass over the tokens, for a progress bar. */
#ifndef SGT_ADVANCE_H
#define SGT_ADVANCE_H

#include <stdint.h>

#define SGT_ADVANCE_STEP ((uint64_t)1 << 20) /* minimum number of tokens between two calls */

typedef struct sgt_advance {
    /* Called with the number of the split's tokens that this step of the work has done. NULL: no
     * reports are wanted. */
    void (*tell)(void *ctx, int split, uint64_t tokens);
    void *ctx;
} sgt_advance;

/* Report progress if a step is complete. *told: the number last reported, at first 0. */
static inline void sgt_advance_to(const sgt_advance *a, int split, uint64_t tokens, uint64_t *told)
{
    if (!a->tell || tokens < *told + SGT_ADVANCE_STEP) return;
    *told = tokens;
    a->tell(a->ctx, split, tokens);
}

#endif
