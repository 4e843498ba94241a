/* ranks.c: one step of several CPU ranks. Each computes its own rows. The flat arrays are cut into buckets in the
 * order in which the backward pass is through with them: what comes after the blocks, each block, the embeddings. Each
 * rank has a part of every bucket: in a step's last micro-step it adds up the gradients of its parts over all ranks, in
 * the order of ranks, as soon as they are there, updates those parameters alone, at once or in the next forward pass,
 * and has the others' from them: the same bits in all ranks.
 *
 * On one machine parameters, moments and everyone's gradients lie in memory that all ranks see: the sum reads the
 * others' gradients where they are, and an update is everyone's at once. Ranks tell each other how far they are by two
 * numbers each, and wait asleep (futex). Sums and updates keep memory busy and cores idle, and one core alone gets most
 * of what memory gives: so every other rank does them while the rest multiply. Even ranks sum what is complete after
 * each block, odd ones in the middle of the next; what is left is summed when the backward pass is through. Updates are
 * put off until the next forward pass (update.c), where odd ranks begin with all of theirs, and even ones make each
 * tensor new as they come to it.
 *
 * On several machines a thread, the courier, swaps parts of the gradients with every other rank while the backward pass
 * goes on, and parameters are swapped after the update. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpu_backend.h"

#define CHUNK ((size_t)1 << 20) /* floats that are swapped at a time */
#define BLOCK 2048              /* floats that are added up at a time where there are more than two ranks */
#define PATIENCE_NS 100000000   /* between two looks at whether ranks have given up */

#define HUGE ((size_t)2 << 20)
#ifndef MADV_POPULATE_WRITE /* Linux 5.14; EINVAL before */
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

enum { LOSS, TARGETS, SQUARES, SUMS };

/* How far a rank is, in the shared memory. Numbers are posted after what they promise was written (release), and read
 * before that is (acquire). */
typedef struct place {
    _Alignas(128) uint32_t now;
    uint32_t updated; /* tensors that are new, and one more for all of an update; counted on from update to update */
    double sums[SUMS];
} place;

struct sgt_cpu_group {
    sgt_ranks *r;
    size_t buckets;
    size_t *part;  /* (buckets, ranks + 1): where in the flat arrays each rank's part begins; last: the bucket's end */
    size_t *end;   /* (buckets + 1): of this rank's pieces bucket b's are end[b + 1] .. end[b] - 1 */
    size_t ready, summed; /* buckets of this step that are complete here, and whose part of this rank is summed */
    int reducing;         /* the micro-step that runs is the step's last */

    void *memory; /* one machine: the shared memory, where */
    size_t bytes;
    place *places; /* (ranks) */
    float **grads; /* (ranks): everyone's, all of them */
    uint32_t now;  /* what this rank has posted last */
    uint32_t step; /* and what all had when they met last: a step's buckets are counted from there */
    int stale;     /* the first rank may still be putting parameters there */
    uint32_t updates;      /* what all had posted of updates before the one that is put off */
    uint32_t mine, theirs; /* its tensors that are new here; and that are known to be new in all ranks */

    float *room; /* several: (ranks, CHUNK), what has come from each */
    pthread_t courier;
    int hired, leaving;
    pthread_mutex_t lock; /* of ready, summed, leaving and rc where there is a courier */
    pthread_cond_t news;
    int rc;
    sgt_error err;
};

/* ---- who has what ---- */

/* The tensors of a bucket: first .. first + n - 1. */
static size_t tensors_of(const sgt_cpu_backend *c, size_t bucket, size_t *n)
{
    size_t layers = c->model.layers, tail = 2 + layers * SGT_BLOCK_TENSORS;
    if (bucket == 0) {
        *n = sgt_model_tensors(&c->model) - tail;
        return tail;
    }
    *n = bucket <= layers ? SGT_BLOCK_TENSORS : 2;
    return bucket <= layers ? tail - bucket * SGT_BLOCK_TENSORS : 0;
}

