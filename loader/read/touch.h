/* touch.h: memory taken into possession by threads, ahead of whoever fills it. The first touch of a page costs its
 * zeroing, and in a virtual machine perhaps the host's looking for it, which can be slower than the disk, and which two
 * threads have done in half the time.
 *
 *     sgt_touch t;
 *     sgt_touch_begin(&t, arena.base, arena.size);
 *     ... fill the memory, wherever ...
 *     sgt_touch_end(&t); */
#ifndef SGT_TOUCH_H
#define SGT_TOUCH_H

#include <pthread.h>
#include <stddef.h>

#define SGT_TOUCH_THREADS 4

typedef struct sgt_touch {
    char *base;
    size_t size, next; /* next: atomic, the first byte that no thread has taken on */
    int count;
    pthread_t threads[SGT_TOUCH_THREADS];
} sgt_touch;

/* A thread a core, SGT_TOUCH_THREADS at most, from the front to the end. What is written there meanwhile stays. Without
 * threads, or on kernels that cannot do this (before Linux 5.14), nothing happens: it is for speed alone. */
void sgt_touch_begin(sgt_touch *t, char *base, size_t size);
void sgt_touch_end(sgt_touch *t); /* what they have not come to by now is left */

#endif
