/* units.h: processes the text of a corpus in parallel, in units. A unit is the text that a thread
 * processes at a time (about 256 KiB; feed.h). Worker threads read and process units, and the
 * caller gets the finished units in the order of the text, whatever the speed of the threads. The
 * units are in a ring buffer of fixed length, which limits the memory.
 *
 *     sgt_units_job job = {.feed = {.reading = {.corpus = c, .o = o}, .piece = piece,
 *                                   .threads = n}, .work = work,
 *                          .workers = workers, .worker_size = sizeof *workers};
 *     if (sgt_units_start(&u, &job, &err) < 0) ...;
 *     while ((rc = sgt_units_next(u, &unit, &err)) == 0) use(unit);
 *     sgt_units_stop(u); */
#ifndef SGT_UNITS_H
#define SGT_UNITS_H

#include "tokenize/input/feed.h"

typedef struct sgt_units sgt_units;

typedef struct sgt_units_job {
    /* options of the feed. feed.threads must be at least 1. sgt_units_start sets feed.cancel. */
    sgt_text_feed_options feed;
    sgt_part_work *work; /* function that the threads call for each part of a unit (feed.h) */
    /* array of feed.threads elements of worker_size bytes: the state of each thread, which is
     * passed to `work`. The array must outlive the threads. */
    void *workers;
    size_t worker_size;
} sgt_units_job;

/* Return the number of threads to start: `threads` or, if it is 0, one per CPU. If the size of the
 * text is known, return at most the number of units, of `piece` bytes of text each, in the
 * corpus. */
size_t sgt_units_threads(const sgt_corpus *c, int threads, size_t piece);

/* Open a feed, and start job->feed.threads worker threads, or fewer if the system does not allow so
 * many. The caller ends the threads with sgt_units_stop. */
int sgt_units_start(sgt_units **out, const sgt_units_job *job, sgt_error *err);
/* Wait for the next unit, and set *u to it. The caller may use the unit until the next call. Return
 * 0, 1 at the end of the corpus, or a negative SGT_E*: the error of the first unit, in order, that
 * failed, or SGT_ESTOPPED. */
int sgt_units_next(sgt_units *s, sgt_unit **u, sgt_error *err);
/* End the threads and free s, which may be NULL. */
void sgt_units_stop(sgt_units *s);

#endif