static size_t *part_of(const struct sgt_cpu_group *g, size_t bucket, size_t rank)
{
    return g->part + bucket * (g->r->size + 1) + rank;
}

/* Parts begin where pieces do, and are as even as that allows. */
static void divide(sgt_cpu_backend *c, size_t bucket)
{
    struct sgt_cpu_group *g = c->group;
    sgt_tensor t;
    size_t n, first = tensors_of(c, bucket, &n), ranks = g->r->size;
    sgt_model_tensor(&c->model, first, &t);
    size_t begin = t.offset;
    sgt_model_tensor(&c->model, first + n - 1, &t);
    size_t end = t.offset + t.count, *part = part_of(g, bucket, 0);
    for (size_t i = 0; i <= ranks; i++) part[i] = end;
    part[0] = begin;
    for (size_t i = c->piece_count; i-- > 0;) {
        size_t at = c->pieces[i].offset;
        if (at < begin || at >= end) continue;
        for (size_t r = 1; r <= (at - begin) * ranks / (end - begin); r++)
            if (part[r] > at) part[r] = at;
    }
}

/* This rank's pieces in the place of all of them. In the flat arrays buckets lie in reverse. */
static void keep_own_pieces(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    size_t n = 0, i = 0;
    for (size_t b = g->buckets; b-- > 0;) {
        const size_t *part = part_of(g, b, g->r->rank);
        size_t end = *part_of(g, b, g->r->size);
        for (; i < c->piece_count && c->pieces[i].offset < end; i++)
            if (c->pieces[i].offset >= part[0] && c->pieces[i].offset < part[1]) c->pieces[n++] = c->pieces[i];
        g->end[b] = n;
    }
    c->piece_count = n;
}

/* ---- how far ranks are: one machine ---- */

static void post(uint32_t *number, uint32_t value)
{
    __atomic_store_n(number, value, __ATOMIC_RELEASE); /* pairs with reached's */
    syscall(SYS_futex, number, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void post_now(struct sgt_cpu_group *g) { post(&g->places[g->r->rank].now, ++g->now); }

/* Numbers wrap around. */
static int reached(const uint32_t *number, uint32_t value, uint32_t *now)
{
    *now = __atomic_load_n(number, __ATOMIC_ACQUIRE); /* pairs with post's */
    return (int32_t)(*now - value) >= 0;
}

static int all_reached(const struct sgt_cpu_group *g, uint32_t value)
{
    uint32_t now;
    for (uint32_t i = 0; i < g->r->size; i++)
        if (!reached(&g->places[i].now, value, &now)) return 0;
    return 1;
}

/* Until a rank's number, one of its place, has reached the value. */
static int wait_for(const struct sgt_cpu_group *g, uint32_t rank, const uint32_t *number, uint32_t value,
                    sgt_error *err)
{
    const struct timespec patience = {.tv_nsec = PATIENCE_NS};
    uint32_t now;
    while (!reached(number, value, &now)) {
        if (sgt_ranks_lost(g->r)) return sgt_fail(err, SGT_EIO, "ranks: rank %u is not waited for any more", rank);
        syscall(SYS_futex, number, FUTEX_WAIT, now, &patience, NULL, 0);
    }
    return SGT_OK;
}

static int wait_for_all(const struct sgt_cpu_group *g, uint32_t value, sgt_error *err)
{
    int rc = SGT_OK;
    for (uint32_t i = 0; i < g->r->size && rc == SGT_OK; i++) rc = wait_for(g, i, &g->places[i].now, value, err);
    return rc;
}

/* No bucket is posted or waited for across it: what all have now, the next one is counted from. */
static int meet(struct sgt_cpu_group *g, sgt_error *err)
{
    post_now(g);
    g->step = g->now;
    return wait_for_all(g, g->now, err);
}

/* ---- sums: one machine ---- */

/* own = the sum of x[0], x[1], ... in this order; own is one of them. */
static void add_up(const sgt_cpu_backend *c, float *own, const float *const *x, size_t ranks, size_t n)
{
    float sum[BLOCK];
    if (ranks == 2) { /* either order gives the same bits */
        c->k->add(own, x[0] == own ? x[1] : x[0], n);
        return;
    }
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t k = n - at < BLOCK ? n - at : BLOCK;
        memcpy(sum, x[0] + at, k * sizeof *sum);
        for (size_t i = 1; i < ranks; i++) c->k->add(sum, x[i] + at, k);
        memcpy(own + at, sum, k * sizeof *sum);
    }
}

/* This rank's part, where it lies in everyone's gradients; and the squares of it while it is at hand. */
static void sum_bucket(sgt_cpu_backend *c, size_t bucket)
{
    struct sgt_cpu_group *g = c->group;
    size_t ranks = g->r->size;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t i = g->end[bucket + 1]; i < g->end[bucket]; i++) {
        const sgt_cpu_piece *p = c->pieces + i;
        const float *x[SGT_CPU_RANKS];
        float *own = c->grads + p->offset;
        for (size_t k = 0; k < ranks; k++) x[k] = g->grads[k] + p->offset;
        if (ranks == 2) {
            c->squares[i] = c->k->add_squares(own, x[1 - g->r->rank], p->count);
        } else {
            add_up(c, own, x, ranks, p->count);
            c->squares[i] = c->k->sum_squares(own, p->count);
        }
    }
}

