/* pages.h: pages of files: whether a part of a file is cached; and threads that read or map its
 * parts. */
#ifndef SGT_PAGES_H
#define SGT_PAGES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/read/reader.h"

/* ---- the page cache ---- */

/* Return 1 if all of the `bytes` from offset `at` seem to be in the page cache, else 0. Use it only
 * to choose the faster way: the kernel may drop or load pages at any time. */
int sgt_resident(int fd, uint64_t at, size_t bytes);

/* ---- helpers ----
 *
 * Threads that do numbered steps, in order, while their caller does something else.
 *
 *     sgt_helpers h = {.step = step, .ctx = ctx, .count = 100};
 *     sgt_helpers_start(&h, 4);
 *     ...
 *     sgt_helpers_end(&h); */
#define SGT_HELPERS 16

typedef struct sgt_helpers {
    int (*step)(void *ctx, uint64_t n); /* returns 0 if no further step is of use */
    void *ctx;
    uint64_t count, next; /* next: atomic, the first step that no thread has taken */
    uint64_t done;        /* atomic: steps that have ended */
    int started;
    pthread_t threads[SGT_HELPERS];
} sgt_helpers;

/* Start `most` threads, at most SGT_HELPERS; fewer if there are fewer steps, or if the system
 * refuses some. */
void sgt_helpers_start(sgt_helpers *h, int most);
void sgt_helpers_work(sgt_helpers *h); /* do steps on this thread, until none is left */
void sgt_helpers_end(sgt_helpers *h);  /* wait for the steps that have begun, and do no others */

#endif
