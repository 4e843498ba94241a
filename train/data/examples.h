/* examples.h: rows that are learnt in part: prompts with completions, of which the completions
 * alone have a loss. train knows no tokenizer: whoever calls sgt_train reads them
 * (sgt_train_options.examples), and this makes rows of them.
 *
 *     sgt_examples e = {...};                                             // tokens, starts, learnt, count, ...
 *     if (sgt_examples_arrange(&e, path, &rows, &notice, &err) < 0) ...;
 *     sgt_examples_batch(&e, k, tokens, targets);
 *     sgt_examples_free(&e);
 *
 * Row r of the run is example permute(draw(ORDER, epoch, 0), count, r mod count), as of `documents`
 * in sampler.h. */
#ifndef SGT_EXAMPLES_H
#define SGT_EXAMPLES_H

#include <stdint.h>

#include "sample/sampler.h"

typedef struct sgt_example_rows {
    uint64_t seed;
    uint32_t batch, seq;  /* B over all ranks, T */
    uint32_t rank, ranks; /* this one takes rows rank, rank + ranks, ... of a batch */
    uint32_t pad;         /* the id behind an example's end */
} sgt_example_rows;

typedef struct sgt_examples {
    uint64_t count;
    uint16_t *tokens; /* of all examples, one after the other: prompt, completion, end of text */
    uint64_t *starts; /* (count + 1): where each begins; at least two tokens from one to the next */
    uint32_t *learnt; /* (count): tokens of its prompt, at least 1: those behind them have a loss */
    uint64_t hash;    /* identifies them */
    uint32_t vocab, eot;
    char *tokenizer; /* tokenizer.json's text, for checkpoints; NULL: none */
    sgt_example_rows rows;
    sgt_sampler order;
} sgt_examples;

/* Says how many prompts leave no room for their completions in a row of rows->seq tokens, and how
 * many completions are cut. SGT_EUSAGE, with `name` and the option, where nothing would be learnt
 * at all. */
int sgt_examples_arrange(sgt_examples *e, const char *name, const sgt_example_rows *rows,
                         const sgt_notice *notice, sgt_error *err);

/* Batch `index`, (local batch, T + 1) and (local batch, T). Targets without a loss are
 * SGT_IGNORED. */
void sgt_examples_batch(const sgt_examples *e, uint64_t index, uint16_t *tokens, int32_t *targets);

void sgt_examples_free(sgt_examples *e);

#endif
