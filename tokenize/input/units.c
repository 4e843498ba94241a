/* units.c: threads read units of text from the feed one at a time, work on them in parallel, and
 * store them in a ring. The caller takes them from the ring in order. */
#include "tokenize/input/units.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/thread.h"

typedef struct place {
    sgt_unit unit;
    /* 1 once a thread has processed the unit, or failed to; 0 again once the caller has finished
     * with it; guarded by `lock` */
    int done;
    int rc; /* 0: the entry holds a unit; 1: the feed has ended; negative: an error */
    sgt_error err;
} place;

typedef struct thread {
    sgt_units *s;
    void *worker;
    pthread_t id;
} thread;

struct sgt_units {
    sgt_units_job job;
    sgt_text_feed *feed;

    pthread_mutex_t feed_lock; /* guards the feed and `ticket`, the index of its next unit */
    uint64_t ticket;
    int feed_ended;

    pthread_mutex_t lock; /* guards places[].done and `next` */
    pthread_cond_t changed;
    place *places; /* ring of units: unit t is in places[t % place_count] */
    size_t place_count;
    uint64_t next; /* index of the unit that the caller uses now (if `given` is 1) or gets next */
    /* Stop request that ends the threads. It must be set while `lock` is held. Otherwise a thread
     * could check it just before it is set, and then wait for `changed` forever. */
    sgt_stop cancelled;

    thread *threads;
    size_t running;
    int given; /* 1 if the caller has unit `next` */
};

size_t sgt_units_threads(const sgt_corpus *c, int threads, size_t piece)
{
    const size_t want = threads ? (size_t)threads : (size_t)sgt_cpu_threads(1, 0);
    const uint64_t units = c->bytes / piece + c->count / SGT_UNIT_PARTS + 1;
    return !c->unsized && units < want ? (size_t)units : want;
}

/* Wait until the ring entry for unit t is free, and return it. Return NULL if the threads are to
 * end. */
static place *wait_for_place(sgt_units *s, uint64_t t)
{
    pthread_mutex_lock(&s->lock);
    while (t - s->next >= s->place_count && !sgt_stopped(&s->cancelled))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return sgt_stopped(&s->cancelled) ? NULL : &s->places[t % s->place_count];
}

static void *work_on_units(void *arg)
{
    const thread *self = arg;
    sgt_units *s = self->s;
    for (;;) {
        /* read the feed's next unit into its entry of the ring */
        pthread_mutex_lock(&s->feed_lock);
        place *at = s->feed_ended ? NULL : wait_for_place(s, s->ticket);
        if (at) {
            at->rc = sgt_text_feed_next(s->feed, &at->unit, &at->err);
            s->feed_ended = at->rc != 0;
            s->ticket++;
        }
        pthread_mutex_unlock(&s->feed_lock);
        if (!at) return NULL;
        if (!at->rc) at->rc = sgt_unit_work(&at->unit, s->job.work, self->worker, &at->err);
        pthread_mutex_lock(&s->lock);
        at->done = 1;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
}

static int start_threads(sgt_units *s, sgt_error *err)
{
    const size_t threads = s->job.feed.threads;
    int failed = 0;
    /* one entry for the unit that the caller uses, and two per thread: one for the unit that the
     * thread works on, and one for a finished unit */
    s->place_count = 2 * threads + 1;
    s->places = calloc(s->place_count, sizeof *s->places);
    s->threads = calloc(threads, sizeof *s->threads);
    if (!s->places || !s->threads) return sgt_fail_memory(err, "threads");
    for (; s->running < threads; s->running++) {
        thread *t = &s->threads[s->running];
        t->s = s;
        t->worker = (char *)s->job.workers + s->running * s->job.worker_size;
        /* if the system allows no more threads, continue with those already running */
        if ((failed = sgt_thread_start(&t->id, work_on_units, t)) != 0) break;
    }
    if (s->running) return SGT_OK;
    errno = failed;
    return sgt_fail_errno(err, "cannot start a thread");
}

int sgt_units_start(sgt_units **out, const sgt_units_job *job, sgt_error *err)
{
    sgt_units *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, "threads");
    s->job = *job;
    s->job.feed.cancel = &s->cancelled;
    sgt_wait_init(&s->changed);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->feed_lock, NULL);
    int rc = sgt_text_feed_open(&s->feed, &s->job.feed, err);
    if (!rc) rc = start_threads(s, err);
    if (rc < 0) sgt_units_stop(s);
    else *out = s;
    return rc;
}

void sgt_units_stop(sgt_units *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    sgt_stop_request(&s->cancelled);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < s->running; i++) pthread_join(s->threads[i].id, NULL);
    for (size_t i = 0; s->places && i < s->place_count; i++) sgt_unit_free(&s->places[i].unit);
    sgt_text_feed_close(s->feed);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->feed_lock);
    free(s->threads);
    free(s->places);
    free(s);
}

/* Free the ring entry of the unit that the caller got last, so that a worker thread can fill it
 * with another unit. */
static void give_back(sgt_units *s)
{
    place *at = &s->places[s->next % s->place_count];
    if (!s->given) return;
    sgt_unit_trim(&at->unit);
    pthread_mutex_lock(&s->lock);
    at->done = s->given = 0;
    s->next++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int sgt_units_next(sgt_units *s, sgt_unit **u, sgt_error *err)
{
    const sgt_stop *stop = s->job.feed.reading.o->stop;
    give_back(s);
    place *at = &s->places[s->next % s->place_count];
    pthread_mutex_lock(&s->lock);
    while (!at->done && !sgt_stopped(stop)) sgt_wait(&s->changed, &s->lock, 100);
    pthread_mutex_unlock(&s->lock);
    if (sgt_stopped(stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
    if (at->rc < 0 && err) *err = at->err;
    if (at->rc) return at->rc;
    s->given = 1;
    *u = &at->unit;
    return SGT_OK;
}
