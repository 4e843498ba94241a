/* thread_pool.h: threads that call pread, so that several reads are in flight without io_uring. One
 * thread queues reads and takes them back in the order in which they end. */
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
    int result; /* bytes read, or a negative errno */
    struct sgt_thread_pool_job *next;
} sgt_thread_pool_job;

/* Start a pool. Returns NULL if out of memory. It works with fewer threads if some cannot be
 * started; with none, sgt_thread_pool_put does the reads itself. */
sgt_thread_pool *sgt_thread_pool_open(unsigned threads);
/* Take back every job first. NULL is fine. */
void sgt_thread_pool_close(sgt_thread_pool *c);

/* Queue a job, which the caller owns and must not move until it is taken back. */
void sgt_thread_pool_put(sgt_thread_pool *c, sgt_thread_pool_job *job);
/* Return a job that has ended. With `wait`, wait for one; otherwise NULL if none has ended yet. */
sgt_thread_pool_job *sgt_thread_pool_take(sgt_thread_pool *c, int wait);

#endif
