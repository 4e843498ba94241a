/* ranks_shm.c: CPU ranks of one machine. Parameters, moments and all ranks' gradients lie in memory
 * that every rank maps. So a sum reads the other ranks' gradients in place, and an updated
 * parameter need not be sent. Ranks publish their progress in counters and wait on them with
 * futexes.
 *
 * Sums and updates are limited by memory, products by the cores, and a single core can use most of
 * the memory's bandwidth. So half of the ranks sum while the other half multiply. Even ranks sum
 * the complete buckets after each block, odd ranks in the middle of the next block. The remaining
 * buckets are summed after the backward pass. Updates are deferred to the next forward pass
 * (update.c). There odd ranks begin with all of their pieces; even ranks update each tensor when
 * they reach it. */
#include "train/cpu/ranks_group.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 100000000 /* interval of the check whether a rank has given up */

#define HUGE ((size_t)2 << 20)
#ifndef MADV_POPULATE_WRITE /* since Linux 5.14; EINVAL before */
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE /* since Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

/* ---- progress ---- */

/* Publish a progress counter, and wake the ranks that wait for it. */
static void publish(uint32_t *counter, uint32_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELEASE); /* pairs with has_reached's load */
    syscall(SYS_futex, counter, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void advance(sgt_cpu_group *g) { publish(&g->shm.progress[g->r->rank].now, ++g->shm.now); }

/* Return whether the counter has reached the value, and the counter itself in *now. The signed
 * difference stays right when counters wrap around. */
static int has_reached(const uint32_t *counter, uint32_t value, uint32_t *now)
{
    *now = __atomic_load_n(counter, __ATOMIC_ACQUIRE); /* pairs with publish's store */
    return (int32_t)(*now - value) >= 0;
}

static int all_have_reached(const sgt_cpu_group *g, uint32_t value)
{
    uint32_t now;
    for (uint32_t i = 0; i < g->r->size; i++)
        if (!has_reached(&g->shm.progress[i].now, value, &now)) return 0;
    return 1;
}

/* Wait until a counter of the rank has reached the value. Fail if a rank is lost. */
static int wait_for(const sgt_cpu_group *g, uint32_t rank, const uint32_t *counter, uint32_t value,
                    sgt_error *err)
{
    const struct timespec patience = {.tv_nsec = PATIENCE_NS};
    uint32_t now;
    while (!has_reached(counter, value, &now)) {
        if (sgt_ranks_lost(g->r))
            return sgt_fail(err, SGT_EIO, "ranks: gave up waiting for rank %u", rank);
        syscall(SYS_futex, counter, FUTEX_WAIT, now, &patience, NULL, 0);
    }
    return SGT_OK;
}

static int wait_for_all(const sgt_cpu_group *g, uint32_t value, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 0; i < g->r->size && rc == SGT_OK; i++)
        rc = wait_for(g, i, &g->shm.progress[i].now, value, err);
    return rc;
}

/* Wait until all ranks have called this. It also begins a new count of buckets (next_bucket): no
 * rank waits for a bucket across a barrier. */
static int barrier(sgt_cpu_group *g, sgt_error *err)
{
    advance(g);
    g->shm.step = g->shm.now;
    return wait_for_all(g, g->shm.now, err);
}

/* ---- reduce-scatter ---- */

/* Sum this rank's part of a bucket in place, and its squares while the sums are in cache. */
static void sum_bucket(sgt_cpu_backend *c, size_t bucket)
{
    const sgt_cpu_shape *s = &c->shape;
    const sgt_cpu_group *g = c->group;
    size_t ranks = g->r->size;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t i = g->end[bucket + 1]; i < g->end[bucket]; i++) {
        const sgt_cpu_piece *p = c->update.pieces + i;
        const float *x[SGT_CPU_RANKS];
        float *own = c->buf.grads + p->offset;
        for (size_t k = 0; k < ranks; k++) x[k] = g->shm.grads[k] + p->offset;
        if (ranks == 2) {
            c->buf.squares[i] = s->k->add_squares(own, x[1 - g->r->rank], p->count);
        } else {
            sgt_cpu_add_up(c->shape.k, own, x, ranks, p->count);
            c->buf.squares[i] = s->k->sum_squares(own, p->count);
        }
    }
}

/* Return the value of progress.now at which a rank's gradients of the next bucket to sum are
 * complete. */
static uint32_t next_bucket(const sgt_cpu_group *g)
{
    return g->shm.step + (uint32_t)g->shm.summed + 1;
}

/* Sum the buckets that are complete on all ranks. */
static void sum_complete(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    while (g->shm.summed < g->ready && all_have_reached(g, next_bucket(g)))
        sum_bucket(c, g->shm.summed++);
}

static void ready(sgt_cpu_backend *c)
{
    advance(c->group);
    if (c->group->r->rank % 2 == 0) sum_complete(c);
}

