/* ranks.c: the part of ranks.h that both transports share: ownership, set-up, the order of a
 * step. */
#include "cpu/ranks_group.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 2048 /* floats added up at a time with more than two ranks */

/* ---- parts ---- */

/* Return the first tensor of a bucket, and in *n how many it has. */
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

/* Divide a bucket among the ranks as evenly as possible, with every part beginning at a piece. */
static void divide(const sgt_cpu_group *g, const sgt_model *m, const sgt_cpu_update *u,
                   size_t bucket)
{
    sgt_tensor t;
    size_t n, first = tensors_of(m, bucket, &n), ranks = g->r->size;
    sgt_model_tensor(m, first, &t);
    size_t begin = t.offset;
    sgt_model_tensor(m, first + n - 1, &t);
    size_t end = t.offset + t.count, *part = sgt_cpu_part_of(g, bucket, 0);
    for (size_t i = 0; i <= ranks; i++) part[i] = end;
    part[0] = begin;
    for (size_t i = u->piece_count; i-- > 0;) {
        size_t at = u->pieces[i].offset;
        if (at < begin || at >= end) continue;
        for (size_t r = 1; r <= (at - begin) * ranks / (end - begin); r++)
            if (part[r] > at) part[r] = at;
    }
}

/* Drop the other ranks' pieces. The flat arrays hold the buckets in reverse order. */
static void keep_own_pieces(const sgt_cpu_group *g, sgt_cpu_update *u)
{
    size_t n = 0, i = 0;
    for (size_t b = g->buckets; b-- > 0;) {
        const size_t *part = sgt_cpu_part_of(g, b, g->r->rank);
        size_t end = *sgt_cpu_part_of(g, b, g->r->size);
        for (; i < u->piece_count && u->pieces[i].offset < end; i++)
            if (u->pieces[i].offset >= part[0] && u->pieces[i].offset < part[1])
                u->pieces[n++] = u->pieces[i];
        g->end[b] = n;
    }
    u->piece_count = n;
}

uint32_t sgt_cpu_part_owner(const sgt_cpu_group *g, size_t at, size_t *n)
{
    for (size_t b = g->buckets; b-- > 0;) /* the embeddings first: they are looked up most often */
        for (uint32_t r = 0; r < g->r->size; r++) {
            const size_t *part = sgt_cpu_part_of(g, b, r);
            *n = part[1] - at;
            if (at >= part[0] && at < part[1]) return r;
        }
    *n = 1;
    return 0;
}

void sgt_cpu_add_up(const sgt_kernels *k, float *own, const float *const *x, size_t ranks, size_t n)
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

/* ---- a step ---- */

void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro)
{
    if (c->group) c->group->reducing = micro + 1 == c->shape.accum;
}

void sgt_cpu_ranks_ready(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    if (!g || !g->reducing) return;
    g->ready++;
    g->transport->ready(c);
}

void sgt_cpu_ranks_mid_block(sgt_cpu_backend *c)
{
    const sgt_cpu_group *g = c->group;
    if (g && g->reducing) g->transport->mid_block(c);
}

int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    double sums[SGT_CPU_SUMS] = {
        [SGT_CPU_LOSS] = c->step.loss_sum, [SGT_CPU_TARGETS] = (double)c->step.counted};
    uint64_t from = sgt_trace_begin(c->report.trace);
    while (g->ready < g->buckets) { /* the step had fewer micro-steps than shape.accum */
        g->reducing = 1;
        sgt_cpu_ranks_ready(c);
    }
    int rc = g->transport->reduce(c, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < c->update.piece_count; i++) sums[SGT_CPU_SQUARES] += c->buf.squares[i];
    if ((rc = g->transport->sum(g, sums, err)) < 0) return rc;
    c->step.loss_sum = sums[SGT_CPU_LOSS];
    c->step.counted = (uint64_t)sums[SGT_CPU_TARGETS];
    *squares = sums[SGT_CPU_SQUARES];
    sgt_trace_end(c->report.trace, from, SGT_TRACE_LOOP, "ranks", "gradients of all ranks");
    return SGT_OK;
}

