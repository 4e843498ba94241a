/* thread_pool.c: two lists under one lock: reads to do, and reads done. */
#include "loader/read/thread_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/base/thread.h"

struct sgt_thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t wanted, ended;
    sgt_read_list waiting, done;
    int closing;
    unsigned running;
    pthread_t threads[];
};

static void read_one(sgt_ring_read *d)
{
    ssize_t got = pread(d->fd, d->to + d->done, d->asked, (off_t)d->from);
    d->result = got < 0 ? -errno : (int)got;
}

static void *work(void *arg)
{
    sgt_thread_pool *c = arg;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        sgt_ring_read *d;
        while (!(d = sgt_read_shift(&c->waiting)) && !c->closing)
            pthread_cond_wait(&c->wanted, &c->lock);
        if (!d) break;
        pthread_mutex_unlock(&c->lock);
        read_one(d);
        pthread_mutex_lock(&c->lock);
        sgt_read_append(&c->done, d);
        pthread_cond_signal(&c->ended);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

sgt_thread_pool *sgt_thread_pool_open(unsigned threads)
{
    sgt_thread_pool *c = calloc(1, sizeof *c + threads * sizeof *c->threads);
    if (!c) return NULL;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wanted, NULL);
    pthread_cond_init(&c->ended, NULL);
    while (c->running < threads && sgt_thread_start(&c->threads[c->running], work, c) == 0)
        c->running++;
    return c;
}

void sgt_thread_pool_close(sgt_thread_pool *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->lock);
    c->closing = 1;
    pthread_cond_broadcast(&c->wanted);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->running; i++) pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->wanted);
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void sgt_thread_pool_put(sgt_thread_pool *c, sgt_ring_read *d)
{
    if (!c->running) read_one(d);
    pthread_mutex_lock(&c->lock);
    sgt_read_append(c->running ? &c->waiting : &c->done, d);
    if (c->running) pthread_cond_signal(&c->wanted);
    pthread_mutex_unlock(&c->lock);
}

sgt_ring_read *sgt_thread_pool_take(sgt_thread_pool *c, int wait)
{
    pthread_mutex_lock(&c->lock);
    sgt_ring_read *d;
    while (!(d = sgt_read_shift(&c->done)) && wait) pthread_cond_wait(&c->ended, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return d;
}
