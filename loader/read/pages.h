/* pages.h: pages of files: whether a part of a file is cached; threads that read or map its parts; and
 * maps of files that may be cut short (guard.c). */
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

/* ---- files cut short ----
 *
 * Maps of files under the one SIGBUS handler that sgt_loader_guard_sigbus (sgt_loader.h)
 * installs. If the kernel cannot load a page, because the file was cut short or the disk failed, a
 * program that reads it normally dies. Under the guard such a read finds zeros and the map is
 * marked as torn, which its readers check afterwards.
 *
 *     sgt_guarded *g = sgt_guard_new(count);      // maps of size 0: they own no addresses
 *     g->maps[i] = (sgt_guard_map){base, size};   // all of them before the first is read
 *     sgt_guard_add(g);                           // from here on the handler knows them
 *     ... read ...
 *     if (g->torn && g->maps[i].torn) ...         // what was read from maps[i] may be wrong
 *     sgt_guard_remove(g);                        // when nobody reads any more: unmap, free(g)
 *
 * Any thread may call these, even while other threads fault. Without the handler they have no
 * effect on what happens at a fault. */

typedef struct sgt_guard_map {
    char *base;
    size_t size;
    uint64_t torn; /* atomic: 0, or 1 + the first byte that could not be read */
} sgt_guard_map;

typedef struct sgt_guarded {
    struct sgt_guarded *next; /* of the handler's list */
    int torn;                 /* atomic: 1 if one of the maps is torn */
    uint32_t count;
    sgt_guard_map maps[];
} sgt_guarded;

sgt_guarded *sgt_guard_new(uint32_t count); /* returns malloc'd memory; NULL if out of memory */
void sgt_guard_add(sgt_guarded *g);
void sgt_guard_remove(sgt_guarded *g); /* does nothing if g was never added */

/* Mark a map as torn, as the handler does, if the damage was found in another way. Safe in a signal
 * handler. */
void sgt_guard_tear(sgt_guarded *g, uint32_t map, uint64_t at);

#endif
