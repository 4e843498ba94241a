/* team.h: divides the many short loops of a decoder run among threads. Each thread takes one task
 * at a time, and each loop ends with a barrier.
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
 * cores, a thread that has work may wait for a core that another thread occupies only by spinning.
 * With two threads on two busy cores, OpenMP gave 5 tokens per second, but one thread gave 21. A
 * thread that waits in this barrier soon sleeps. */
#ifndef SGT_TEAM_H
#define SGT_TEAM_H

#include <pthread.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Number of times that a waiting thread polls before it sleeps. So many polls take about 20 us.
 * When threads have equal work, the last one usually arrives within this time after the first, and
 * nobody sleeps. */
#define SGT_TEAM_SPINS 1000

typedef struct sgt_team {
    pthread_mutex_t lock;
    pthread_cond_t all_there;
    size_t next; /* next task of the current loop */
    /* there: number of threads that have arrived at the barrier; round: number of barriers
     * completed */
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

/* Wait until all `size` threads have called this function. Then all earlier writes of these threads
 * are visible to each of them. */
static inline void sgt_team_barrier(sgt_team *t, int size)
{
    int round = __atomic_load_n(&t->round, __ATOMIC_RELAXED);
    /* acquire: this thread, the last one, must see what the threads that arrived before it have
     * written; its release store to `round` below then makes all of that visible to every thread */
    if (__atomic_add_fetch(&t->there, 1, __ATOMIC_ACQ_REL) == size) {
        t->there = 0;
        t->next = 0;
        pthread_mutex_lock(&t->lock);
        /* pairs with the two acquire loads of `round` below */
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
