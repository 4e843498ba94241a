/* comm_thread.c: the communication thread. One condition variable signals both a queued job and a
 * completed one. */
#include "train/cpu/comm_thread.h"

static void *work(void *ctx)
{
    sgt_comm_thread *t = ctx;
    pthread_mutex_lock(&t->lock);
    while (!t->stopping && t->rc == SGT_OK) {
        if (t->done == t->queued) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        uint64_t job = t->done;
        pthread_mutex_unlock(&t->lock);
        int rc = t->run(t->ctx, job, &t->err);
        pthread_mutex_lock(&t->lock);
        t->rc = rc;
        t->done++;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

int sgt_comm_thread_start(sgt_comm_thread *t, int (*run)(void *ctx, uint64_t job, sgt_error *err),
                          void *ctx, sgt_error *err)
{
    *t = (sgt_comm_thread){.run = run, .ctx = ctx};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->started = pthread_create(&t->thread, NULL, work, t) == 0;
    return t->started
               ? SGT_OK
               : sgt_fail(err, SGT_ENOMEM, "ranks: no memory or thread to swap gradients with");
}

void sgt_comm_thread_queue(sgt_comm_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->queued++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

int sgt_comm_thread_wait(sgt_comm_thread *t, sgt_error *err)
{
    pthread_mutex_lock(&t->lock);
    while (t->rc == SGT_OK && t->done < t->queued) pthread_cond_wait(&t->changed, &t->lock);
    int rc = t->rc;
    pthread_mutex_unlock(&t->lock);
    return rc < 0 ? sgt_fail(err, rc, "%s", t->err.text) : SGT_OK;
}

void sgt_comm_thread_stop(sgt_comm_thread *t)
{
    if (!t->started) return;
    pthread_mutex_lock(&t->lock);
    t->stopping = 1;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    t->started = 0;
}
