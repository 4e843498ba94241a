/* thread_pool.h: threads that call pread, so that several reads of ring.h are in flight without
 * io_uring. One thread queues reads and takes them back in the order in which they end. */
#ifndef SGT_THREAD_POOL_H
#define SGT_THREAD_POOL_H

#include "loader/read/ring.h"

/* A queue of reads; zeroed, it is empty. */
typedef struct sgt_read_list {
    sgt_ring_read *first, *last;
} sgt_read_list;

static inline void sgt_read_append(sgt_read_list *l, sgt_ring_read *d)
{
    d->next = NULL;
    if (l->first) l->last->next = d;
    else l->first = d;
    l->last = d;
}

/* Remove the first read and return it; NULL if there is none. */
static inline sgt_ring_read *sgt_read_shift(sgt_read_list *l)
{
    sgt_ring_read *d = l->first;
    if (d) l->first = d->next;
    return d;
}

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
