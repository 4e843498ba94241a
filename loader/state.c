/* state.c: the position in a run of batches, and whether a loader can continue from a saved one. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/handle.h"

void sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *state)
{
    *state = (sgt_loader_state){.rows = next * l->o.batch,
                                .hash = l->set.hash,
                                .tokens = l->set.tokens,
                                .seed = l->o.seed,
                                .sampling = l->o.sampling,
                                .seq = l->o.seq,
                                .pad = l->o.sampling == SGT_SAMPLING_DOCUMENTS ? l->o.pad : 0};
}

typedef struct differences {
    char text[512];
    size_t used;
} differences;

SGT_PRINTF(2, 3) static void differ(differences *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    d->used +=
        (size_t)snprintf(d->text + d->used, sizeof d->text - d->used, "%s", d->used ? "; " : "");
    d->used += (size_t)vsnprintf(d->text + d->used, sizeof d->text - d->used, fmt, args);
    va_end(args);
}

int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *state, uint64_t *next,
                      sgt_error *err)
{
    differences d = {0};
    sgt_loader_state now;
    sgt_loader_get_state(l, 0, &now);
    /* Count the tokens too: another split may have the same hash, and the tokens also change with
     * the shards left out as too short. */
    if (now.hash != state->hash ||
        (now.tokens != state->tokens && now.seq == state->seq && now.sampling == state->sampling))
        differ(&d,
               "the data are others, %016" PRIx64 " of %" PRIu64 " tokens and were %016" PRIx64
               " of %" PRIu64,
               now.hash, now.tokens, state->hash, state->tokens);
    if (now.sampling != state->sampling)
        differ(&d, "the sampling is %s and was %s", sgt_sampling_name(now.sampling),
               sgt_sampling_name(state->sampling));
    if (now.seed != state->seed)
        differ(&d, "the seed is %" PRIu64 " and was %" PRIu64, now.seed, state->seed);
    if (now.seq != state->seq)
        differ(&d, "the sequence length is %" PRIu32 " and was %" PRIu32, now.seq, state->seq);
    if (now.pad != state->pad && now.sampling == state->sampling)
        differ(&d, "the padding is %" PRIu32 " and was %" PRIu32, now.pad, state->pad);
    if (state->rows % l->o.batch)
        differ(&d,
               "%" PRIu64 " rows were drawn, which is not a whole number of batches of %" PRIu32,
               state->rows, l->o.batch);
    if (d.used)
        return sgt_fail(err, SGT_EUSAGE, "the saved position is of another run: %s", d.text);
    *next = state->rows / l->o.batch;
    return SGT_OK;
}
