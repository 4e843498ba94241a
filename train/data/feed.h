/* feed.h: gives the rows of a run, one micro-step after another. Threads prepare them ahead. With
 * `now`, each batch is made when it is asked for (--no-overlap), to measure the gain of preparing
 * ahead.
 *
 *     sgt_feed *f;
 *     sgt_feed_options o = {.first = k, .count = n, .threads = 1, .hold = b->hold};
 *     if (sgt_feed_open(&f, loader, &o, &err) < 0) ...;
 *     while (sgt_feed_next(f, &rows, &err) == 0) use(rows);
 *     sgt_feed_close(f);
 *
 * All calls come from one thread. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stdint.h>

#include "train/backend.h"
#include "train/data/examples.h"
#include "loader/sgt_loader.h"
#include "train/log/trace.h"

#define SGT_FEED_AHEAD 4 /* batches prepared ahead of the one in use */
#define SGT_FEED_HOLD 6  /* upper bound of `hold` */

typedef struct sgt_feed_options {
    uint64_t first, count; /* batches first .. first + count - 1 */
    uint32_t threads;      /* threads that prepare batches */
    /* if not 0: repeat batches 0 .. cycle - 1 instead, without threads */
    uint64_t cycle;
    int now; /* 1: no threads; make rows within sgt_feed_next */
    /* 1: set rows.starts, if the loader knows where documents begin */
    int starts;
    /* number of later calls of sgt_feed_next during which rows stay valid; the call after those
     * reuses their memory */
    unsigned hold;
    void *(*alloc)(void *ctx, size_t bytes); /* allocator for the rows; NULL: malloc */
    void (*free)(void *ctx, void *p);
    void *ctx;
    /* arranged examples to use instead of a loader, which is then NULL; implies `now` */
    const sgt_examples *examples;
    sgt_trace *trace; /* trace that shows how long each batch took to make; NULL: none */
} sgt_feed_options;

typedef struct sgt_feed sgt_feed;
int sgt_feed_open(sgt_feed **out, const sgt_loader *l, const sgt_feed_options *o, sgt_error *err);
void sgt_feed_close(sgt_feed *f); /* NULL is fine */

/* Get the next batch in *rows. The feed owns the rows; the caller must not change them. Padded rows
 * have targets, which, like starts, are valid only until the next call. Return 1 after the last
 * batch. */
int sgt_feed_next(sgt_feed *f, sgt_batch *rows, sgt_error *err);

/* With `now`: start again at batch `first`. */
void sgt_feed_again(sgt_feed *f);

#endif