/* ---- sums: several machines ---- */

static int lasting(struct sgt_cpu_group *g, size_t bucket, size_t *longest)
{
    *longest = 0;
    for (size_t r = 0; r < g->r->size; r++) {
        const size_t *part = part_of(g, bucket, r);
        if (part[1] - part[0] > *longest) *longest = part[1] - part[0];
    }
    return *longest > 0;
}

/* Floats at .. at + CHUNK of rank's part: where they begin in the flat arrays, and how many there are. */
static size_t chunk(const struct sgt_cpu_group *g, size_t bucket, uint32_t rank, size_t at, size_t *n)
{
    const size_t *part = part_of(g, bucket, rank);
    size_t from = part[0] + at;
    *n = from >= part[1] ? 0 : part[1] - from < CHUNK ? part[1] - from : CHUNK;
    return from;
}

/* Each pair of ranks swaps what the other's part is of: gradients to be added up, or (room NULL) parameters to keep. */
static int swap_chunk(sgt_cpu_backend *c, size_t bucket, size_t at, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    sgt_ranks *r = g->r;
    size_t n, mine, own = chunk(g, bucket, r->rank, at, &mine);
    const float *x[SGT_CPU_RANKS];
    x[r->rank] = c->grads + own;
    for (uint32_t k = 1; k < r->size; k++) {
        uint32_t to = (r->rank + k) % r->size, from = (r->rank + r->size - k) % r->size;
        size_t theirs = chunk(g, bucket, to, at, &n);
        float *room = g->room + from * CHUNK;
        int rc = r->swap(r, to, c->grads + theirs, n * sizeof(float), from, room, mine * sizeof(float), err);
        if (rc < 0) return rc;
        x[from] = room;
    }
    if (mine) add_up(c, c->grads + own, x, r->size, mine);
    return SGT_OK;
}

static int reduce_bucket(sgt_cpu_backend *c, size_t bucket, sgt_error *err)
{
    size_t longest;
    int rc = SGT_OK;
    lasting(c->group, bucket, &longest);
    for (size_t at = 0; at < longest && rc == SGT_OK; at += CHUNK) rc = swap_chunk(c, bucket, at, err);
    return rc;
}

