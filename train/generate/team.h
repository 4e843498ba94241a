/* team.h: shares the many short loops of a run among threads. Each thread takes one task at a time,
 * and a barrier ends each loop.
 *
 *     #pragma omp parallel num_threads(n)
 *     {
 *         for (size_t i; (i = sgt_team_next(&team)) < tasks;) work(i);
 *         sgt_team_barrier(&team, omp_get_num_threads());
 *         for (...) ...
 *     }
 *
 * This replaces OpenMP's loops and barriers, because each token of GPT-2 needs a hundred of them,
 * and threads in an OpenMP barrier spin for milliseconds. If other programs use the cores, a thread
 * with work may have to wait for a core on which another thread only spins. With two threads on two
 * busy cores, OpenMP gave 5 tokens per second; one thread gave 21. Threads that wait in this
 * barrier soon give up their core. */
#ifndef SGT_TEAM_H
#define SGT_TEAM_H

#include <pthread.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* polls before a waiting thread sleeps: about 20 us, the usual difference between the times of
 * threads with equal work */
#define SGT_TEAM_SPINS 1000

typedef struct sgt_team {
    pthread_mutex_t lock;
    pthread_cond_t all_there;
    size_t next;      /* next task of the current loop */
    int there, round; /* there: threads that have arrived; round: barriers completed so far */
} sgt_team;

#define SGT_TEAM                                                                 \
    {                                                                            \
        .lock = PTHREAD_MUTEX_INITIALIZER, .all_there = PTHREAD_COND_INITIALIZER \
    }

static inline size_t sgt_team_next(sgt_team *t)
{
    return __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
}

/* Wait until all `size` threads have called this. Each thread's earlier writes are then visible to
 * all threads. */
static inline void sgt_team_barrier(sgt_team *t, int size)
{
    int round = __atomic_load_n(&t->round, __ATOMIC_RELAXED);
    /* acquires the other threads' writes; the release below publishes them */
    if (__atomic_add_fetch(&t->there, 1, __ATOMIC_ACQ_REL) == size) {
        t->there = 0;
        t->next = 0;
        pthread_mutex_lock(&t->lock);
        /* pairs with both acquiring loads of `round` below */
        __atomic_store_n(&t->round, round + 1, __ATOMIC_RELEASE);
        pthread_cond_broadcast(&t->all_there);
        pthread_mutex_unlock(&t->lock);
        return;
    }
    for (int i = 0; i < SGT_TEAM_SPINS; i++) {
        if (__atomic_load_n(&t->round, __ATOMIC_ACQUIRE) != round) return;
#if defined(__x86_64__)
        _mm_pause();
#endif
    }
    pthread_mutex_lock(&t->lock);
    while (__atomic_load_n(&t->round, __ATOMIC_ACQUIRE) == round)
        pthread_cond_wait(&t->all_there, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

#endif
