#include "tests/train/ranks_fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct world world;

typedef struct seat {
    sgt_ranks r; /* first member: a pointer to it is cast to a pointer to its seat */
    world *w;
    void (*work)(void *ctx, sgt_ranks *r);
    void *ctx;
} seat;

typedef struct box { /* a message from one rank to another; the receiver empties it */
    const void *bytes;
    size_t n;
    int full;
} box;

struct world {
    pthread_mutex_t lock;
    pthread_cond_t news;
    seat seats[MOST_RANKS];
    uint32_t size, arrived, round;
    box boxes[MOST_RANKS][MOST_RANKS];
    /* pointer of the broadcast's root, set before a barrier and read by the other ranks after it */
    const void *lent;
    double parts[MOST_RANKS][64];
};

static int gone(sgt_error *err) { return sgt_fail(err, SGT_EIO, "a rank has given up"); }

/* Barrier: wait until every rank has called this, or a rank has given up. Call it with the lock
 * held. */
static int meet(world *w, const sgt_ranks *r, sgt_error *err)
{
    uint32_t round = w->round;
    if (++w->arrived == w->size) {
        w->arrived = 0;
        w->round++;
        pthread_cond_broadcast(&w->news);
    }
    while (w->round == round && !r->given_up) pthread_cond_wait(&w->news, &w->lock);
    return w->round == round ? gone(err) : SGT_OK;
}

static int barrier(sgt_ranks *r, sgt_error *err)
{
    world *w = ((seat *)r)->w;
    pthread_mutex_lock(&w->lock);
    int rc = meet(w, r, err);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int broadcast(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err)
{
    world *w = ((seat *)r)->w;
    pthread_mutex_lock(&w->lock);
    if (r->rank == root) w->lent = bytes;
    int rc = meet(w, r, err);
    if (rc == SGT_OK && r->rank != root) memcpy(bytes, w->lent, n);
    if (rc == SGT_OK) rc = meet(w, r, err);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static int sum(sgt_ranks *r, double *x, size_t n, sgt_error *err)
{
    world *w = ((seat *)r)->w;
    pthread_mutex_lock(&w->lock);
    memcpy(w->parts[r->rank], x, n * sizeof *x);
    int rc = meet(w, r, err);
    memset(x, 0, n * sizeof *x);
    for (uint32_t i = 0; i < w->size; i++)
        for (size_t j = 0; j < n; j++) x[j] += w->parts[i][j];
    if (rc == SGT_OK) rc = meet(w, r, err);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

/* Tell all ranks that this rank has given up. */
static void give_up(sgt_ranks *r, const sgt_error *why)
{
    world *w = ((seat *)r)->w;
    (void)why;
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = 0; i < w->size; i++)
        __atomic_store_n(&w->seats[i].r.given_up, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&w->news);
    pthread_mutex_unlock(&w->lock);
}

static int swap(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from,
                void *in, size_t in_bytes, sgt_error *err)
{
    world *w = ((seat *)r)->w;
    box *mine = &w->boxes[r->rank][to], *theirs = &w->boxes[from][r->rank];
    pthread_mutex_lock(&w->lock);
    *mine = (box){out, out_bytes, out_bytes > 0};
    pthread_cond_broadcast(&w->news);
    while (in_bytes && !theirs->full && !r->given_up) pthread_cond_wait(&w->news, &w->lock);
    int rc = in_bytes && !theirs->full ? gone(err) : SGT_OK;
    if (in_bytes && rc == SGT_OK) {
        if (theirs->n != in_bytes) abort();
        memcpy(in, theirs->bytes, in_bytes);
        theirs->full = 0;
        pthread_cond_broadcast(&w->news);
    }
    while (mine->full && !r->given_up) pthread_cond_wait(&w->news, &w->lock);
    if (mine->full) rc = gone(err);
    /* if no rank has fetched the message, withdraw it, because the caller may free it after
     * return */
    mine->full = 0;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static void *sit(void *ctx)
{
    seat *s = ctx;
    s->work(s->ctx, &s->r);
    return NULL;
}

void as_ranks(uint32_t size, void (*work)(void *ctx, sgt_ranks *r), void *ctx)
{
    pthread_t threads[MOST_RANKS];
    world w = {.size = size};
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.news, NULL);
    for (uint32_t i = 0; i < size; i++) {
        w.seats[i] = (seat){.w = &w, .work = work, .ctx = ctx};
        w.seats[i].r = (sgt_ranks){.rank = i,
                                   .size = size,
                                   .local = i,
                                   .here = size,
                                   .broadcast = broadcast,
                                   .sum = sum,
                                   .barrier = barrier,
                                   .give_up = give_up,
                                   .swap = swap};
    }
    for (uint32_t i = 0; i < size; i++)
        if (pthread_create(&threads[i], NULL, sit, &w.seats[i]) != 0) abort();
    for (uint32_t i = 0; i < size; i++) pthread_join(threads[i], NULL);
    pthread_cond_destroy(&w.news);
    pthread_mutex_destroy(&w.lock);
}