static void *carry(void *ctx)
{
    sgt_cpu_backend *c = ctx;
    struct sgt_cpu_group *g = c->group;
    pthread_mutex_lock(&g->lock);
    while (!g->leaving && g->rc == SGT_OK) {
        if (g->summed == g->ready) {
            pthread_cond_wait(&g->news, &g->lock);
            continue;
        }
        size_t bucket = g->summed;
        pthread_mutex_unlock(&g->lock);
        int rc = reduce_bucket(c, bucket, &g->err);
        pthread_mutex_lock(&g->lock);
        g->rc = rc;
        g->summed++;
        pthread_cond_broadcast(&g->news);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static int wait_for_courier(sgt_cpu_backend *c, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    pthread_mutex_lock(&g->lock);
    while (g->rc == SGT_OK && g->summed < g->buckets) pthread_cond_wait(&g->news, &g->lock);
    int rc = g->rc;
    pthread_mutex_unlock(&g->lock);
    if (rc < 0) return sgt_fail(err, rc, "%s", g->err.text);
    sgt_cpu_squares(c, 1);
    return SGT_OK;
}

/* Everyone's parameters from who updated them. */
static int gather(sgt_cpu_backend *c, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    sgt_ranks *r = g->r;
    for (size_t b = 0, longest; b < g->buckets && lasting(g, b, &longest); b++)
        for (size_t at = 0; at < longest; at += CHUNK)
            for (uint32_t k = 1; k < r->size; k++) {
                uint32_t to = (r->rank + k) % r->size, from = (r->rank + r->size - k) % r->size;
                size_t mine, n, own = chunk(g, b, r->rank, at, &mine), theirs = chunk(g, b, from, at, &n);
                int rc = r->swap(r, to, c->params + own, mine * sizeof(float), from, c->params + theirs,
                                 n * sizeof(float), err);
                if (rc < 0) return rc;
                if (n) sgt_cpu_take_weights(c, theirs, n);
            }
    return SGT_OK;
}

/* ---- a step ---- */

void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro)
{
    struct sgt_cpu_group *g = c->group;
    if (g) g->reducing = micro + 1 == c->accum;
}

/* Buckets that are complete in all ranks by now. */
static void sum_some(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    while (g->summed < g->ready && all_reached(g, g->step + (uint32_t)g->summed + 1)) sum_bucket(c, g->summed++);
}

void sgt_cpu_ranks_ready(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    if (!g || !g->reducing) return;
    if (!g->memory) {
        pthread_mutex_lock(&g->lock);
        g->ready++;
        pthread_cond_broadcast(&g->news);
        pthread_mutex_unlock(&g->lock);
        return;
    }
    g->ready++;
    post_now(g);
    if (g->r->rank % 2 == 0) sum_some(c);
}

void sgt_cpu_ranks_amid(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    if (g && g->memory && g->reducing && g->r->rank % 2) sum_some(c);
}

static int sum_the_rest(sgt_cpu_backend *c, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    int rc = SGT_OK;
    while (g->summed < g->buckets && (rc = wait_for_all(g, g->step + (uint32_t)g->summed + 1, err)) == SGT_OK)
        sum_bucket(c, g->summed++);
    return rc;
}

static int add_sums(sgt_cpu_backend *c, double sums[SUMS], sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    if (!g->memory) return g->r->sum(g->r, sums, SUMS, err);
    memcpy(g->places[g->r->rank].sums, sums, sizeof g->places->sums);
    int rc = meet(g, err);
    if (rc < 0) return rc;
    memset(sums, 0, SUMS * sizeof *sums);
    for (uint32_t i = 0; i < g->r->size; i++)
        for (int k = 0; k < SUMS; k++) sums[k] += g->places[i].sums[k];
    return SGT_OK;
}

int sgt_cpu_ranks_total(sgt_cpu_backend *c, double *squares, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    double sums[SUMS] = {[LOSS] = c->loss_sum, [TARGETS] = (double)c->counted};
    uint64_t from = sgt_trace_begin(c->trace);
    while (g->ready < g->buckets) { /* a step of fewer micro-steps than promised */
        g->reducing = 1;
        sgt_cpu_ranks_ready(c);
    }
    int rc = g->memory ? sum_the_rest(c, err) : wait_for_courier(c, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < c->piece_count; i++) sums[SQUARES] += c->squares[i];
    if ((rc = add_sums(c, sums, err)) < 0) return rc;
    c->loss_sum = sums[LOSS];
    c->counted = (uint64_t)sums[TARGETS];
    *squares = sums[SQUARES];
    sgt_trace_end(c->trace, from, SGT_TRACE_LOOP, "ranks", "gradients of all ranks");
    return SGT_OK;
}

int sgt_cpu_ranks_share(sgt_cpu_backend *c, int updated, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    uint64_t from = sgt_trace_begin(c->trace);
    int rc = SGT_OK;
    if (c->behind) rc = sgt_cpu_ranks_failed(c, err); /* all have the first tensors, and so this update's sums */
    else if (g->memory) rc = meet(g, err);
    else if (updated) rc = gather(c, err);
    sgt_trace_end(c->trace, from, SGT_TRACE_LOOP, "ranks", "parameters of all ranks");
    g->ready = g->summed = 0;
    g->reducing = 0;
    return rc;
}

/* ---- an update that is put off: one machine ---- */

static uint32_t block_tensors(const sgt_cpu_backend *c) { return c->model.layers * SGT_BLOCK_TENSORS; }

void sgt_cpu_ranks_updated(sgt_cpu_backend *c, size_t pieces)
{
    struct sgt_cpu_group *g = c->group;
    if (!g || !c->behind) return;
    uint32_t n = g->mine, last = block_tensors(c);
    while (n < last && c->blocks[n / SGT_BLOCK_TENSORS].shares[n % SGT_BLOCK_TENSORS] <= pieces) n++;
    if (pieces == c->piece_count) n = last + 1;
    if (n == g->mine) return;
    g->mine = n;
    post(&g->places[g->r->rank].updated, g->updates + n);
}

/* What fails is told by sgt_cpu_ranks_failed: a forward pass cannot fail. */
static void await(sgt_cpu_backend *c, uint32_t n)
{
    struct sgt_cpu_group *g = c->group;
    if (!g || !c->behind || g->theirs >= n) return;
    for (uint32_t i = 0; i < g->r->size && g->rc == SGT_OK; i++)
        g->rc = wait_for(g, i, &g->places[i].updated, g->updates + n, &g->err);
    g->theirs = n;
}

void sgt_cpu_ranks_await_tensor(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor)
{
    await(c, (uint32_t)((size_t)(l - c->blocks) * SGT_BLOCK_TENSORS + tensor + 1));
}

void sgt_cpu_ranks_await_all(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    await(c, block_tensors(c) + 1);
    if (!g || !c->behind) return;
    g->updates += block_tensors(c) + 1;
    g->mine = g->theirs = 0;
}

void sgt_cpu_ranks_embedded(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    if (g && c->behind && g->rc == SGT_OK) g->rc = meet(g, &g->err);
}

int sgt_cpu_ranks_failed(const sgt_cpu_backend *c, sgt_error *err)
{
    const struct sgt_cpu_group *g = c->group;
    return g && g->memory && g->rc < 0 ? sgt_fail(err, g->rc, "%s", g->err.text) : SGT_OK;
}

/* ---- state in and out ---- */

int sgt_cpu_ranks_puts(sgt_cpu_backend *c, sgt_state what)
{
    struct sgt_cpu_group *g = c->group;
    if (!g || !g->memory || what == SGT_GRADIENTS) return 1;
    if (!g->stale && g->rc == SGT_OK) g->rc = meet(g, &g->err); /* others may still evaluate */
    g->stale = 1;
    return g->r->rank == 0;
}

int sgt_cpu_ranks_await_puts(sgt_cpu_backend *c, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    if (!g || !g->stale) return SGT_OK;
    g->stale = 0;
    return meet(g, err);
}

/* The rank whose part the float is in, and how many more of its part follow, itself among them. */
static uint32_t owner(const struct sgt_cpu_group *g, size_t at, size_t *n)
{
    for (size_t b = g->buckets; b-- > 0;) /* the embeddings are looked up most */
        for (uint32_t r = 0; r < g->r->size; r++) {
            const size_t *part = part_of(g, b, r);
            *n = part[1] - at;
            if (at >= part[0] && at < part[1]) return r;
        }
    *n = 1;
    return 0;
}

const float *sgt_cpu_ranks_summed(const sgt_cpu_backend *c, size_t at, size_t *n)
{
    const struct sgt_cpu_group *g = c->group;
    return g ? g->grads[owner(g, at, n)] + at : c->grads + at;
}

int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    int rc = SGT_OK;
    if (!g || what == SGT_PARAMETERS || (g->memory && what != SGT_GRADIENTS)) return SGT_OK;
    if (!c->fresh) return sgt_fail(err, SGT_EUSAGE, "backend: several ranks' state within a step");
    for (size_t n; count && rc == SGT_OK; at += n, to += n, count -= n) {
        uint32_t rank = owner(g, at, &n);
        if (n > count) n = count;
        if (n > CHUNK) n = CHUNK;
        if (g->memory) memcpy(to, g->grads[rank] + at, n * sizeof *to);
        else rc = g->r->broadcast(g->r, to, n * sizeof *to, rank, err);
    }
    if (!g->memory || rc < 0) return rc;
    return meet(g, err); /* the owner's next step writes over them */
}

