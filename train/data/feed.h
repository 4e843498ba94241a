/* feed.h: the rows of a run, micro-step after micro-step. Threads prepare them ahead; with `now`
 * they are made on request (--no-overlap), to measure the gain of preparing ahead.
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
    int now; /* no threads: make rows within sgt_feed_next */
    /* set rows.starts, if the loader knows where documents begin */
    int starts;
    /* later calls of sgt_feed_next that rows survive; the call after those reuses their memory */
    unsigned hold;
    void *(*alloc)(void *ctx, size_t bytes); /* allocator for the rows; NULL: malloc */
    void (*free)(void *ctx, void *p);
    void *ctx;
    /* arranged examples instead of a loader, which is NULL; implies `now` */
    const sgt_examples *examples;
    sgt_trace *trace; /* trace that records the making of each batch; NULL: none */
} sgt_feed_options;

typedef struct sgt_feed sgt_feed;
int sgt_feed_open(sgt_feed **out, const sgt_loader *l, const sgt_feed_options *o, sgt_error *err);
void sgt_feed_close(sgt_feed *f); /* NULL is fine */

/* Return the rows of the next batch in *rows; the feed owns them, and they are read-only. Padded
 * rows come with targets, which, like starts, are valid only until the next call. Return 1 after
 * the last batch. */
int sgt_feed_next(sgt_feed *f, sgt_batch *rows, sgt_error *err);

/* With `now`: start again at batch `first`. */
void sgt_feed_again(sgt_feed *f);

#endif
