/* prefault.h: memory taken into possession by threads, ahead of whoever fills it. The first touch
 * of a page costs its zeroing, and in a virtual machine perhaps the host's looking for it, which
 * can be slower than the disk, and which two threads have done in half the time.
 *
 *     sgt_prefault t;
 *     sgt_prefault_begin(&t, arena.base, arena.size);
 *     ... fill the memory, wherever ...
 *     sgt_prefault_end(&t); */
#ifndef SGT_PREFAULT_H
#define SGT_PREFAULT_H

#include <pthread.h>
#include <stddef.h>

#define SGT_TOUCH_THREADS 4

typedef struct sgt_prefault {
    char *base;
    size_t size, next; /* next: atomic, the first byte that no thread has taken on */
    int count;
    pthread_t threads[SGT_TOUCH_THREADS];
} sgt_prefault;

/* A thread a core, SGT_TOUCH_THREADS at most, from the front to the end. What is written there
 * meanwhile stays. Without threads, or on kernels that cannot do this (before Linux 5.14), nothing
 * happens: it is for speed alone. */
void sgt_prefault_begin(sgt_prefault *t, char *base, size_t size);
void sgt_prefault_end(sgt_prefault *t); /* what they have not come to by now is left */

#endif
