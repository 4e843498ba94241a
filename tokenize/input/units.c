/* units.c: worker threads process units of text in parallel. The threads take turns to read the
 * next unit from the feed into an entry of a ring buffer, and then process that unit. The caller
 * takes finished units from the ring buffer in the order of the text. */
#include "tokenize/input/units.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/thread.h"

typedef struct place {
    sgt_unit unit;
    /* 1 after a thread has processed the unit or has failed to do so; reset to 0 when the caller
     * has finished using the unit. Guarded by `lock`. */
    int done;
    /* result of reading and processing the unit: 0 on success, 1 if the feed has no more units, or
     * a negative SGT_E* */
    int rc;
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

    /* guards `feed`, `feed_ended` and `ticket`, the index of the next unit to be read */
    pthread_mutex_t feed_lock;
    uint64_t ticket;
    int feed_ended;

    pthread_mutex_t lock; /* guards `next` and the field `done` of all elements of `places` */
    pthread_cond_t changed;
    place *places; /* ring buffer of units: unit t is in places[t % place_count] */
    size_t place_count;
    /* index of the unit that the caller is using (if `given` is 1) or will get next (if `given` is
     * 0) */
    uint64_t next;
    /* Stop request that ends the worker threads. It must be set while `lock` is held. Otherwise, it
     * could be set between a thread's check of it and the thread's wait for `changed`, and the
     * thread would wait forever. */
    sgt_stop cancelled;

    thread *threads;
    size_t running;
    int given; /* 1 while the caller is using the unit with index `next`; otherwise 0 */
};

size_t sgt_units_threads(const sgt_corpus *c, int threads, size_t piece)
{
    const size_t want = threads ? (size_t)threads : (size_t)sgt_cpu_threads(1, 0);
    const uint64_t units = c->bytes / piece + c->count / SGT_UNIT_PARTS + 1;
    return !c->unsized && units < want ? (size_t)units : want;
}

/* Wait until the ring buffer's entry for the unit with index t is free, and return the entry.
 * Return NULL if the worker threads must end. */
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
        /* read the next unit from the feed into the ring buffer's entry for this unit */
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
    /* the ring buffer has one entry for the unit that the caller is using, and two for each thread:
     * one for the unit that the thread is processing, and one for a finished unit */
    s->place_count = 2 * threads + 1;
    s->places = calloc(s->place_count, sizeof *s->places);
    s->threads = calloc(threads, sizeof *s->threads);
    if (!s->places || !s->threads) return sgt_fail_memory(err, "threads");
    for (; s->running < threads; s->running++) {
        thread *t = &s->threads[s->running];
        t->s = s;
        t->worker = (char *)s->job.workers + s->running * s->job.worker_size;
        /* if the system allows no more threads, continue with the threads that are already
         * running */
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

/* Free the ring buffer's entry that holds the unit that the caller was using, so that a worker
 * thread can read another unit into the entry. */
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
