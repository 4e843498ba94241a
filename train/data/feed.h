/* feed.h: returns the batches of a run, one for each micro-step. By default, threads prepare
 * batches ahead. With the option `now` (--no-overlap), each batch is made only when the caller
 * requests it, which shows how much time preparing ahead saves.
 *
 *     sgt_feed *f;
 *     sgt_feed_options o = {.first = k, .count = n, .threads = 1, .hold = b->hold};
 *     if (sgt_feed_open(&f, loader, &o, &err) < 0) ...;
 *     while (sgt_feed_next(f, &rows, &err) == 0) use(rows);
 *     sgt_feed_close(f);
 *
 * Only one thread at a time may use a feed. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stdint.h>

#include "train/backend.h"
#include "loader/sample/sampler.h"
#include "loader/sgt_loader.h"
#include "train/log/trace.h"

/* ---- examples ---- */

/* An example is a prompt with its completion. Each example becomes one training row, in which only
 * the completion's tokens have a loss. This library has no tokenizer, so the caller of sgt_train
 * provides a callback that reads and tokenizes the examples (sgt_train_options.examples). The
 * functions below make rows from the tokenized examples.
 *
 *     sgt_examples e = {...};                     // tokens, starts, learnt, count, ...
 *     if (sgt_examples_arrange(&e, path, &rows, &notice, &err) < 0) ...;
 *     sgt_examples_batch(&e, k, inputs, targets);
 *     sgt_examples_free(&e);
 *
 * Each epoch uses every example once, in a new random order: row r of the run is example
 * permute(draw(ORDER, epoch, 0), count, r mod count). sampler.h defines `permute` and `draw`. */

typedef struct sgt_example_rows {
    uint64_t seed;
    /* batch: rows per batch, B, summed over all ranks; seq: tokens per row, T */
    uint32_t batch, seq;
    /* rank: index of this rank; ranks: number of ranks. This rank processes rows rank, rank +
     * ranks, rank + 2 * ranks, ... of each batch. */
    uint32_t rank, ranks;
    uint32_t pad; /* id of the token that fills the rest of a row that is longer than its example */
} sgt_example_rows;

typedef struct sgt_examples {
    uint64_t count;
    /* tokens of all examples, one example after another; an example is its prompt, its completion
     * and the end-of-text token */
    int32_t *tokens;
    /* array of `count` + 1 indexes: example i begins at tokens[starts[i]], and starts[count] is the
     * total number of tokens. Every example has at least two tokens. */
    uint64_t *starts;
    /* array of `count` elements: number of prompt tokens of each example, at least 1. Only tokens
     * after the prompt contribute to the loss. */
    uint32_t *learnt;
    uint64_t hash; /* identifies the examples */
    uint32_t vocab, eot;
    /* text of tokenizer.json, which is copied to checkpoints; NULL if there is none */
    char *tokenizer;
    sgt_example_rows rows;
    sgt_sampler order;
} sgt_examples;

/* Prepare *e for making rows of rows->seq tokens. Give a notice if completions are truncated, or if
 * prompts fill a row, which leaves no room for their completions. If every prompt fills its row, so
 * that there is nothing to learn, return SGT_EUSAGE; the message names the file `name`. */
int sgt_examples_arrange(sgt_examples *e, const char *name, const sgt_example_rows *rows,
                         const sgt_notice *notice, sgt_error *err);

/* Write the batch with number `index` to `inputs` and `targets`, arrays with shape (rows of this
 * rank, T). A target that does not contribute to the loss is SGT_IGNORED. */
void sgt_examples_batch(const sgt_examples *e, uint64_t index, int32_t *inputs, int32_t *targets);

void sgt_examples_free(sgt_examples *e);

/* ---- the feed ---- */

/* number of batches that threads prepare before the caller requests them */
#define SGT_FEED_AHEAD 4
#define SGT_FEED_HOLD 6 /* upper bound of `hold` */

typedef struct sgt_feed_options {
    uint64_t first, count; /* batches first .. first + count - 1 */
    uint32_t threads;      /* threads that prepare batches */
    /* if not 0, return batches 0 .. cycle - 1 in rotation, without threads; 0: do not repeat
     * batches */
    uint64_t cycle;
    /* 1: use no threads, and make each batch in sgt_feed_next; 0: let threads make batches ahead */
    int now;
    /* number of further calls to sgt_feed_next during which a returned batch stays valid; after
     * these calls, the batch's memory is reused */
    unsigned hold;
    /* function that allocates memory for batches; NULL: use malloc */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *p);
    void *ctx;
    /* examples, prepared by sgt_examples_arrange, from which rows are made; NULL: the rows come
     * from the loader. If there are examples, pass NULL as the loader; no threads are used. */
    const sgt_examples *examples;
    sgt_trace *trace; /* trace that records the time for making each batch; NULL: no trace */
} sgt_feed_options;

typedef struct sgt_feed sgt_feed;
int sgt_feed_open(sgt_feed **out, const sgt_loader *l, const sgt_feed_options *o, sgt_error *err);
void sgt_feed_close(sgt_feed *f); /* NULL is fine */

/* Set *rows to the next batch and return 0. Return 1 if there are no more batches, or a negative
 * SGT_E*. The feed owns the arrays in *rows. The caller may change rows->targets only if `now` is
 * set. rows->starts is valid only until the next call. */
int sgt_feed_next(sgt_feed *f, sgt_batch *rows, sgt_error *err);

/* Restart the feed at batch `first` of its options. Call this only if `now` is set. */
void sgt_feed_again(sgt_feed *f);

#endif
