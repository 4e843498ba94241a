/* thread_pool.h: threads that pread, so that several reads are in flight where there is no
 * io_uring. One thread puts reads and takes them back, in the order in which they end. */
#ifndef SGT_THREAD_POOL_H
#define SGT_THREAD_POOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_thread_pool sgt_thread_pool;

typedef struct sgt_thread_pool_job {
    int fd;
    void *to;
    size_t bytes;
    uint64_t at;
    int result; /* bytes, or a negative errno */
    struct sgt_thread_pool_job *next;
} sgt_thread_pool_job;

/* NULL: out of memory. Threads that cannot be started are done without; where none can, `put` reads
 * by itself. */
sgt_thread_pool *sgt_thread_pool_open(unsigned threads);
/* when every job has been taken back; NULL is fine */
void sgt_thread_pool_close(sgt_thread_pool *c);

/* the caller's, until it is taken back */
void sgt_thread_pool_put(sgt_thread_pool *c, sgt_thread_pool_job *job);
/* one that has ended; NULL: none has yet */
sgt_thread_pool_job *sgt_thread_pool_take(sgt_thread_pool *c, int wait);

#endif
