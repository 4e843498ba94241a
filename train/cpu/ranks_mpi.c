/* ranks_mpi.c: CPU ranks on several machines. A communication thread swaps gradients with every
 * other rank, bucket by bucket, while the backward pass continues. Parameters are swapped after the
 * update. */
#include "train/cpu/ranks_group.h"

#include <stdlib.h>

/* Return the number of floats in the longest part of a bucket. */
static size_t longest_part(const sgt_cpu_group *g, size_t bucket)
{
    size_t longest = 0;
    for (size_t r = 0; r < g->r->size; r++) {
        const size_t *part = sgt_cpu_part_of(g, bucket, r);
        if (part[1] - part[0] > longest) longest = part[1] - part[0];
    }
    return longest;
}

/* Return the offset in the flat arrays of the chunk that begins `at` floats into a rank's part. Set
 * *n to its length in floats, which may be 0. */
static size_t chunk(const sgt_cpu_group *g, size_t bucket, uint32_t rank, size_t at, size_t *n)
{
    const size_t *part = sgt_cpu_part_of(g, bucket, rank);
    size_t from = part[0] + at;
    *n = from >= part[1] ? 0 : part[1] - from < SGT_CPU_CHUNK ? part[1] - from : SGT_CPU_CHUNK;
    return from;
}

/* Reduce-scatter one chunk. Send each other rank this rank's gradients of that rank's part, and
 * receive its gradients of our part. Then add up all ranks' gradients of our part. */
static int reduce_chunk(sgt_cpu_backend *c, size_t bucket, size_t at, sgt_error *err)
{
    const sgt_cpu_group *g = c->group;
    sgt_ranks *r = g->r;
    size_t n, mine, own = chunk(g, bucket, r->rank, at, &mine);
    const float *x[SGT_CPU_RANKS];
    x[r->rank] = c->buf.grads + own;
    for (uint32_t k = 1; k < r->size; k++) {
        uint32_t to = (r->rank + k) % r->size, from = (r->rank + r->size - k) % r->size;
        size_t theirs = chunk(g, bucket, to, at, &n);
        float *room = g->mpi.received + from * SGT_CPU_CHUNK;
        int rc = r->swap(r, to, c->buf.grads + theirs, n * sizeof(float), from, room,
                         mine * sizeof(float), err);
        if (rc < 0) return rc;
        x[from] = room;
    }
    if (mine) sgt_cpu_add_up(c->shape.k, c->buf.grads + own, x, r->size, mine);
    return SGT_OK;
}

/* Run a job of the communication thread: jobs are the buckets of each step, in order. */
static int reduce_bucket(void *ctx, uint64_t job, sgt_error *err)
{
    sgt_cpu_backend *c = ctx;
    size_t bucket = job % c->group->buckets, longest = longest_part(c->group, bucket);
    int rc = SGT_OK;
    for (size_t at = 0; at < longest && rc == SGT_OK; at += SGT_CPU_CHUNK)
        rc = reduce_chunk(c, bucket, at, err);
    return rc;
}

static void ready(sgt_cpu_backend *c) { sgt_comm_thread_queue(&c->group->mpi.thread); }

static void mid_block(sgt_cpu_backend *c) { (void)c; }

static int reduce(sgt_cpu_backend *c, sgt_error *err)
{
    int rc = sgt_comm_thread_wait(&c->group->mpi.thread, err);
    if (rc == SGT_OK) sgt_cpu_squares(c, 1);
    return rc;
}

static int sum(sgt_cpu_group *g, double sums[SGT_CPU_SUMS], sgt_error *err)
{
    return g->r->sum(g->r, sums, SGT_CPU_SUMS, err);
}

/* All-gather one chunk: send this rank's parameters to every other rank, and receive theirs. */
static int gather_chunk(sgt_cpu_backend *c, size_t bucket, size_t at, sgt_error *err)
{
    const sgt_cpu_group *g = c->group;
    sgt_ranks *r = g->r;
    size_t mine, own = chunk(g, bucket, r->rank, at, &mine);
    for (uint32_t k = 1; k < r->size; k++) {
        uint32_t to = (r->rank + k) % r->size, from = (r->rank + r->size - k) % r->size;
        size_t n, theirs = chunk(g, bucket, from, at, &n);
        int rc = r->swap(r, to, c->buf.params + own, mine * sizeof(float), from,
                         c->buf.params + theirs, n * sizeof(float), err);
        if (rc < 0) return rc;
        if (n) sgt_cpu_take_weights(c, theirs, n);
    }
    return SGT_OK;
}

static int gather(sgt_cpu_backend *c, int updated, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t b = 0; updated && b < c->group->buckets; b++)
        for (size_t at = 0, longest = longest_part(c->group, b); at < longest && rc == SGT_OK;
             at += SGT_CPU_CHUNK)
            rc = gather_chunk(c, b, at, err);
    return rc;
}

static int get(sgt_cpu_group *g, uint32_t owner, size_t at, size_t n, float *to, sgt_error *err)
{
    (void)at;
    return g->r->broadcast(g->r, to, n * sizeof *to, owner, err);
}

static int got(sgt_cpu_group *g, sgt_error *err)
{
    (void)g, (void)err;
    return SGT_OK;
}

static int open_mpi(sgt_cpu_backend *c, sgt_error *err)
{
    sgt_cpu_mpi_state *m = &c->group->mpi;
    m->received = malloc(c->group->r->size * SGT_CPU_CHUNK * sizeof *m->received);
    if (!m->received)
        return sgt_fail(err, SGT_ENOMEM, "ranks: no memory or thread to swap gradients with");
    return sgt_comm_thread_start(&m->thread, reduce_bucket, c, err);
}

static void close_mpi(sgt_cpu_group *g)
{
    sgt_comm_thread_stop(&g->mpi.thread);
    free(g->mpi.received);
}

const sgt_cpu_transport sgt_cpu_mpi = {.open = open_mpi,
                                       .close = close_mpi,
                                       .ready = ready,
                                       .mid_block = mid_block,
                                       .reduce = reduce,
                                       .sum = sum,
                                       .gather = gather,
                                       .get = get,
                                       .got = got};
