/* feed.h: where a run's rows come from, micro-step after micro-step: made ahead by threads, or with
 * `now` only when they are asked for (--no-overlap), so that the gain of the former can be
 * measured.
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

#include "backend.h"
#include "examples.h"
#include "sgt_loader.h"
#include "log/trace.h"

#define SGT_FEED_AHEAD 4 /* batches made ahead of the one in use */
#define SGT_FEED_HOLD 6  /* the most that `hold` may be */

typedef struct sgt_feed_options {
    uint64_t first, count; /* batches first .. first + count - 1 */
    uint32_t threads;      /* that make them ahead */
    /* 0, or batches 0 .. cycle - 1 over and over instead, and no thread */
    uint64_t cycle;
    int now; /* no thread: rows are made within sgt_feed_next */
    /* rows have starts, where the loader says where documents begin */
    int starts;
    /* rows stay until `hold` more calls were made, and the one after those */
    unsigned hold;
    void *(*alloc)(void *ctx, size_t bytes); /* of the rows; NULL: malloc */
    void (*free)(void *ctx, void *p);
    void *ctx;
    /* arranged, in the place of a loader, which is NULL: always `now` */
    const sgt_examples *examples;
    sgt_trace *trace; /* where each batch's making is noted; NULL: nowhere */
} sgt_feed_options;

typedef struct sgt_feed sgt_feed;
int sgt_feed_open(sgt_feed **out, const sgt_loader *l, const sgt_feed_options *o, sgt_error *err);
void sgt_feed_close(sgt_feed *f); /* NULL is fine */

/* The next batch's rows: read-only, the feed's. Where they are padded they have targets of their
 * own, which stay until the next call alone, as starts do. 1 after the last. */
int sgt_feed_next(sgt_feed *f, sgt_batch *rows, sgt_error *err);

/* With `now`: from batch `first` again. */
void sgt_feed_again(sgt_feed *f);

#endif