/* ---- set-up ---- */

/* What all ranks have to have been asked for alike: none would notice otherwise. */
static int compare(const sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err)
{
    struct {
        uint64_t whole[14];
        double real[6];
    } first, mine = {{c->model.layers, c->model.channels, c->model.heads, c->model.vocab, (uint64_t)c->model.untied,
                      c->B, c->T, c->accum, (uint64_t)c->rounding, c->format, c->seed, c->optim.kind,
                      (uint64_t)c->optim.nesterov, (uint64_t)c->bf16},
                     {c->dropout, (double)c->optim.beta1, (double)c->optim.beta2, (double)c->optim.momentum,
                      (double)c->optim.weight_decay, (double)c->optim.grad_clip}};
    memcpy(&first, &mine, sizeof mine);
    int rc = r->broadcast(r, &first, sizeof first, 0, err);
    if (rc == SGT_OK && memcmp(&first, &mine, sizeof mine) != 0)
        rc = sgt_fail(err, SGT_EUSAGE,
                      "its options or its CPU are not those of rank 0 (all ranks run the same command)");
    return rc;
}

static int hire(sgt_cpu_backend *c, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->news, NULL);
    g->room = malloc(g->r->size * CHUNK * sizeof *g->room);
    if (!g->room || pthread_create(&g->courier, NULL, carry, c) != 0)
        return sgt_fail(err, SGT_ENOMEM, "ranks: no memory or thread to swap gradients with");
    g->hired = 1;
    return SGT_OK;
}

