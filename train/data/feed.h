/* feed.h: returns the batches of a run, one for each micro-step. Threads prepare batches ahead.
 * With the option `now` (--no-overlap), each batch is made only when it is requested, so that the
 * benefit of preparing ahead can be measured.
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

/* ---- examples ---- */

/* An example is a prompt with its completion. Each example becomes one training row, in which only
 * the completion's tokens have a loss. Because this library has no tokenizer, a callback of
 * sgt_train's caller reads and tokenizes the examples (sgt_train_options.examples). The following
 * functions make rows from them.
 *
 *     sgt_examples e = {...};                     // tokens, starts, learnt, count, ...
 *     if (sgt_examples_arrange(&e, path, &rows, &notice, &err) < 0) ...;
 *     sgt_examples_batch(&e, k, inputs, targets);
 *     sgt_examples_free(&e);
 *
 * Each epoch uses all examples, in a new random order: row r of the run is example
 * permute(draw(ORDER, epoch, 0), count, r mod count). The functions permute and draw are those that
 * sampler.h defines for `--sampling documents`. */

typedef struct sgt_example_rows {
    uint64_t seed;
    uint32_t batch, seq; /* batch: rows per batch over all ranks, B; seq: tokens per row, T */
    /* rank: index of this rank; ranks: number of ranks. Rows rank, rank + ranks, rank + 2 * ranks,
     * ... of each batch belong to this rank. */
    uint32_t rank, ranks;
    uint32_t pad; /* id of the token that fills a row after the end of its example */
} sgt_example_rows;

typedef struct sgt_examples {
    uint64_t count;
    /* tokens of all examples, one after another: prompt, completion, end of text */
    int32_t *tokens;
    /* array of count + 1 elements: starts[i] is the index in `tokens` of the first token of example
     * i. starts[count] is the total number of tokens. An example has at least two tokens. */
    uint64_t *starts;
    /* array of `count` elements: number of prompt tokens in each example, at least 1. Only the
     * tokens that follow the prompt have a loss. */
    uint32_t *learnt;
    uint64_t hash; /* identifies the examples */
    uint32_t vocab, eot;
    char *tokenizer; /* text of tokenizer.json, which is copied to checkpoints; NULL: none */
    sgt_example_rows rows;
    sgt_sampler order;
} sgt_examples;

/* Prepare *e for making rows of rows->seq tokens. Give a notice if some prompts fill an entire row,
 * so that no token of their completions is learnt, or if some completions are truncated. If no
 * token of any example has a loss, return SGT_EUSAGE with a message that names the file `name`. */
int sgt_examples_arrange(sgt_examples *e, const char *name, const sgt_example_rows *rows,
                         const sgt_notice *notice, sgt_error *err);

/* Write batch `index` to the arrays `inputs` and `targets`, each with shape (rows of this rank, T).
 * A target without a loss is SGT_IGNORED. */
void sgt_examples_batch(const sgt_examples *e, uint64_t index, int32_t *inputs, int32_t *targets);

void sgt_examples_free(sgt_examples *e);

/* ---- the feed ---- */

#define SGT_FEED_AHEAD 4 /* number of batches that are prepared before they are requested */
#define SGT_FEED_HOLD 6  /* upper bound of `hold` */

typedef struct sgt_feed_options {
    uint64_t first, count; /* batches first .. first + count - 1 */
    uint32_t threads;      /* threads that prepare batches */
    /* number of batches to return again and again, 0 .. cycle - 1, without threads; 0: do not
     * repeat batches */
    uint64_t cycle;
    /* 1: use no threads, and make each batch in sgt_feed_next; 0: threads make batches ahead */
    int now;
    /* number of further sgt_feed_next calls for which a returned batch stays valid; after them, its
     * memory is reused */
    unsigned hold;
    /* function that allocates memory for batches; NULL: malloc is used */
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *p);
    void *ctx;
    /* examples that sgt_examples_arrange has prepared; NULL: the rows come from the loader. With
     * examples, pass NULL as the loader; no threads are used. */
    const sgt_examples *examples;
    sgt_trace *trace; /* trace to which the time for making each batch is added; NULL: no trace */
} sgt_feed_options;

typedef struct sgt_feed sgt_feed;
int sgt_feed_open(sgt_feed **out, const sgt_loader *l, const sgt_feed_options *o, sgt_error *err);
void sgt_feed_close(sgt_feed *f); /* NULL is fine */

/* Set *rows to the next batch and return 0. Return 1 if there is no further batch, or a negative
 * SGT_E*. The feed owns the rows. If `now` is set, the caller may change rows->targets.
 * rows->starts is valid only until the next call. */
int sgt_feed_next(sgt_feed *f, sgt_batch *rows, sgt_error *err);

/* Start again at batch `first` (of the options). Allowed only if `now` is set. */
void sgt_feed_again(sgt_feed *f);

#endif
