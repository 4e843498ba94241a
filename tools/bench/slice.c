/* slice.c: repeats a piece of work on several threads, timed from the first start to the last end;
 * and medians. */
#include <pthread.h>
#include <stdlib.h>

#include "loader/base/clock.h"
#include "tools/bench/bench.h"

/* seconds between queries of the clock, at least: a query takes 25 ns */
#define CLOCK_EVERY 20e-6

/* A gate at which all threads wait. It opens for all of them at once, or not at all if one could
 * not be started. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    enum { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP } state;
} gate;

static int wait_at(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (g->state == GATE_SHUT) pthread_cond_wait(&g->moved, &g->lock);
    int open = g->state == GATE_OPEN;
    pthread_mutex_unlock(&g->lock);
    return open;
}

static void move(gate *g, int open)
{
    pthread_mutex_lock(&g->lock);
    g->state = open ? GATE_OPEN : GATE_GIVEN_UP;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

typedef struct worker {
    const bench_slice *slice;
    bench_work *work;
    void *ctx;
    gate *gate;
    pthread_t id;
    int thread, rc;
    uint64_t units;
    double from, to;
    sgt_error err;
} worker;

static void *work_on(void *arg)
{
    worker *w = arg;
    const bench_slice *s = w->slice;
    uint64_t stride = 1, next = 1;
    if (!wait_at(w->gate)) return NULL;
    double last = w->from = w->to = sgt_now();
    while (s->most == 0 || w->units < s->most) {
        w->rc = w->work(w->ctx, w->thread,
                        s->first + (uint64_t)w->thread + w->units * (uint64_t)s->threads, &w->err);
        w->units++;
        if (w->rc < 0) return NULL;
        if (w->units < next && w->units != s->most) continue;
        w->to = sgt_now();
        if (w->to - w->from >= s->seconds) break;
        if (w->to - last < CLOCK_EVERY) stride *= 2;
        last = w->to;
        next = w->units + stride;
    }
    return NULL;
}

static int collect(const worker *w, int threads, uint64_t *units, double *seconds, sgt_error *err)
{
    double from = w[0].from, to = w[0].to;
    *units = 0;
    for (int t = 0; t < threads; t++) {
        if (w[t].rc < 0) return sgt_fail(err, w[t].rc, "%s", w[t].err.text);
        if (w[t].from < from) from = w[t].from;
        if (w[t].to > to) to = w[t].to;
        *units += w[t].units;
    }
    *seconds = to - from;
    return SGT_OK;
}

int bench_run(const bench_slice *s, bench_work *work, void *ctx, uint64_t *units, double *seconds,
              sgt_error *err)
{
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, GATE_SHUT};
    worker *w = calloc((size_t)s->threads, sizeof *w);
    if (!w) return sgt_fail(err, SGT_ENOMEM, "out of memory for %d threads", s->threads);
    for (int t = 0; t < s->threads; t++)
        w[t] = (worker){.slice = s, .work = work, .ctx = ctx, .gate = &g, .thread = t};
    int made = 1, rc = SGT_OK;
    while (made < s->threads && !pthread_create(&w[made].id, NULL, work_on, &w[made])) made++;
    move(&g, made == s->threads);
    if (made < s->threads)
        rc = sgt_fail(err, SGT_EIO, "thread %d of %d cannot be started (fewer --threads)", made + 1,
                      s->threads);
    else work_on(&w[0]);
    for (int t = 1; t < made; t++) pthread_join(w[t].id, NULL);
    if (rc == SGT_OK) rc = collect(w, s->threads, units, seconds, err);
    free(w);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *x, size_t n)
{
    if (!n) return 0;
    qsort(x, n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}