/* Every page is there before the first step, and a lack of memory is told instead of ending the process. Huge pages
 * where the kernel makes them when it is asked to (Linux 6.1): its settings rarely do so for shared memory by
 * themselves. Each rank touches those that begin in its own gradients, which are near it then, or in its part of the
 * rest. */
static int touch_some(char *at, size_t n)
{
    for (size_t i = 0; i < n; i += HUGE) __atomic_fetch_or((unsigned char *)at + i, 0, __ATOMIC_RELAXED);
    if (madvise(at, n, MADV_COLLAPSE) == 0 || madvise(at, n, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno != EINVAL) return errno;
    for (size_t i = 0; i < n; i += 4096) __atomic_fetch_or((unsigned char *)at + i, 0, __ATOMIC_RELAXED);
    return 0;
}

static int touch(const sgt_cpu_backend *c, size_t from, size_t to, sgt_error *err)
{
    const struct sgt_cpu_group *g = c->group;
    int failed = 0;
    from = (from + HUGE - 1) / HUGE * HUGE;
    to = (to + HUGE - 1) / HUGE * HUGE;
    if (to > g->bytes) to = (g->bytes + 4095) / 4096 * 4096; /* the mapping ends with a page */
#pragma omp parallel for num_threads(c->threads) schedule(dynamic)
    for (size_t at = from; at < to; at += 16 * HUGE) {
        int why = touch_some((char *)g->memory + at, to - at < 16 * HUGE ? to - at : 16 * HUGE);
        if (why) __atomic_store_n(&failed, why, __ATOMIC_RELAXED); /* read after the loop */
    }
    errno = failed;
    return failed ? sgt_fail_errno(err, "%zu MiB of memory for all ranks", g->bytes >> 20) : SGT_OK;
}

/* The layout was measured; the gradients are last in it. */
static int map_common(sgt_cpu_backend *c, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    sgt_arena one = {0};
    sgt_arena_take(&one, sgt_model_floats(&c->model), sizeof(float));
    size_t rank = g->r->rank, ranks = g->r->size, own = one.used, common = c->common.used - ranks * own;
    g->bytes = c->common.used < HUGE ? c->common.used : (c->common.used + HUGE - 1) / HUGE * HUGE;
    int rc = g->r->share(g->r, g->bytes, &g->memory, err);
    if (rc < 0) return rc;
    c->common = (sgt_arena){.base = g->memory, .size = g->bytes};
    g->places = g->memory; /* the first thing that is laid out */
    if ((rc = touch(c, common * rank / ranks, common * (rank + 1) / ranks, err)) < 0 ||
        (rc = touch(c, common + own * rank, common + own * (rank + 1), err)) < 0 || (rc = meet(g, err)) < 0)
        return rc;
    (void)madvise(g->memory, g->bytes, MADV_POPULATE_WRITE); /* what the others have touched: no faults in a step */
    return SGT_OK;
}

void sgt_cpu_ranks_lay_out(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    if (g && c->sharing) g->places = sgt_arena_take(&c->common, g->r->size, sizeof *g->places);
}

float *sgt_cpu_ranks_lay_out_grads(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    size_t flat = sgt_model_floats(&c->model);
    for (uint32_t i = 0; i < g->r->size; i++) g->grads[i] = sgt_arena_take(&c->common, flat, sizeof(float));
    return g->grads[g->r->rank];
}

int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err)
{
    if (!r) return SGT_OK;
    if (!r->share && !r->swap)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "CPU ranks on several machines: gradients go by MPI (mpirun or srun instead of torchrun)");
    if (r->size > SGT_CPU_RANKS)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%u CPU ranks: at most %d", r->size, SGT_CPU_RANKS);
    struct sgt_cpu_group *g = c->group = calloc(1, sizeof *g);
    if (!g) return sgt_fail(err, SGT_ENOMEM, "backend: out of memory");
    g->r = r;
    g->buckets = c->model.layers + 2;
    g->part = calloc(g->buckets * (r->size + 1), sizeof *g->part);
    g->end = calloc(g->buckets + 1, sizeof *g->end);
    g->grads = calloc(r->size, sizeof *g->grads);
    c->sharing = r->share != NULL;
    c->ranks = r->size;
    c->rank = r->rank;
    return g->part && g->end && g->grads ? SGT_OK : sgt_fail(err, SGT_ENOMEM, "backend: out of memory");
}

int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err)
{
    struct sgt_cpu_group *g = c->group;
    if (!g) return SGT_OK;
    int rc = compare(c, g->r, err);
    for (size_t b = 0; b < g->buckets; b++) divide(c, b);
    if (rc < 0) return rc;
    keep_own_pieces(c);
    return c->sharing ? map_common(c, err) : hire(c, err);
}

static void dismiss(struct sgt_cpu_group *g)
{
    if (!g->hired) return;
    pthread_mutex_lock(&g->lock);
    g->leaving = 1;
    pthread_cond_broadcast(&g->news);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->courier, NULL);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->news);
}

void sgt_cpu_ranks_close(sgt_cpu_backend *c)
{
    struct sgt_cpu_group *g = c->group;
    if (!g) return;
    dismiss(g);
    if (g->memory) g->r->unshare(g->r, g->memory, g->bytes);
    free(g->room);
    free(g->part);
    free(g->end);
    free(g->grads);
    free(g);
    c->group = NULL;
}
