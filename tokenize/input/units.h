/* units.h: processes the units of a corpus in parallel. A unit is the text that one thread
 * tokenizes at a time. Threads read units and work on them, and the caller takes the finished units
 * in the order of the text, so the order does not depend on the threads' speed. Units are kept in a
 * ring of fixed length, which limits the memory.
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
    /* options of the feed; `threads` must be at least 1, and sgt_units_start sets `cancel` */
    sgt_text_feed_options feed;
    sgt_part_work *work; /* function that the threads call for each part of a unit */
    /* array with one worker (the state of a thread, passed to `work`) of worker_size bytes for each
     * of the feed.threads threads; it must outlive them */
    void *workers;
    size_t worker_size;
} sgt_units_job;

/* Return the number of threads to start: `threads` (0 means one per CPU), but at most the number of
 * units of `piece` bytes in the corpus. */
size_t sgt_units_threads(const sgt_corpus *c, int threads, size_t piece);

/* Open a feed and start the threads. If the system allows fewer threads, start fewer. The caller
 * ends them with sgt_units_stop. */
int sgt_units_start(sgt_units **out, const sgt_units_job *job, sgt_error *err);
/* Set *u to the next unit, which the caller may use until the next call. Return 0, or 1 at the end,
 * or a negative SGT_E*: the error of the first unit that failed, or SGT_ESTOPPED. */
int sgt_units_next(sgt_units *s, sgt_unit **u, sgt_error *err);
/* End the threads and free s, which may be NULL. */
void sgt_units_stop(sgt_units *s);

#endif
