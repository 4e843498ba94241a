/* ranks.c: divides the parameters among the ranks, reduce-scatters gradients in a communication
 * thread, and all-gathers the updated parameters. */
#include "train/cpu/cpu_backend.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK ((size_t)1 << 20) /* most floats sent at a time */
#define MOST_RANKS 1024
/* Number of floats for which add_up sums the arrays of all ranks before it goes on to the next
 * floats, so that the sums stay in the L1 cache; used with three or more ranks. */
#define BLOCK 2048

struct sgt_cpu_group {
    sgt_ranks *r;
    size_t chunk; /* floats sent at a time */
    size_t buckets;
    /* (buckets, ranks + 1) array: for each bucket, the indexes in buf.params at which its parts
     * begin, in ascending order, followed by the index at which the bucket ends. Each rank owns one
     * part of each bucket. */
    size_t *part;
    /* 0: rank r owns part r of each bucket; 1: the assignment of parts to ranks rotates from bucket
     * to bucket. Muon needs the rotation, because its parts are whole matrices, whose updates
     * differ in cost: with two ranks, the first part of a bucket needs twice as much arithmetic as
     * the second. */
    int rotate;
    int reducing; /* 1: the last micro-step of a step is running */

    pthread_t thread; /* the communication thread */
    int started;
    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t changed;
    /* ready: number of buckets whose gradients are complete on this rank; summed: number of buckets
     * whose gradients the communication thread has summed over all ranks */
    size_t ready, summed;
    /* stopping: 1 if the communication thread must end, otherwise 0; rc: SGT_OK, or the error of
     * the communication thread, whose message is in err */
    int stopping, rc;
    sgt_error err;
};

/* ---- division of the parameters ---- */

/* Return the address of the indexes at which the parts of a bucket begin (see the field `part`). */
static size_t *parts_of(const sgt_cpu_group *g, size_t bucket)
{
    return g->part + bucket * (g->r->size + 1);
}

/* Return the address of two indexes in buf.params: those at which the part of `bucket` that belongs
 * to rank `rank` begins and ends. */
static const size_t *part_of(const sgt_cpu_group *g, size_t bucket, size_t rank)
{
    return parts_of(g, bucket) + (g->rotate ? (rank + bucket) % g->r->size : rank);
}

/* Return the index of the first tensor in a bucket, and set *n to the number of tensors in the
 * bucket. */
static size_t tensors_of(const sgt_model *m, size_t bucket, size_t *n)
{
    size_t layers = m->layers, tail = 2 + layers * SGT_BLOCK_TENSORS;
    if (bucket == 0) {
        *n = sgt_model_tensors(m) - tail;
        return tail;
    }
    *n = bucket <= layers ? SGT_BLOCK_TENSORS : 2;
    return bucket <= layers ? tail - bucket * SGT_BLOCK_TENSORS : 0;
}

/* Divide a bucket into one part for each rank, as evenly as possible. A part must begin at the
 * first float of a piece (the range of parameters that one optimizer task updates). It must not
 * begin inside a matrix that Muon updates. */
static void divide(const sgt_cpu_group *g, const sgt_model *m, const sgt_cpu_update *u,
                   size_t bucket)
{
    sgt_tensor t;
    size_t n, first = tensors_of(m, bucket, &n), ranks = g->r->size;
    sgt_model_tensor(m, first, &t);
    size_t begin = t.offset;
    sgt_model_tensor(m, first + n - 1, &t);
    size_t end = t.offset + t.count, *part = parts_of(g, bucket);
    for (size_t i = 0; i <= ranks; i++) part[i] = end;
    part[0] = begin;
    for (size_t i = u->piece_count; i-- > 0;) {
        size_t at = u->pieces[i].offset;
        if (at < begin || at >= end || (u->pieces[i].muon && !u->pieces[i].first)) continue;
        for (size_t r = 1; r <= (at - begin) * ranks / (end - begin); r++)
            if (part[r] > at) part[r] = at;
    }
}

/* Return the rank that owns the parameter at index `at` of buf.params. Set *n to the number of
 * floats from `at` to the end of the part that contains this parameter. */
static uint32_t owner_of(const sgt_cpu_group *g, size_t at, size_t *n)
{
    for (size_t b = 0; b < g->buckets; b++)
        for (uint32_t r = 0; r < g->r->size; r++) {
            const size_t *part = part_of(g, b, r);
            *n = part[1] - at;
            if (at >= part[0] && at < part[1]) return r;
        }
    *n = 1;
    return 0;
}

/* Remove from u->pieces all pieces that other ranks update. */
static void keep_own_pieces(const sgt_cpu_group *g, sgt_cpu_update *u)
{
    size_t own = 0, n;
    for (size_t i = 0; i < u->piece_count; i++)
        if (owner_of(g, u->pieces[i].offset, &n) == g->r->rank) u->pieces[own++] = u->pieces[i];
    u->piece_count = own;
}

/* Return the number of floats in the longest part of a bucket. */
static size_t longest_part(const sgt_cpu_group *g, size_t bucket)
{
    size_t longest = 0;
    for (size_t r = 0; r < g->r->size; r++) {
        const size_t *part = part_of(g, bucket, r);
        if (part[1] - part[0] > longest) longest = part[1] - part[0];
    }
    return longest;
}

