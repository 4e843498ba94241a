/* examples.c: makes rows of examples: permutes, cuts or pads them. */
#include "train/data/examples.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t length_of(const sgt_examples *e, uint64_t i)
{
    return e->starts[i + 1] - e->starts[i];
}

int sgt_examples_arrange(sgt_examples *e, const char *name, const sgt_example_rows *rows,
                         const sgt_notice *notice, sgt_error *err)
{
    uint64_t filled = 0, cut = 0, T = rows->seq;
    e->rows = *rows;
    for (uint64_t i = 0; i < e->count; i++) {
        filled += e->learnt[i] > T;
        cut += e->learnt[i] <= T && length_of(e, i) > T + 1;
    }
    if (filled == e->count)
        return sgt_fail(err, SGT_EUSAGE,
                        "--seq-len %" PRIu64
                        ": every prompt of %s fills the row: nothing is left to learn",
                        T, name);
    if (filled)
        sgt_say(notice,
                "%s: %" PRIu64 " of %" PRIu64 " prompts fill the row of %" PRIu64
                " tokens: nothing is learnt from those (use a longer --seq-len)",
                name, filled, e->count, T);
    if (cut)
        sgt_say(notice,
                "%s: %" PRIu64 " of %" PRIu64 " completions are cut to the row of %" PRIu64
                " tokens",
                name, cut, e->count, T);
    return sgt_sampler_init(&e->order, SGT_SAMPLING_DOCUMENTS, rows->seed, rows->seq, &e->count, 1,
                            err);
}

static void make_row(const sgt_examples *e, uint64_t i, uint16_t *tokens, int32_t *targets)
{
    uint64_t T = e->rows.seq, n = length_of(e, i);
    const uint16_t *from = e->tokens + e->starts[i];
    for (uint64_t t = 0; t <= T; t++) tokens[t] = t < n ? from[t] : (uint16_t)e->rows.pad;
    for (uint64_t t = 0; t < T; t++)
        targets[t] = t + 1 >= e->learnt[i] && t + 1 < n ? from[t + 1] : SGT_IGNORED;
}

void sgt_examples_batch(const sgt_examples *e, uint64_t index, uint16_t *tokens, int32_t *targets)
{
    const sgt_example_rows *r = &e->rows;
    sgt_sampler_memo memo = {0};
    uint64_t row = index * r->batch + r->rank;
    for (uint32_t i = 0; i < r->batch / r->ranks; i++, row += r->ranks)
        make_row(e, sgt_sampler_window(&e->order, &memo, row).offset,
                 tokens + i * ((size_t)r->seq + 1), targets + i * (size_t)r->seq);
}

void sgt_examples_free(sgt_examples *e)
{
    sgt_sampler_free(&e->order);
    free(e->tokens);
    free(e->starts);
    free(e->learnt);
    free(e->tokenizer);
    *e = (sgt_examples){0};
}
