/* advance.h: report the progress of the second pass over the tokens, for a progress bar. */
#ifndef SGT_ADVANCE_H
#define SGT_ADVANCE_H

#include <stdint.h>

#define SGT_ADVANCE_STEP ((uint64_t)1 << 20) /* minimum number of tokens between two calls */

typedef struct sgt_advance {
    /* receives the number of a split's tokens that this step of the work has done so far; NULL: no
     * reports */
    void (*tell)(void *ctx, int split, uint64_t tokens);
    void *ctx;
} sgt_advance;

/* Report `tokens`, the number done so far, if SGT_ADVANCE_STEP more are done than at the last
 * report. *told: the number last reported, 0 at first. */
static inline void sgt_advance_to(const sgt_advance *a, int split, uint64_t tokens, uint64_t *told)
{
    if (!a->tell || tokens < *told + SGT_ADVANCE_STEP) return;
    *told = tokens;
    a->tell(a->ctx, split, tokens);
}

#endif
