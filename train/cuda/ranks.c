/* ranks.c: a training step on several GPUs. Each rank processes different rows. In the last
 * micro-step of a step, while the backward pass continues, NCCL reduce-scatters each bucket (group
 * of gradients) as soon as its gradients are complete. As in ZeRO-1, each rank owns a share of the
 * parameters, stores master parameters and moments only for this share, and updates only this
 * share. Then the ranks all-gather the working copies of the parameters.
 *
 * All NCCL calls are on one stream, in the order of the backward pass. Events make this stream and
 * the compute stream wait for each other, so that CUDA graphs capture the calls. This code has not
 * yet been run on several GPUs. In tests, a replacement of NCCL connects the processes
 * (tests/kernels/host/nccl.cpp). NCCL chooses the order in which it adds numbers; the order is the
 * same in every run on the same machines and links. */
#include <stdlib.h>

#include "kernels/cuda/nccl.h"
#include "train/cuda/cuda_backend.h"
#include "train/cuda/self_check.h"

struct sgt_cuda_group {
    const sgt_nccl *nccl;
    sgt_nccl_comm comm;
    sgt_cuda_stream stream;
    sgt_cuda_event ready, done;
    int reducing; /* 1: the host is enqueuing the last micro-step of a step; otherwise 0 */
};

/* ---- set-up ---- */

static int refused(const sgt_cuda_backend *c, const char *what, int code, sgt_error *err)
{
    const sgt_nccl *n = c->group->nccl;
    char why[256];
    return sgt_fail(err, SGT_EIO, "NCCL: %s: %s (%s)", what, n->error_string(code),
                    sgt_printable(why, sizeof why, n->last_error(NULL)));
}

int sgt_cuda_ranks_follow(const sgt_cuda_backend *c, void *choice, size_t n, sgt_error *err)
{
    return c->group ? c->o.ranks->broadcast(c->o.ranks, choice, n, 0, err) : SGT_OK;
}

static int meet(sgt_cuda_backend *c, sgt_error *err)
{
    struct sgt_cuda_group *g = c->group;
    sgt_nccl_id id = {{0}};
    int code = c->shape.rank == 0 ? g->nccl->unique_id(&id) : 0;
    if (code) return refused(c, "an id for the ranks", code, err);
    int rc = sgt_cuda_ranks_follow(c, &id, sizeof id, err);
    if (rc < 0) return rc;
    code = g->nccl->comm_init_rank(&g->comm, (int)c->shape.ranks, id, (int)c->shape.rank);
    return code ? refused(c, "joining the ranks", code, err) : SGT_OK;
}

int sgt_cuda_ranks_open(sgt_cuda_backend *c, sgt_error *err)
{
    if (c->shape.ranks == 1) return SGT_OK;
    int rc = sgt_check_refuse(sgt_verdict_out(c->o.verdicts, SGT_CHECK_NCCL), "NCCL: ", err);
    if (rc < 0) return rc;
    struct sgt_cuda_group *g = c->group = calloc(1, sizeof *g);
    if (!g) return sgt_fail_memory(err, "backend");
    rc = sgt_cuda_stream_new(&g->stream, err);
    if (rc == SGT_OK) rc = sgt_cuda_event_new(&g->ready, 0, err);
    if (rc == SGT_OK) rc = sgt_cuda_event_new(&g->done, 0, err);
    if (rc == SGT_OK && !(g->nccl = sgt_nccl_load(err))) rc = SGT_EUNSUPPORTED;
    return rc == SGT_OK ? meet(c, err) : rc;
}

/* Disconnect from the other ranks. If a rank has failed, abort NCCL's communicator, because its
 * calls would otherwise wait for that rank forever. On a faulty device, even the abort may hang; in
 * that case, the program's monitoring of its ranks (ranks.h) ends the process. */
void sgt_cuda_ranks_leave(sgt_cuda_backend *c)
{
    struct sgt_cuda_group *g = c->group;
    if (!g) return;
    if (g->comm && c->o.ranks->given_up) g->nccl->comm_abort(g->comm);
    else if (g->comm) g->nccl->comm_destroy(g->comm);
    sgt_cuda_event_free(g->ready);
    sgt_cuda_event_free(g->done);
    sgt_cuda_stream_free(g->stream);
    free(g);
    c->group = NULL;
}

