/* prefault.h: threads that prefault memory ahead of the threads that fill it. At the first access
 * to a page the kernel zeroes it, and a virtual machine's host may have to find memory for it. That
 * can be slower than the disk; two threads take half the time of one.
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

/* Start prefaulting [base, base + size) in order, with one thread per core, at most
 * SGT_PREFAULT_THREADS. Data written to the memory meanwhile is kept. It only saves time: before
 * Linux 5.14, or if threads cannot be started, it does nothing. */
void sgt_prefault_begin(sgt_prefault *t, char *base, size_t size);
void sgt_prefault_end(sgt_prefault *t); /* stop; pages not reached yet stay as they are */

#endif
