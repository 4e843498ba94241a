/* examples.h: training rows of prompts with completions, in which only the completions have a loss.
 * This folder has no tokenizer: the caller of sgt_train reads the examples
 * (sgt_train_options.examples), and these functions make rows of them.
 *
 *     sgt_examples e = {...};                     // tokens, starts, learnt, count, ...
 *     if (sgt_examples_arrange(&e, path, &rows, &notice, &err) < 0) ...;
 *     sgt_examples_batch(&e, k, tokens, targets);
 *     sgt_examples_free(&e);
 *
 * Row r of the run is example permute(draw(ORDER, epoch, 0), count, r mod count), with permute and
 * draw as for --sampling documents (sampler.h). */
#ifndef SGT_EXAMPLES_H
#define SGT_EXAMPLES_H

#include <stdint.h>

#include "loader/sample/sampler.h"

typedef struct sgt_example_rows {
    uint64_t seed;
    uint32_t batch, seq;  /* rows per batch over all ranks, B; tokens per row, T */
    uint32_t rank, ranks; /* this rank takes rows rank, rank + ranks, ... of a batch */
    uint32_t pad;         /* id that fills a row after the end of an example */
} sgt_example_rows;

typedef struct sgt_examples {
    uint64_t count;
    uint16_t *tokens; /* tokens of all examples in order: prompt, completion, end of text */
    /* (count + 1): index of each example's first token, then the end; an example has at least two
     * tokens */
    uint64_t *starts;
    /* (count): tokens of each example's prompt, at least 1; the tokens after it have a loss */
    uint32_t *learnt;
    uint64_t hash; /* hash of the examples */
    uint32_t vocab, eot;
    char *tokenizer; /* text of tokenizer.json for checkpoints; NULL: none */
    sgt_example_rows rows;
    sgt_sampler order;
} sgt_examples;

/* Prepare *e to make rows. Report how many prompts leave no room for their completions in rows->seq
 * tokens, and how many completions are cut. Returns SGT_EUSAGE, with `name` and the option, if no
 * token would have a loss. */
int sgt_examples_arrange(sgt_examples *e, const char *name, const sgt_example_rows *rows,
                         const sgt_notice *notice, sgt_error *err);

/* Write the tokens (local batch, T + 1) and targets (local batch, T) of batch `index`. Targets
 * without a loss are SGT_IGNORED. */
void sgt_examples_batch(const sgt_examples *e, uint64_t index, uint16_t *tokens, int32_t *targets);

void sgt_examples_free(sgt_examples *e);

#endif