/* ---- work enqueued on the streams ---- */

/* `enter` makes NCCL's stream wait for the work enqueued on the compute stream so far. Call it
 * before NCCL reads results of that work. `leave` makes the compute stream wait for NCCL's stream.
 * Call it before enqueuing work that reads NCCL's results. */
static void enter(sgt_cuda_backend *c)
{
    sgt_cuda_record(c->group->ready, c->queue.compute);
    sgt_cuda_wait(c->group->stream, c->group->ready);
}

static void leave(sgt_cuda_backend *c)
{
    sgt_cuda_record(c->group->done, c->group->stream);
    sgt_cuda_wait(c->queue.compute, c->group->done);
}

static void check(const char *what, int code)
{
    if (code) sgt_cuda_note_failure(what, code);
}

/* Return the number of elements of a bucket that each rank owns. Set *at to the offset, in this
 * rank's own arrays (own_grads, params, ...), of the elements that this rank owns. */
static size_t part(const sgt_cuda_backend *c, size_t bucket, size_t *at)
{
    *at = c->flat.bucket_at[bucket] / c->shape.ranks;
    return (c->flat.bucket_at[bucket + 1] - c->flat.bucket_at[bucket]) / c->shape.ranks;
}

int sgt_cuda_ranks_last(const sgt_cuda_backend *c, uint32_t micro)
{
    return c->group && micro + 1 == (c->o.accum ? c->o.accum : 1);
}

void sgt_cuda_ranks_begin(sgt_cuda_backend *c) { c->group->reducing = 1; }

void sgt_cuda_ranks_reduce(sgt_cuda_backend *c, size_t bucket)
{
    struct sgt_cuda_group *g = c->group;
    size_t at, n;
    if (!g || !g->reducing) return;
    n = part(c, bucket, &at);
    enter(c);
    check("ncclReduceScatter",
          g->nccl->reduce_scatter(c->flat.grads + c->flat.bucket_at[bucket], c->flat.own_grads + at,
                                  n, SGT_NCCL_FLOAT32, SGT_NCCL_SUM, g->comm, g->stream));
    sgt_cuda_launched(g->stream, "ncclReduceScatter (%zu numbers a rank)", n);
}

void sgt_cuda_ranks_end(sgt_cuda_backend *c)
{
    c->group->reducing = 0;
    leave(c);
}

/* Sum the loss, the number of targets and the squared gradient norm over all ranks. If a gradient
 * is infinite or NaN on one rank, the sum is infinite or NaN on every rank, so that all ranks skip
 * the update. */
void sgt_cuda_ranks_norm(sgt_cuda_backend *c)
{
    struct sgt_cuda_group *g = c->group;
    enter(c);
    check("ncclAllReduce",
          g->nccl->all_reduce(&c->buf.control->loss, &c->buf.control->loss, 3, SGT_NCCL_FLOAT64,
                              SGT_NCCL_SUM, g->comm, g->stream)); /* loss, targets, squares */
    sgt_cuda_launched(g->stream, "ncclAllReduce (loss, targets and squares)");
    leave(c);
}

void sgt_cuda_ranks_share(sgt_cuda_backend *c, int forget)
{
    static const int types[] = {
        [SGT_F32] = SGT_NCCL_FLOAT32, [SGT_BF16] = SGT_NCCL_BFLOAT16, [SGT_F16] = SGT_NCCL_FLOAT16};
    struct sgt_cuda_group *g = c->group;
    const unsigned char *from = c->flat.own_copy ? c->flat.own_copy : (const void *)c->flat.params;
    enter(c);
    check("ncclGroupStart", g->nccl->group_start());
    for (size_t b = 0; b < sgt_cuda_buckets(c); b++) {
        size_t at, n = part(c, b, &at);
        check("ncclAllGather", g->nccl->all_gather(from + at * c->shape.width,
                                                   (unsigned char *)c->flat.copy +
                                                       c->flat.bucket_at[b] * c->shape.width,
                                                   n, types[c->shape.type], g->comm, g->stream));
    }
    if (c->flat.vectors) {
        size_t at, n = part(c, sgt_cuda_bucket_vectors(c), &at);
        check("ncclAllGather", g->nccl->all_gather(c->flat.params + at, c->flat.vectors, n,
                                                   SGT_NCCL_FLOAT32, g->comm, g->stream));
    }
    check("ncclGroupEnd", g->nccl->group_end());
    sgt_cuda_launched(g->stream, "ncclAllGather (the parameters, %zu buckets)",
                      sgt_cuda_buckets(c));
    if (forget) sgt_cuda_zero(c->queue.compute, c->flat.grads, c->flat.count * sizeof(float));
    leave(c);
}

