/* pages.h: pages of memory and of files: whether a part of a file is cached, memory that is prefaulted,
 * maps whose cached pages are mapped ahead, which all only save time; and maps of files that may be
 * cut short (guard.c). */
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

/* ---- prefaulting ----
 *
 * Threads that prefault memory ahead of the threads that fill it. At the first access
 * to a page the kernel zeroes it, and a virtual machine's host may have to find memory for it. That
 * can be slower than the disk; two threads take half the time of one.
 *
 *     sgt_prefault t;
 *     sgt_prefault_begin(&t, arena.base, arena.size);
 *     ... fill the memory, in any order ...
 *     sgt_prefault_end(&t); */
#define SGT_PREFAULT_THREADS 4

typedef struct sgt_prefault {
    char *base;
    size_t size, next; /* next: atomic, the first byte that no thread has claimed */
    int count;
    pthread_t threads[SGT_PREFAULT_THREADS];
} sgt_prefault;

/* Start prefaulting [base, base + size) in order, with one thread per core, at most
 * SGT_PREFAULT_THREADS. Data written to the memory meanwhile is kept. It only saves time: before
 * Linux 5.14, or if threads cannot be started, it does nothing. */
void sgt_prefault_begin(sgt_prefault *t, char *base, size_t size);
void sgt_prefault_end(sgt_prefault *t); /* stop; pages not reached yet stay as they are */

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
    int torn; /* atomic: 1 if one of the maps is torn */
    uint32_t count;
    sgt_guard_map maps[];
} sgt_guarded;

sgt_guarded *sgt_guard_new(uint32_t count); /* returns malloc'd memory; NULL if out of memory */
int sgt_guard_add(sgt_guarded *g);          /* returns 0, or -1 if out of memory */
void sgt_guard_remove(sgt_guarded *g);      /* does nothing if g was never added */

/* Mark a map as torn, as the handler does, if the damage was found in another way. Safe in a signal
 * handler. */
void sgt_guard_tear(sgt_guarded *g, uint32_t map, uint64_t at);

/* ---- mapping ahead ----
 *
 * Map the pages of a set that are in the page cache, before windows touch them. The
 * first access to a page is a fault, even if the page is cached. An epoch touches each page for the
 * first time once, so faults would take most of its time.
 *
 *     sgt_map_ahead *m = sgt_map_ahead_new(set, maps);
 *     sgt_map_ahead_begin(m);      // before the first batch; later calls do nothing
 *     sgt_map_ahead_free(m);       // before the maps are removed
 *
 * Nothing is read from the disk, and no memory is taken but page tables: .2 % of the set. It only
 * saves time: if it cannot be done, faults map the pages. */
typedef struct sgt_map_ahead sgt_map_ahead;

/* Returns NULL if out of memory. The set and the maps must outlive it. */
sgt_map_ahead *sgt_map_ahead_new(const sgt_set *set, const sgt_guarded *maps);

/* Map what is cached, on the calling thread and on others. It returns after at most a quarter of a
 * second; the other threads then go on with the rest of a large set. Any thread may call it. Does
 * nothing if the set is larger than the available memory, before Linux 5.14, or if the kernel does
 * not say which pages are cached. */
void sgt_map_ahead_begin(sgt_map_ahead *m);

/* Stop and free; NULL is fine. */
void sgt_map_ahead_free(sgt_map_ahead *m);

/* Return how many bytes have been mapped so far; and whether that is the whole set. */
uint64_t sgt_map_ahead_bytes(const sgt_map_ahead *m);
int sgt_map_ahead_all(const sgt_map_ahead *m);

#endif
