/* team.h: divides the many short loops of a decoder's forward pass among threads. Each thread takes
 * one task (loop iteration) at a time, and each loop ends with a barrier.
 *
 *     #pragma omp parallel num_threads(n)
 *     {
 *         for (size_t i; (i = sgt_team_next(&team)) < tasks;) work(i);
 *         sgt_team_barrier(&team, omp_get_num_threads());
 *         ...   // the next loop
 *     }
 *
 * OpenMP's own loops and barriers are not used. GPT-2 needs a hundred barriers per token, and a
 * thread that waits in an OpenMP barrier spins for milliseconds. If other programs use some of the
 * cores, a spinning thread may occupy the core that a working thread needs. On two cores that other
 * programs used, OpenMP generated 5 tokens per second with two threads, but 21 with one. In the
 * barrier of this file, a waiting thread soon sleeps. */
#ifndef SGT_TEAM_H
#define SGT_TEAM_H

#include <pthread.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Number of times that a waiting thread polls before it sleeps, which takes about 20 us. If threads
 * have equal work, the last thread usually arrives at the barrier within this time after the first
 * thread, so that no thread sleeps. */
#define SGT_TEAM_SPINS 1000

typedef struct sgt_team {
    pthread_mutex_t lock;
    pthread_cond_t all_there;
    size_t next; /* next task of the current loop */
    /* there: number of threads that have arrived at the current barrier; round: number of barriers
     * completed so far */
    int there, round;
} sgt_team;

#define SGT_TEAM                                                                 \
    {                                                                            \
        .lock = PTHREAD_MUTEX_INITIALIZER, .all_there = PTHREAD_COND_INITIALIZER \
    }

static inline size_t sgt_team_next(sgt_team *t)
{
    return __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
}

/* Wait until `size` threads have called this function. After that, each of these threads sees
 * everything that any of them wrote before its call. */
static inline void sgt_team_barrier(sgt_team *t, int size)
{
    int round = __atomic_load_n(&t->round, __ATOMIC_RELAXED);
    /* acquire: if this thread is the last to arrive, it must see what the other threads wrote
     * before they arrived. Its release store to `round` then makes those writes visible to all
     * threads. */
    if (__atomic_add_fetch(&t->there, 1, __ATOMIC_ACQ_REL) == size) {
        t->there = 0;
        t->next = 0;
        pthread_mutex_lock(&t->lock);
        /* release: pairs with the two acquire loads of `round` below */
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
