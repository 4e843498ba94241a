/* team.h: how threads share the many short loops of a run: tasks are taken one by one, and all meet
 * at a loop's end.
 *
 *     #pragma omp parallel num_threads(n)
 *     {
 *         for (size_t i; (i = sgt_team_take(&team)) < tasks;) work(i);
 *         sgt_team_barrier(&team, omp_get_num_threads());
 *         for (...) ...
 *     }
 *
 * In place of OpenMP's own loops and barriers, of which a token of GPT-2 needs a hundred: those
 * wait by spinning for milliseconds, and where another program has one of the cores, the thread
 * that is waited for then waits for the spinning one to leave its core (measured with two threads
 * on two busy cores: 5 tokens a second, and 21 with one thread). Here who waits gives up its core
 * soon. */
#ifndef SGT_TEAM_H
#define SGT_TEAM_H

#include <pthread.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* looks before it sleeps: some 20 us, what threads of equal work are apart */
#define SGT_TEAM_SPINS 1000

typedef struct sgt_team {
    pthread_mutex_t lock;
    pthread_cond_t all_there;
    size_t next;      /* task of the loop that runs */
    int there, round; /* threads that have met, and how many meetings there were */
} sgt_team;

#define SGT_TEAM                                                                 \
    {                                                                            \
        .lock = PTHREAD_MUTEX_INITIALIZER, .all_there = PTHREAD_COND_INITIALIZER \
    }

static inline size_t sgt_team_take(sgt_team *t)
{
    return __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
}

/* Waits until all `size` threads have called it: what each wrote before it, all see behind it. */
static inline void sgt_team_barrier(sgt_team *t, int size)
{
    int round = __atomic_load_n(&t->round, __ATOMIC_RELAXED);
    /* orders all others' work before the release */
    if (__atomic_add_fetch(&t->there, 1, __ATOMIC_ACQ_REL) == size) {
        t->there = 0;
        t->next = 0;
        pthread_mutex_lock(&t->lock);
        __atomic_store_n(&t->round, round + 1, __ATOMIC_RELEASE); /* pairs with both loads below */
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