static void mid_block(sgt_cpu_backend *c)
{
    if (c->group->r->rank % 2) sum_complete(c);
}

static int reduce(sgt_cpu_backend *c, sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    int rc = SGT_OK;
    while (g->shm.summed < g->buckets && (rc = wait_for_all(g, next_bucket(g), err)) == SGT_OK)
        sum_bucket(c, g->shm.summed++);
    return rc;
}

static int sum(sgt_cpu_group *g, double sums[SGT_CPU_SUMS], sgt_error *err)
{
    const sgt_cpu_progress *all = g->shm.progress;
    memcpy(g->shm.progress[g->r->rank].sums, sums, sizeof all->sums);
    int rc = barrier(g, err);
    if (rc < 0) return rc;
    memset(sums, 0, SGT_CPU_SUMS * sizeof *sums);
    for (uint32_t i = 0; i < g->r->size; i++)
        for (int k = 0; k < SGT_CPU_SUMS; k++) sums[k] += all[i].sums[k];
    return SGT_OK;
}

/* ---- all-gather ---- */

/* A deferred update ends in the next forward pass, and needs no barrier here: every rank has
 * already updated the tensors that come first there, so it has read all ranks' sums. */
static int gather(sgt_cpu_backend *c, int updated, sgt_error *err)
{
    (void)updated;
    c->group->shm.summed = 0;
    return c->update.behind ? sgt_cpu_ranks_failed(c, err) : barrier(c->group, err);
}

static uint32_t block_tensors(const sgt_model *m) { return m->layers * SGT_BLOCK_TENSORS; }

void sgt_cpu_ranks_updated(sgt_cpu_backend *c, size_t pieces)
{
    sgt_cpu_group *g = c->group;
    if (!g || !c->update.behind) return;
    uint32_t n = g->shm.mine, last = block_tensors(&c->shape.o.model);
    while (n < last && c->blocks[n / SGT_BLOCK_TENSORS].shares[n % SGT_BLOCK_TENSORS] <= pieces)
        n++;
    if (pieces == c->update.piece_count) n = last + 1;
    if (n == g->shm.mine) return;
    g->shm.mine = n;
    publish(&g->shm.progress[g->r->rank].updated, g->shm.updates + n);
}

/* Wait until all ranks have updated n tensors. */
static void await(sgt_cpu_backend *c, uint32_t n)
{
    sgt_cpu_group *g = c->group;
    if (!g || !c->update.behind || g->shm.theirs >= n) return;
    for (uint32_t i = 0; i < g->r->size && g->shm.rc == SGT_OK; i++)
        g->shm.rc = wait_for(g, i, &g->shm.progress[i].updated, g->shm.updates + n, &g->shm.err);
    g->shm.theirs = n;
}

void sgt_cpu_ranks_await_tensor(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor)
{
    await(c, (uint32_t)((size_t)(l - c->blocks) * SGT_BLOCK_TENSORS + tensor + 1));
}

void sgt_cpu_ranks_await_all(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    await(c, block_tensors(&c->shape.o.model) + 1);
    if (!g || !c->update.behind) return;
    g->shm.updates += block_tensors(&c->shape.o.model) + 1;
    g->shm.mine = g->shm.theirs = 0;
}

void sgt_cpu_ranks_embedded(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    if (g && c->update.behind && g->shm.rc == SGT_OK) g->shm.rc = barrier(g, &g->shm.err);
}

int sgt_cpu_ranks_failed(const sgt_cpu_backend *c, sgt_error *err)
{
    const sgt_cpu_group *g = c->group;
    return g && g->shm.rc < 0 ? sgt_fail(err, g->shm.rc, "%s", g->shm.err.text) : SGT_OK;
}

const float *sgt_cpu_ranks_summed(const sgt_cpu_backend *c, size_t at, size_t *n)
{
    const sgt_cpu_group *g = c->group;
    return g ? g->shm.grads[sgt_cpu_part_owner(g, at, n)] + at : c->buf.grads + at;
}

/* ---- state in and out ---- */

int sgt_cpu_ranks_puts(sgt_cpu_backend *c, sgt_state what)
{
    sgt_cpu_group *g = c->group;
    if (!g || !c->shape.sharing || what == SGT_GRADIENTS) return 1;
    if (!g->shm.stale && g->shm.rc == SGT_OK) /* other ranks may still be evaluating */
        g->shm.rc = barrier(g, &g->shm.err);
    g->shm.stale = 1;
    return g->r->rank == 0;
}

int sgt_cpu_ranks_await_puts(sgt_cpu_backend *c, sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    if (!g || !g->shm.stale) return SGT_OK;
    g->shm.stale = 0;
    return barrier(g, err);
}

static int get(sgt_cpu_group *g, uint32_t owner, size_t at, size_t n, float *to, sgt_error *err)
{
    (void)err;
    memcpy(to, g->shm.grads[owner] + at, n * sizeof *to);
    return SGT_OK;
}

