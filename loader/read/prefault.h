/* prefault.h: prefault memory by threads, ahead of the threads that fill it. The first access to a
 * page has to zero it, and in a virtual machine may make the host find memory. That can be slower
 * than the disk; two threads take half the time of one.
 *
 *     sgt_prefault t;
 *     sgt_prefault_begin(&t, arena.base, arena.size);
 *     ... fill the memory, in any order ...
 *     sgt_prefault_end(&t); */
#ifndef SGT_PREFAULT_H
#define SGT_PREFAULT_H

#include <pthread.h>
#include <stddef.h>

#define SGT_PREFAULT_THREADS 4

typedef struct sgt_prefault {
    char *base;
    size_t size, next; /* next: atomic, the first byte that no thread has claimed */
    int count;
    pthread_t threads[SGT_PREFAULT_THREADS];
} sgt_prefault;

/* Start prefaulting, in order, with one thread per core and at most SGT_PREFAULT_THREADS. It keeps
 * what is written to the memory meanwhile. If threads cannot be started, or before Linux 5.14,
 * nothing happens: it is for speed alone. */
void sgt_prefault_begin(sgt_prefault *t, char *base, size_t size);
void sgt_prefault_end(sgt_prefault *t); /* Stop; the remaining pages are left alone. */

#endif