/* Find a chunk of the part of `bucket` that belongs to rank `rank`: the chunk at float number `at`
 * of the part. Return the chunk's index in buf.params, and set *n to its number of floats:
 * g->chunk, fewer at the end of the part, or 0 after the end. */
static size_t find_chunk(const sgt_cpu_group *g, size_t bucket, uint32_t rank, size_t at, size_t *n)
{
    const size_t *part = part_of(g, bucket, rank);
    size_t from = part[0] + at;
    *n = from >= part[1] ? 0 : part[1] - from < g->chunk ? part[1] - from : g->chunk;
    return from;
}

/* ---- reduce-scatter ---- */

/* Set own[0..n-1] to the sum of the arrays x[0], x[1], ..., one from each rank. `own` must be one
 * of these arrays. The arrays are always added in the order of the ranks, because the order of a
 * sum changes its last bits. */
static void add_up(const sgt_kernels *k, float *own, const float *const *x, size_t ranks, size_t n)
{
    float sum[BLOCK];
    if (ranks == 2) { /* either order gives the same bits */
        k->add(own, x[0] == own ? x[1] : x[0], n);
        return;
    }
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        memcpy(sum, x[0] + at, m * sizeof *sum);
        for (size_t i = 1; i < ranks; i++) k->add(sum, x[i] + at, m);
        memcpy(own + at, sum, m * sizeof *sum);
    }
}

/* Reduce-scatter one chunk of a bucket. This rank sends to each other rank the gradients of the
 * part that the other rank owns, receives gradients of its own part from each of them, and adds
 * these up. */
static int reduce_chunk(sgt_cpu_backend *c, size_t bucket, size_t at, sgt_error *err)
{
    const sgt_cpu_group *g = c->group;
    sgt_ranks *r = g->r;
    size_t n, mine, own = find_chunk(g, bucket, r->rank, at, &mine);
    const float *x[MOST_RANKS];
    x[r->rank] = c->buf.grads + own;
    for (uint32_t k = 1; k < r->size; k++) {
        uint32_t to = (r->rank + k) % r->size, from = (r->rank + r->size - k) % r->size;
        size_t theirs = find_chunk(g, bucket, to, at, &n);
        float *room = c->buf.received + from * g->chunk;
        int rc = r->swap(r, to, c->buf.grads + theirs, n * sizeof(float), from, room,
                         mine * sizeof(float), err);
        if (rc < 0) return rc;
        x[from] = room;
    }
    if (mine) add_up(c->shape.k, c->buf.grads + own, x, r->size, mine);
    return SGT_OK;
}

static int reduce_bucket(sgt_cpu_backend *c, size_t bucket, sgt_error *err)
{
    size_t longest = longest_part(c->group, bucket);
    int rc = SGT_OK;
    for (size_t at = 0; at < longest && rc == SGT_OK; at += c->group->chunk)
        rc = reduce_chunk(c, bucket, at, err);
    return rc;
}

/* Main function of the communication thread: reduce-scatter each bucket when it is ready, until an
 * error occurs or the backend is closed. */
