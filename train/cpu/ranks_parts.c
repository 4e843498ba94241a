/* ranks_parts.c: decides which rank owns which part of a bucket, and adds up all ranks'
 * gradients. */
#include "train/cpu/ranks_group.h"

#include <string.h>

#define BLOCK 2048 /* floats added up at a time with more than two ranks */

/* Return the index of a bucket's first tensor, and in *n how many tensors it has. */
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

/* Divide a bucket among the ranks as evenly as possible, with every part beginning at a piece, and
 * none within a matrix that Muon updates. */
static void divide(const sgt_cpu_group *g, const sgt_model *m, const sgt_cpu_update *u,
                   size_t bucket)
{
    sgt_tensor t;
    size_t n, first = tensors_of(m, bucket, &n), ranks = g->r->size;
    sgt_model_tensor(m, first, &t);
    size_t begin = t.offset;
    sgt_model_tensor(m, first + n - 1, &t);
    size_t end = t.offset + t.count, *part = sgt_cpu_parts(g, bucket);
    for (size_t i = 0; i <= ranks; i++) part[i] = end;
    part[0] = begin;
    for (size_t i = u->piece_count; i-- > 0;) {
        size_t at = u->pieces[i].offset;
        if (at < begin || at >= end || (u->pieces[i].muon && !u->pieces[i].first)) continue;
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
        size_t end = sgt_cpu_parts(g, b)[g->r->size];
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

void sgt_cpu_divide(sgt_cpu_group *g, const sgt_model *m, sgt_cpu_update *u)
{
    for (size_t b = 0; b < g->buckets; b++) divide(g, m, u, b);
    keep_own_pieces(g, u);
}
