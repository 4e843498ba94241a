/* ranks.c: the functions of ranks.h that ranks_shm.c and ranks_mpi.c share: set-up, and the order
 * of a step. */
#include "train/cpu/ranks_group.h"

#include <stdlib.h>
#include <string.h>

/* ---- a step ---- */

void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro)
{
    if (c->group) c->group->reducing = micro + 1 == c->shape.o.accum;
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
    while (g->ready < g->buckets) { /* the step had fewer micro-steps than shape.o.accum */
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
        uint64_t whole[15];
        double real[6];
    } first, mine = {{s->o.model.layers, s->o.model.channels, s->o.model.heads, s->o.model.vocab,
                      (uint64_t)s->o.model.untied, s->B, s->T, s->o.accum, (uint64_t)s->rounding,
                      s->format, s->o.seed, s->o.optim.kind, (uint64_t)s->o.optim.nesterov,
                      (uint64_t)s->bf16, (uint64_t)s->o.optim.bf16_moments},
                     {s->o.dropout, (double)s->o.optim.beta1, (double)s->o.optim.beta2,
                      (double)s->o.optim.momentum, (double)s->o.optim.weight_decay,
                      (double)s->o.optim.grad_clip}};
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
    g->buckets = s->o.model.layers + 2;
    g->rotate = s->o.optim.kind == SGT_MUON;
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
    if (rc < 0) return rc;
    sgt_cpu_divide(c->group, &c->shape.o.model, &c->update);
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