int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    uint64_t from = sgt_trace_begin(c->report.trace);
    int rc = g->transport->gather(c, updated, err);
    sgt_trace_end(c->report.trace, from, SGT_TRACE_LOOP, "ranks", "parameters of all ranks");
    g->ready = 0;
    g->reducing = 0;
    return rc;
}

int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    int rc = SGT_OK;
    if (!g || what == SGT_PARAMETERS || (c->shape.sharing && what != SGT_GRADIENTS)) return SGT_OK;
    if (!c->step.fresh)
        return sgt_fail(err, SGT_EUSAGE, "backend: several ranks' state within a step");
    for (size_t n; count && rc == SGT_OK; at += n, to += n, count -= n) {
        uint32_t owner = sgt_cpu_part_owner(g, at, &n);
        if (n > count) n = count;
        if (n > SGT_CPU_CHUNK) n = SGT_CPU_CHUNK;
        rc = g->transport->get(g, owner, at, n, to, err);
    }
    return rc < 0 ? rc : g->transport->got(g, err);
}

/* ---- set-up ---- */

/* Fail unless every rank has the options of rank 0: nothing else would notice a difference. */
static int compare(const sgt_cpu_shape *s, sgt_ranks *r, sgt_error *err)
{
    struct {
        uint64_t whole[14];
        double real[6];
    } first,
        mine = {{s->model.layers, s->model.channels, s->model.heads, s->model.vocab,
                 (uint64_t)s->model.untied, s->B, s->T, s->accum, (uint64_t)s->rounding, s->format,
                 s->seed, s->optim.kind, (uint64_t)s->optim.nesterov, (uint64_t)s->bf16},
                {s->dropout, (double)s->optim.beta1, (double)s->optim.beta2,
                 (double)s->optim.momentum, (double)s->optim.weight_decay,
                 (double)s->optim.grad_clip}};
    memcpy(&first, &mine, sizeof mine);
    int rc = r->broadcast(r, &first, sizeof first, 0, err);
    if (rc == SGT_OK && memcmp(&first, &mine, sizeof mine) != 0)
        rc = sgt_fail(
            err, SGT_EUSAGE,
            "its options or its CPU are not those of rank 0 (all ranks run the same command)");
    return rc;
}

int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err)
{
    sgt_cpu_shape *s = &c->shape;
    if (!r) return SGT_OK;
    if (!r->share && !r->swap)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "CPU ranks on several machines: gradients go by MPI (mpirun or srun "
                        "instead of torchrun)");
    if (r->size > SGT_CPU_RANKS)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%u CPU ranks: at most %d", r->size, SGT_CPU_RANKS);
    sgt_cpu_group *g = c->group = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "backend");
    g->r = r;
    g->buckets = s->model.layers + 2;
    g->part = calloc(g->buckets * (r->size + 1), sizeof *g->part);
    g->end = calloc(g->buckets + 1, sizeof *g->end);
    g->shm.grads = calloc(r->size, sizeof *g->shm.grads);
    s->sharing = r->share != NULL;
    g->transport = s->sharing ? &sgt_cpu_shm : &sgt_cpu_mpi;
    s->ranks = r->size;
    s->rank = r->rank;
    return g->part && g->end && g->shm.grads ? SGT_OK : sgt_fail_memory(err, "backend");
}

int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err)
{
    const sgt_cpu_group *g = c->group;
    if (!g) return SGT_OK;
    int rc = compare(&c->shape, g->r, err);
    for (size_t b = 0; b < g->buckets; b++) divide(g, &c->shape.model, &c->update, b);
    if (rc < 0) return rc;
    keep_own_pieces(g, &c->update);
    return g->transport->open(c, err);
}

void sgt_cpu_ranks_close(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    if (!g) return;
    g->transport->close(g);
    free(g->shm.grads);
    free(g->part);
    free(g->end);
    free(g);
    c->group = NULL;
}