/* Wait for all ranks, because the owner's next step overwrites its gradients. */
static int got(sgt_cpu_group *g, sgt_error *err) { return barrier(g, err); }

/* ---- memory ---- */

void sgt_cpu_ranks_lay_out(sgt_cpu_backend *c)
{
    sgt_cpu_group *g = c->group;
    if (g && c->shape.sharing)
        g->shm.progress = sgt_arena_take(&c->buf.common, g->r->size, sizeof *g->shm.progress);
}

float *sgt_cpu_ranks_lay_out_grads(sgt_cpu_backend *c)
{
    const sgt_cpu_group *g = c->group;
    size_t flat = sgt_model_floats(&c->shape.o.model);
    for (uint32_t i = 0; i < g->r->size; i++)
        g->shm.grads[i] = sgt_arena_take(&c->buf.common, flat, sizeof(float));
    return g->shm.grads[g->r->rank];
}

/* Prefault the n bytes at `at`. Page faults would slow down the first step, and a lack of memory
 * would kill the process instead of being reported. Ask for huge pages explicitly (Linux 6.1): the
 * kernel's settings rarely allow them for shared memory otherwise. Return 0 or an errno. */
static int prefault_some(char *at, size_t n)
{
    for (size_t i = 0; i < n; i += HUGE)
        __atomic_fetch_or((unsigned char *)at + i, 0, __ATOMIC_RELAXED);
    if (madvise(at, n, MADV_COLLAPSE) == 0 || madvise(at, n, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno != EINVAL) return errno;
    for (size_t i = 0; i < n; i += 4096)
        __atomic_fetch_or((unsigned char *)at + i, 0, __ATOMIC_RELAXED);
    return 0;
}

/* Prefault the huge pages that begin between bytes `from` and `to`. */
static int prefault(const sgt_cpu_backend *c, size_t from, size_t to, sgt_error *err)
{
    const sgt_cpu_shm_state *s = &c->group->shm;
    int failed = 0;
    from = (from + HUGE - 1) / HUGE * HUGE;
    to = (to + HUGE - 1) / HUGE * HUGE;
    if (to > s->bytes) to = (s->bytes + 4095) / 4096 * 4096; /* the mapping ends at a page's end */
#pragma omp parallel for num_threads(c->shape.o.threads) schedule(dynamic)
    for (size_t at = from; at < to; at += 16 * HUGE) {
        int why = prefault_some((char *)s->memory + at, to - at < 16 * HUGE ? to - at : 16 * HUGE);
        /* relaxed, as it is read only after the loop */
        if (why) __atomic_store_n(&failed, why, __ATOMIC_RELAXED);
    }
    errno = failed;
    return failed ? sgt_fail_errno(err, "%zu MiB of memory for all ranks", s->bytes >> 20) : SGT_OK;
}

/* Map c->buf.common, which was measured with the gradients last. Each rank prefaults its own
 * gradients, so that they lie near its cores (NUMA), and an equal part of the rest. */
static int open_shm(sgt_cpu_backend *c, sgt_error *err)
{
    sgt_cpu_group *g = c->group;
    sgt_cpu_shm_state *s = &g->shm;
    sgt_arena one = {0};
    sgt_arena_take(&one, sgt_model_floats(&c->shape.o.model), sizeof(float));
    size_t rank = g->r->rank, ranks = g->r->size, own = one.used;
    size_t common = c->buf.common.used - ranks * own;
    s->bytes = c->buf.common.used < HUGE ? c->buf.common.used
                                         : (c->buf.common.used + HUGE - 1) / HUGE * HUGE;
    int rc = g->r->share(g->r, s->bytes, &s->memory, err);
    if (rc < 0) return rc;
    c->buf.common = (sgt_arena){.base = s->memory, .size = s->bytes};
    s->progress = s->memory; /* sgt_cpu_ranks_lay_out took the counters first */
    if ((rc = prefault(c, common * rank / ranks, common * (rank + 1) / ranks, err)) < 0 ||
        (rc = prefault(c, common + own * rank, common + own * (rank + 1), err)) < 0 ||
        (rc = barrier(g, err)) < 0)
        return rc;
    /* map the pages that other ranks prefaulted */
    (void)madvise(s->memory, s->bytes, MADV_POPULATE_WRITE);
    return SGT_OK;
}

static void close_shm(sgt_cpu_group *g)
{
    if (g->shm.memory) g->r->unshare(g->r, g->shm.memory, g->shm.bytes);
}

const sgt_cpu_transport sgt_cpu_shm = {.open = open_shm,
                                       .close = close_shm,
                                       .ready = ready,
                                       .mid_block = mid_block,
                                       .reduce = reduce,
                                       .sum = sum,
                                       .gather = gather,
                                       .get = get,
                                       .got = got};
