/* comm_thread.h: the communication thread. It runs jobs 0, 1, 2, ... in order, concurrently with
 * the thread that queues them, and stops at the first failure.
 *
 *     sgt_comm_thread_start(&t, reduce_bucket, backend, &err);
 *     sgt_comm_thread_queue(&t);             // from here on, job 0 may run
 *     rc = sgt_comm_thread_wait(&t, &err);   // all jobs are done, or one has failed
 *     sgt_comm_thread_stop(&t);              // finishes the running job, drops the queued ones
 *
 * All calls must come from one thread. sgt_comm_thread_stop accepts a struct of zeros. */
#ifndef SGT_CPU_COMM_THREAD_H
#define SGT_CPU_COMM_THREAD_H

#include <pthread.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_comm_thread {
    int (*run)(void *ctx, uint64_t job, sgt_error *err);
    void *ctx;
    pthread_t thread;
    int started;
    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t changed;
    uint64_t queued, done; /* number of jobs queued and done since the start */
    int stopping, rc;
    sgt_error err;
} sgt_comm_thread;

int sgt_comm_thread_start(sgt_comm_thread *t, int (*run)(void *ctx, uint64_t job, sgt_error *err),
                          void *ctx, sgt_error *err);
void sgt_comm_thread_queue(sgt_comm_thread *t);
int sgt_comm_thread_wait(sgt_comm_thread *t, sgt_error *err);
void sgt_comm_thread_stop(sgt_comm_thread *t);

#endif