void sgt_cuda_ranks_gather_steps(sgt_cuda_backend *c)
{
    struct sgt_cuda_group *g = c->group;
    enter(c);
    check("ncclGroupStart", g->nccl->group_start());
    for (size_t b = SGT_BUCKET_BLOCKS; b < SGT_BUCKET_BLOCKS + c->shape.L; b++) {
        size_t at, n = part(c, b, &at);
        check("ncclAllGather",
              g->nccl->all_gather(c->flat.own_grads + at, c->flat.grads + c->flat.bucket_at[b], n,
                                  SGT_NCCL_FLOAT32, g->comm, g->stream));
    }
    check("ncclGroupEnd", g->nccl->group_end());
    sgt_cuda_launched(g->stream, "ncclAllGather (Muon's steps, %zu buckets)", c->shape.L);
    leave(c);
}

/* ---- state in and out ---- */

/* A range of the complete flat array (the array that a single rank would have). All of the range
 * belongs to one rank, its owner:
 *   rank  index of the owner
 *   at    index of the range's first float in the owner's array, which has only what it owns
 *   n     number of floats in the range */
typedef struct piece {
    size_t rank, at, n;
} piece;

/* Return the longest range that begins at offset `at` of the complete flat array, belongs to a
 * single owner, and has <= `count` floats. */
static piece first_piece(const sgt_cuda_backend *c, size_t at, size_t count)
{
    size_t bucket = 0, begin;
    while (c->flat.bucket_at[bucket + 1] <= at) bucket++;
    size_t n = part(c, bucket, &begin), inside = at - c->flat.bucket_at[bucket];
    piece p = {.rank = inside / n, .at = begin + inside % n, .n = n - inside % n};
    if (p.n > count) p.n = count;
    return p;
}

int sgt_cuda_ranks_put(sgt_cuda_backend *c, float *state, size_t at, size_t count,
                       const float *from, sgt_error *err)
{
    int rc = SGT_OK;
    for (piece p; count && rc == SGT_OK; at += p.n, from += p.n, count -= p.n) {
        p = first_piece(c, at, count);
        if (p.rank == c->shape.rank) rc = sgt_cuda_stage(c, state + p.at, NULL, from, p.n, err);
    }
    return rc;
}

/* Copy `count` floats of a state to `to` on every rank. The owner of each range of floats
 * broadcasts the range to the memory of the logits, which is unused between micro-steps. From
 * there, each rank copies the range to `to`. */
int sgt_cuda_ranks_get(sgt_cuda_backend *c, const float *state, size_t at, size_t count, float *to,
                       sgt_error *err)
{
    struct sgt_cuda_group *g = c->group;
    size_t room = c->shape.N * c->shape.ldv * c->shape.width / sizeof(float);
    int rc = SGT_OK;
    for (piece p; count && rc == SGT_OK; at += p.n, to += p.n, count -= p.n) {
        p = first_piece(c, at, count < room ? count : room);
        enter(c);
        check("ncclBroadcast",
              g->nccl->broadcast(p.rank == c->shape.rank ? state + p.at : c->buf.logits,
                                 c->buf.logits, p.n, SGT_NCCL_FLOAT32, (int)p.rank, g->comm,
                                 g->stream));
        sgt_cuda_launched(g->stream, "ncclBroadcast (%zu numbers)", p.n);
        leave(c);
        rc = sgt_cuda_stage(c, c->buf.logits, to, NULL, p.n, err);
    }
    return rc;
}