static void *reduce_ready_buckets(void *ctx)
{
    sgt_cpu_backend *c = ctx;
    sgt_cpu_group *g = c->group;
    pthread_mutex_lock(&g->lock);
    while (!g->stopping && g->rc == SGT_OK) {
        if (g->summed == g->ready) {
            pthread_cond_wait(&g->changed, &g->lock);
            continue;
        }
        size_t bucket = g->summed;
        pthread_mutex_unlock(&g->lock);
        int rc = reduce_bucket(c, bucket, &g->err);
        pthread_mutex_lock(&g->lock);
        g->rc = rc;
        g->summed++;
        pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro)
{
    if (c->group) c->group->reducing = micro + 1 == c->shape.o.accum;
}

void sgt_cpu_ranks_ready(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    if (!g || !g->reducing) return;
    pthread_mutex_lock(&g->lock);
    g->ready++;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

/* Wait until the communication thread has summed all buckets. Return its error if it fails. */
static int wait_for_sums(sgt_cpu_group *g, sgt_error *err)
{
    pthread_mutex_lock(&g->lock);
    /* Mark all buckets as ready, in case the backward pass has not done so. The backward pass marks
     * buckets only in the micro-step with index shape.o.accum - 1, which is missing if the step had
     * fewer micro-steps. */
    g->ready = g->buckets;
    pthread_cond_broadcast(&g->changed);
    while (g->rc == SGT_OK && g->summed < g->buckets) pthread_cond_wait(&g->changed, &g->lock);
    int rc = g->rc;
    pthread_mutex_unlock(&g->lock);
    return rc < 0 ? sgt_fail(err, rc, "%s", g->err.text) : SGT_OK;
}

int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err)
{
    enum { LOSS, TARGETS, SQUARES, SUMS };
    sgt_cpu_group *g = c->group;
    uint64_t from = sgt_trace_begin(c->report.trace);
    int rc = wait_for_sums(g, err);
    if (rc < 0) return rc;
    double sums[SUMS] = {[LOSS] = c->step.loss_sum,
                         [TARGETS] = (double)c->step.counted,
                         [SQUARES] = sgt_cpu_squares(c, 1)};
    if ((rc = g->r->sum(g->r, sums, SUMS, err)) < 0) return rc;
    c->step.loss_sum = sums[LOSS];
    c->step.counted = (uint64_t)sums[TARGETS];
    *squares = sums[SQUARES];
    sgt_trace_end(c->report.trace, from, SGT_TRACE_LOOP, "ranks", "gradients of all ranks");
    return SGT_OK;
}

/* ---- all-gather, and reading state ---- */

/* All-gather one chunk of a bucket: send the parameters of this rank's part to each other rank, and
 * receive the parameters of each other rank's part. */
static int gather_chunk(sgt_cpu_backend *c, size_t bucket, size_t at, sgt_error *err)
{
    const sgt_cpu_group *g = c->group;
    sgt_ranks *r = g->r;
    size_t mine, own = find_chunk(g, bucket, r->rank, at, &mine);
    for (uint32_t k = 1; k < r->size; k++) {
        uint32_t to = (r->rank + k) % r->size, from = (r->rank + r->size - k) % r->size;
        size_t n, theirs = find_chunk(g, bucket, from, at, &n);
        int rc = r->swap(r, to, c->buf.params + own, mine * sizeof(float), from,
                         c->buf.params + theirs, n * sizeof(float), err);
        if (rc < 0) return rc;
        if (n) sgt_cpu_take_weights(c, theirs, n);
    }
    return SGT_OK;
}

int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    uint64_t from = sgt_trace_begin(c->report.trace);
    int rc = SGT_OK;
    for (size_t b = 0; updated && b < g->buckets; b++)
        for (size_t at = 0, longest = longest_part(g, b); at < longest && rc == SGT_OK;
             at += g->chunk)
            rc = gather_chunk(c, b, at, err);
    sgt_trace_end(c->report.trace, from, SGT_TRACE_LOOP, "ranks", "parameters of all ranks");
    pthread_mutex_lock(&g->lock);
    g->ready = g->summed = 0;
    pthread_mutex_unlock(&g->lock);
    g->reducing = 0;
    return rc;
}

int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    int rc = SGT_OK;
    if (!g || what == SGT_PARAMETERS) return SGT_OK;
    if (!c->step.fresh)
        return sgt_fail(
            err, SGT_EUSAGE,
            "backend: the state of several ranks was asked for in the middle of a step");
    for (size_t n; count && rc == SGT_OK; at += n, to += n, count -= n) {
        uint32_t owner = owner_of(g, at, &n);
        if (n > count) n = count;
        if (n > CHUNK) n = CHUNK;
        rc = g->r->broadcast(g->r, to, n * sizeof *to, owner, err);
    }
    return rc;
}

/* ---- set-up ---- */

/* Return the number of floats that a rank sends at a time: CHUNK, or the number of floats in the
 * model if that is less. */
static size_t chunk_of(const sgt_cpu_shape *s)
{
    size_t flat = sgt_model_floats(&s->o.model);
    return flat < CHUNK ? flat : CHUNK;
}

size_t sgt_cpu_ranks_received(const sgt_cpu_shape *s) { return s->ranks * chunk_of(s); }

int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err)
{
    sgt_cpu_shape *s = &c->shape;
    if (!r) return SGT_OK;
    if (!r->swap)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "CPU ranks: they exchange gradients by MPI (start them with mpirun or srun "
                        "instead of torchrun)");
    if (r->size > MOST_RANKS)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%u CPU ranks: at most %d are supported", r->size,
                        MOST_RANKS);
    sgt_cpu_group *g = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "backend");
    g->r = r;
    g->chunk = chunk_of(s);
    g->buckets = s->o.model.layers + 2;
    g->rotate = s->o.optim.kind == SGT_MUON;
    g->part = calloc(g->buckets * (r->size + 1), sizeof *g->part);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    c->group = g;
    s->ranks = r->size;
    if (r->here) s->ranks_here = r->here;
    s->rank = r->rank;
    return g->part ? SGT_OK : sgt_fail_memory(err, "backend");
}

int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    if (!g) return SGT_OK;
    /* no rank may allocate memory before all ranks have checked how much memory is free */
    int rc = g->r->barrier(g->r, err);
    if (rc < 0) return rc;
    for (size_t b = 0; b < g->buckets; b++) divide(g, &c->shape.o.model, &c->update, b);
    keep_own_pieces(g, &c->update);
    g->started = pthread_create(&g->thread, NULL, reduce_ready_buckets, c) == 0;
    return g->started ? SGT_OK
                      : sgt_fail(err, SGT_ENOMEM,
                                 "ranks: cannot start the thread that exchanges gradients");
}

void sgt_cpu_ranks_close(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    if (!g) return;
    if (g->started) {
        pthread_mutex_lock(&g->lock);
        g->stopping = 1;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
    }
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    free(g->part);
    free(g);
    c->group = NULL;
}
