/* thread_pool.h: threads that call pread, so that several reads of ring.h are in flight without
 * io_uring. One thread queues reads and takes them back in the order in which they end. */
#ifndef SGT_THREAD_POOL_H
#define SGT_THREAD_POOL_H

#include "loader/read/ring.h"

typedef struct sgt_thread_pool sgt_thread_pool;

/* Start a pool. Returns NULL if out of memory. It works with fewer threads if some cannot be
 * started; with none, sgt_thread_pool_put does the reads itself. */
sgt_thread_pool *sgt_thread_pool_open(unsigned threads);
/* Take back every read first. NULL is fine. */
void sgt_thread_pool_close(sgt_thread_pool *c);

/* Queue a read of `asked` bytes at `from`, to follow the `done` bytes that have arrived. */
void sgt_thread_pool_put(sgt_thread_pool *c, sgt_ring_read *d);
/* Return a read that has ended, with its result. With `wait`, wait for one; otherwise NULL if none
 * has ended yet. */
sgt_ring_read *sgt_thread_pool_take(sgt_thread_pool *c, int wait);

#endif
