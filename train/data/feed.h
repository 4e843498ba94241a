/* feed.h: returns the rows of a run, one micro-step after another. Threads prepare batches ahead.
 * With the option `now` (--no-overlap), each batch is made when it is asked for, to measure the
 * gain of preparing ahead.
 *
 *     sgt_feed *f;
 *     sgt_feed_options o = {.first = k, .count = n, .threads = 1, .hold = b->hold};
 *     if (sgt_feed_open(&f, loader, &o, &err) < 0) ...;
 *     while (sgt_feed_next(f, &rows, &err) == 0) use(rows);
 *     sgt_feed_close(f);
 *
 * Only one thread may use a feed. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stdint.h>

#include "train/backend.h"
#include "loader/sample/sampler.h"
#include "loader/sgt_loader.h"
#include "train/log/trace.h"

/* ---- examples: training rows from prompts with completions, in which only the tokens of
 * completions have a loss. This library has no tokenizer, so the caller of sgt_train reads the
 * examples (sgt_train_options.examples), and these functions make rows of them.
 *
 *     sgt_examples e = {...};                     // tokens, starts, learnt, count, ...
 *     if (sgt_examples_arrange(&e, path, &rows, &notice, &err) < 0) ...;
 *     sgt_examples_batch(&e, k, inputs, targets);
 *     sgt_examples_free(&e);
 *
 * Row r of the run is example permute(draw(ORDER, epoch, 0), count, r mod count), with permute and
 * draw as for --sampling documents (sampler.h). ---- */

typedef struct sgt_example_rows {
    uint64_t seed;
    uint32_t batch, seq;  /* rows per batch over all ranks, B; tokens per row, T */
    uint32_t rank, ranks; /* this rank gets rows rank, rank + ranks, ... of each batch */
    uint32_t pad;         /* id that fills a row after the end of an example */
} sgt_example_rows;

typedef struct sgt_examples {
    uint64_t count;
    int32_t *tokens; /* tokens of all examples in order: prompt, completion, end of text */
    /* (count + 1): index of each example's first token, then the number of all tokens; an example
     * has at least two tokens */
    uint64_t *starts;
    /* (count): number of tokens in each example's prompt, at least 1; the tokens after the prompt
     * have a loss */
    uint32_t *learnt;
    uint64_t hash; /* identifies the examples */
    uint32_t vocab, eot;
    char *tokenizer; /* text of tokenizer.json for checkpoints; NULL: none */
    sgt_example_rows rows;
    sgt_sampler order;
} sgt_examples;

/* Prepare *e to make rows. Give a notice of how many prompts leave no room for their completions in
 * rows->seq tokens, and how many completions are cut. Returns SGT_EUSAGE if no token would have a
 * loss; the message begins with `name`. */
int sgt_examples_arrange(sgt_examples *e, const char *name, const sgt_example_rows *rows,
                         const sgt_notice *notice, sgt_error *err);

/* Write the inputs and targets of batch `index`, (local batch, T) each. Targets without a loss are
 * SGT_IGNORED. */
void sgt_examples_batch(const sgt_examples *e, uint64_t index, int32_t *inputs, int32_t *targets);

void sgt_examples_free(sgt_examples *e);

/* ---- the feed ---- */

#define SGT_FEED_AHEAD 4 /* batches prepared ahead of the one in use */
#define SGT_FEED_HOLD 6  /* upper bound of `hold` */

typedef struct sgt_feed_options {
    uint64_t first, count; /* batches first .. first + count - 1 */
    uint32_t threads;      /* threads that prepare batches */
    /* if not 0: return batches 0 .. cycle - 1 again and again, without threads */
    uint64_t cycle;
    int now; /* 1: use no threads; make each batch within sgt_feed_next */
    /* number of later calls of sgt_feed_next during which rows stay valid; the call after those
     * reuses their memory */
    unsigned hold;
    void *(*alloc)(void *ctx, size_t bytes); /* allocator for the rows; NULL: malloc */
    void (*free)(void *ctx, void *p);
    void *ctx;
    /* arranged examples, used instead of a loader, which must then be NULL; implies `now` */
    const sgt_examples *examples;
    sgt_trace *trace; /* trace to which the time of making each batch is added; NULL: none */
} sgt_feed_options;

typedef struct sgt_feed sgt_feed;
int sgt_feed_open(sgt_feed **out, const sgt_loader *l, const sgt_feed_options *o, sgt_error *err);
void sgt_feed_close(sgt_feed *f); /* NULL is fine */

/* Set *rows to the next batch. The feed owns the rows. If `now` is set, the caller may change the
 * targets. rows->starts is valid only until the next call. Returns 1 after the last batch. */
int sgt_feed_next(sgt_feed *f, sgt_batch *rows, sgt_error *err);

/* With `now`: start again at batch `first`. */
void sgt_feed_again(sgt_feed *f);

#endif
