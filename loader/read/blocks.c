/* blocks.c: see blocks.h.
 *
 * A pool has two halves, each with the blocks of one pool. One thread fills them, pool after pool,
 * block after block. `wanted` is the pool that windows are drawn from; the halves should hold this
 * pool and the next one. Fetches advance it:
 *
 *     all windows are in the next pool     in as many consecutive fetches as there are cursors, so
 *                                          that no cursor is left behind: the next pool becomes
 *                                          wanted. A fetch that reaches its end does so too
 *     no window is in either of the two    twice in a row, at the same place: the pool there
 *                                          becomes wanted
 *
 * A half is given another pool if its own is neither wanted nor next. Besides, no cursor may copy
 * from it or wait for it (pins), and no read into it may be in flight. The blocks of a half arrive
 * in order: those below `landed` have arrived or are lost. They are written before `landed` is
 * raised, under the lock, and not afterwards. */
#include "loader/read/blocks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/base/thread.h"
#include "loader/read/pages.h"

#define DEPTH 32u    /* reads in flight: 8 MiB */
#define PARTS 4u     /* extents per block, at most */
#define PATIENCE 16u /* fetches in the next pool until it is wanted, at most */
#define NONE UINT64_MAX

typedef struct block {
    uint32_t parts;
    int lost; /* 1: could not be read, or did not fit */
    struct {
        sgt_extent s;
        const uint16_t *tokens;
    } part[PARTS];
} block;

typedef struct half {
    uint64_t pool, first; /* pool: number of the pool, or NONE; first: its first block */
    uint32_t count, asked, landed;
    uint32_t awaited; /* the lowest block that a cursor waits for; UINT32_MAX: none */
    uint32_t pins;
    block *blocks;
    char *memory;
} half;

/* A part of a block being read. A lost block has one flight, without a read, to keep the order. */
typedef struct flight {
    sgt_ring_read read;
    half *h;
    block *b;
    uint32_t part;
} flight;

struct sgt_pool {
    sgt_rings *rings;
    const sgt_set *set;
    const sgt_sampler *sampler;
    uint32_t shard0; /* index in `set` of the sampler's shard 0 */
    size_t room;     /* bytes of memory per block */
    uint64_t pools;  /* pools in an epoch */
    sgt_arena arena;
    sgt_prefault prefault;
    pthread_mutex_t lock;
    pthread_cond_t work, arrived;
    pthread_t thread;
    pid_t pid;
    int running, closing;
    int ended_early; /* 1: the thread has failed, and no more blocks will arrive */
    int leaked;      /* 1: the kernel may still write into the arena, so it must not be unmapped */
    half halves[2];
    uint64_t wanted, stray, blocks_read;
    uint32_t cursors, late;
    /* used only by the filling thread */
    sgt_sampler_memo memo;
    flight *flights; /* DEPTH */
    uint64_t taken, ended;
};

struct sgt_pool_cursor {
    sgt_pool *p;
    size_t width; /* tokens per window */
    uint16_t *rows;
};

/* ---- which blocks ---- */

static uint64_t pool_of(const sgt_pool *p, const sgt_window *w)
{
    uint64_t blocks = sgt_sampler_blocks(p->sampler);
    return w->block / blocks * p->pools + w->block % blocks / p->sampler->pool_blocks;
}

static half *half_of(sgt_pool *p, uint64_t pool)
{
    return p->halves[0].pool == pool   ? &p->halves[0]
           : p->halves[1].pool == pool ? &p->halves[1]
                                       : NULL;
}

static int is_wanted(const sgt_pool *p, uint64_t pool)
{
    return p->wanted != NONE && (pool == p->wanted || pool == p->wanted + 1);
}

static void begin(sgt_pool *p, half *h, uint64_t pool)
{
    uint64_t blocks = sgt_sampler_blocks(p->sampler), most = p->sampler->pool_blocks;
    uint64_t at = pool % p->pools * most;
    h->pool = pool;
    h->first = pool / p->pools * blocks + at;
    h->count = (uint32_t)(blocks - at < most ? blocks - at : most);
    h->asked = h->landed = 0;
    h->awaited = UINT32_MAX;
}

/* ---- the thread that fills ---- */

static int is_spare(const sgt_pool *p, const half *h)
{
    return !is_wanted(p, h->pool) && !h->pins && h->asked == h->landed;
}

/* Assign wanted pools without a half to halves that may be reused. */
static void give_pools(sgt_pool *p)
{
    for (uint64_t pool = p->wanted; is_wanted(p, pool); pool++) {
        half *h = is_spare(p, &p->halves[0])   ? &p->halves[0]
                  : is_spare(p, &p->halves[1]) ? &p->halves[1]
                                               : NULL;
        if (!h) return;
        if (half_of(p, pool)) continue;
        begin(p, h, pool);
        pthread_cond_broadcast(&p->arrived);
    }
}

/* Return the half to read the next block of, the lower pool's first; NULL if there is none. A pool
 * that is no longer wanted is read only if a cursor waits for it. */
static half *half_to_fill(sgt_pool *p)
{
    half *best = NULL;
    for (half *h = p->halves; h < p->halves + 2; h++)
        if (h->asked < h->count && (h->pins || is_wanted(p, h->pool)) &&
            (!best || h->pool < best->pool))
            best = h;
    return best;
}

/* Assign memory from `to` on to the parts of a block, in order. Return 0 if they do not fit. */
static int place(const sgt_pool *p, block *b, flight *const *flights, char *to)
{
    size_t align = sgt_rings_align(p->rings), used = 0;
    for (uint32_t i = 0; i < b->parts; i++) {
        const sgt_extent *s = &b->part[i].s;
        size_t bytes = 2 * (size_t)s->tokens,
               room = (sgt_rings_room(p->rings, bytes) + align - 1) / align * align;
        if (room > p->room - used) return 0;
        flights[i]->read = (sgt_ring_read){.at = p->set->shards[s->shard].head.data + 2 * s->offset,
                                           .bytes = bytes,
                                           .to = to + used,
                                           .shard = s->shard};
        used += room;
    }
    return 1;
}

/* Start reading block i of h, with a flight for each part; with too many parts it is lost. */
static void ask_block(sgt_pool *p, sgt_ring *r, half *h, uint32_t i)
{
    sgt_extent parts[PARTS];
    flight *flights[PARTS];
    block *b = &h->blocks[i];
    b->parts = sgt_sampler_block(p->sampler, &p->memo, h->first + i, parts, PARTS);
    b->lost = b->parts > PARTS;
    for (uint32_t k = 0; k < PARTS; k++) {
        flights[k] = &p->flights[(p->taken + k) % DEPTH];
        *flights[k] = (flight){.h = h, .b = b, .part = k};
        if (b->lost || k >= b->parts) continue;
        b->part[k].s = parts[k];
        b->part[k].s.shard += p->shard0;
    }
    if (!b->lost) b->lost = !place(p, b, flights, h->memory + i * p->room);
    if (b->lost) b->parts = 1;
    for (uint32_t k = 0; k < b->parts && !b->lost; k++) sgt_ring_ask(r, &flights[k]->read);
    p->taken += b->parts;
}

/* Wait for the oldest read in flight, and store where its part lies. */
static void land(sgt_pool *p, sgt_ring *r)
{
    flight *f = &p->flights[p->ended++ % DEPTH];
    half *h = f->h;
    /* ignored: a caller that needs a window of this block reads it itself and gets the error */
    sgt_error err;
    if (f->read.bytes && sgt_ring_wait(r, &f->read, 1, &err) < 0) f->b->lost = 1;
    f->b->part[f->part].tokens = (const uint16_t *)(const void *)f->read.data;
    if (f->part + 1 < f->b->parts) return;
    pthread_mutex_lock(&p->lock);
    p->blocks_read++;
    if (h->landed++ >= h->awaited) {
        h->awaited = UINT32_MAX;
        pthread_cond_broadcast(&p->arrived);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Start reads while a block's parts have free flights; else wait for the oldest read or for
 * work. */
static void keep_full(sgt_pool *p, sgt_ring *r)
{
    pthread_mutex_lock(&p->lock);
    while (!p->closing) {
        give_pools(p);
        half *h = p->taken - p->ended <= DEPTH - PARTS ? half_to_fill(p) : NULL;
        if (!h && p->taken == p->ended) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        uint32_t i = h ? h->asked++ : 0;
        pthread_mutex_unlock(&p->lock);
        if (h) ask_block(p, r, h, i);
        else land(p, r);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

static void *fill(void *arg)
{
    sgt_pool *p = arg;
    sgt_ring *r = NULL;
    if (sgt_ring_open(&r, p->rings, DEPTH, NULL, 0, NULL) == 0) keep_full(p, r);
    int astray = sgt_ring_close(r);
    pthread_mutex_lock(&p->lock);
    p->ended_early = !p->closing;
    p->leaked = astray;
    pthread_cond_broadcast(&p->arrived);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int start(sgt_pool *p, sgt_error *err)
{
    int error = sgt_thread_start(&p->thread, fill, p);
    if (error)
        return sgt_fail(err, SGT_EIO, "cannot start the thread that reads blocks (error %d)",
                        error);
    p->running = 1;
    sgt_prefault_begin(&p->prefault, p->arena.base, p->arena.size);
    return SGT_OK;
}

/* ---- opening ---- */

/* Return whether this process is a child after fork. It has a copy of the pool but not the filling
 * thread, so the pool must not be used. */
static int is_childs(const sgt_pool *p) { return p->pid != getpid(); }

static size_t room_of(const sgt_pool *p)
{
    size_t tokens = (size_t)sgt_sampler_block_windows(p->sampler) * p->sampler->seq + PARTS;
    size_t around = sgt_rings_room(p->rings, 1) + sgt_rings_align(p->rings);
    return (2 * tokens + PARTS * around + SGT_RING_ALIGN - 1) / SGT_RING_ALIGN * SGT_RING_ALIGN;
}

static int open_halves(sgt_pool *p, sgt_error *err)
{
    uint64_t blocks = sgt_sampler_blocks(p->sampler);
    size_t count = blocks < p->sampler->pool_blocks ? (size_t)blocks : p->sampler->pool_blocks;
    p->pools = (blocks + p->sampler->pool_blocks - 1) / p->sampler->pool_blocks;
    p->room = room_of(p);
    int rc = sgt_arena_map(&p->arena, 2 * count * p->room, 0, err);
    if (rc < 0) return rc;
    p->flights = calloc(DEPTH, sizeof *p->flights);
    for (int i = 0; i < 2; i++) {
        p->halves[i] = (half){.pool = NONE, .memory = p->arena.base + (size_t)i * count * p->room};
        p->halves[i].blocks = calloc(count, sizeof *p->halves[i].blocks);
    }
    if (p->flights && p->halves[0].blocks && p->halves[1].blocks) return SGT_OK;
    return sgt_fail(err, SGT_ENOMEM, "two pools of %zu blocks: out of memory", count);
}

int sgt_pool_open(sgt_pool **out, sgt_rings *rings, const sgt_set *set, const sgt_sampler *sampler,
                  uint32_t first, sgt_error *err)
{
    *out = NULL;
    if (sampler->seq > sampler->block_tokens) return SGT_OK;
    sgt_pool *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, "pools of blocks");
    p->rings = rings;
    p->set = set;
    p->sampler = sampler;
    p->shard0 = first;
    p->wanted = p->stray = NONE;
    p->pid = getpid();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->arrived, NULL);
    int rc = open_halves(p, err);
    if (rc < 0) sgt_pool_close(p);
    else *out = p;
    return rc;
}

void sgt_pool_close(sgt_pool *p)
{
    if (!p) return;
    int child = is_childs(p);
    if (!child) {
        pthread_mutex_lock(&p->lock);
        p->closing = 1;
        pthread_cond_signal(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    if (p->running && !child) {
        pthread_join(p->thread, NULL);
        sgt_prefault_end(&p->prefault);
    }
    /* keep the arena mapped if the kernel may still write into it */
    if (!p->leaked) sgt_arena_unmap(&p->arena);
    for (int i = 0; i < 2; i++) free(p->halves[i].blocks);
    free(p->flights);
    if (!child) { /* in the child, destroying these could wait for a thread that it does not have */
        pthread_cond_destroy(&p->work);
        pthread_cond_destroy(&p->arrived);
        pthread_mutex_destroy(&p->lock);
    }
    free(p);
}

int sgt_pool_cursor_open(sgt_pool_cursor **out, sgt_pool *p, uint32_t windows, sgt_error *err)
{
    sgt_pool_cursor *c = calloc(1, sizeof *c);
    size_t width = (size_t)p->sampler->seq + 1;
    if (c) c->rows = reallocarray(NULL, windows, width * sizeof *c->rows);
    if (!c || !c->rows) {
        free(c);
        return sgt_fail(err, SGT_ENOMEM, "%u windows of %zu tokens: out of memory", windows, width);
    }
    *c = (sgt_pool_cursor){.p = p, .width = width, .rows = c->rows};
    *out = c;
    if (is_childs(p)) return SGT_OK;
    pthread_mutex_lock(&p->lock);
    int rc = p->running ? SGT_OK : start(p, err);
    p->cursors++;
    pthread_mutex_unlock(&p->lock);
    if (rc < 0) {
        sgt_pool_cursor_close(c);
        *out = NULL;
    }
    return rc;
}

void sgt_pool_cursor_close(sgt_pool_cursor *c)
{
    if (!c) return;
    if (!is_childs(c->p)) {
        pthread_mutex_lock(&c->p->lock);
        c->p->cursors--;
        pthread_mutex_unlock(&c->p->lock);
    }
    free(c->rows);
    free(c);
}

/* ---- fetching ---- */

/* Make `pool` the wanted one. Wake the cursors that wait for the previous one, even if no half
 * changes its pool. */
static void want(sgt_pool *p, uint64_t pool)
{
    p->wanted = pool;
    p->stray = NONE;
    p->late = 0;
    give_pools(p);
    pthread_cond_signal(&p->work);
    pthread_cond_broadcast(&p->arrived);
}

/* Advance `wanted` for a fetch whose windows are in pools `low` to `high`, by the rules above. */
static void steer(sgt_pool *p, uint64_t low, uint64_t high)
{
    uint32_t others = p->cursors < PATIENCE ? p->cursors : PATIENCE;
    if (p->wanted == NONE || high < p->wanted || low > p->wanted + 2) {
        if (low == p->stray) want(p, low);
        else p->stray = low;
        return;
    }
    p->stray = NONE;
    /* the fetch is two pools ahead of the slowest cursor: leave that one behind */
    if (high == p->wanted + 2) want(p, p->wanted + 1);
    if (low == p->wanted) p->late = 0;
    else if (low == p->wanted + 1 && ++p->late >= others) want(p, low);
}

/* Wait until the wanted pools among `low` and `high` have halves. Pins and reads in flight can hold
 * old pools for a moment. The caller holds no pin, so no other cursor waits for it. */
static void await_halves(sgt_pool *p, uint64_t low, uint64_t high)
{
    while (((is_wanted(p, low) && !half_of(p, low)) || (is_wanted(p, high) && !half_of(p, high))) &&
           !p->ended_early)
        pthread_cond_wait(&p->arrived, &p->lock);
}

/* Wait until the blocks of h that hold the windows have arrived. */
static void await_blocks(sgt_pool *p, half *h, const sgt_window *windows, uint32_t n)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t b = windows[i].block - h->first;
        if (b < h->count && b > last) last = (uint32_t)b;
    }
    while (h->landed <= last && !p->ended_early) {
        if (last < h->awaited) h->awaited = last;
        pthread_cond_wait(&p->arrived, &p->lock);
    }
}

static const uint16_t *find(const half *h, const sgt_window *w)
{
    const block *b = &h->blocks[w->block - h->first];
    for (uint32_t i = 0; i < b->parts && !b->lost; i++) {
        const sgt_extent *s = &b->part[i].s;
        if (s->shard == w->shard && w->offset >= s->offset)
            return b->part[i].tokens + (w->offset - s->offset);
    }
    return NULL;
}

/* Set tokens[i] to window i if it has arrived in one of these halves (NULL: none). Return how many
 * windows are missing. */
static uint32_t locate(half *const *halves, const sgt_window *windows, uint32_t n,
                       const uint16_t **tokens)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (int k = 0; k < 2 && !tokens[i]; k++)
            if (halves[k] && windows[i].block - halves[k]->first < halves[k]->landed)
                tokens[i] = find(halves[k], &windows[i]);
        missing += !tokens[i];
    }
    return missing;
}

static void copy(sgt_pool_cursor *c, uint32_t n, const uint16_t **tokens)
{
    for (uint32_t i = 0; i < n; i++) {
        uint16_t *to = c->rows + i * c->width;
        if (i + 2 < n && tokens[i + 2])
            for (size_t line = 0; line < 8; line++)
                __builtin_prefetch((const char *)tokens[i + 2] + 64 * line);
        if (!tokens[i]) continue;
        memcpy(to, tokens[i], c->width * sizeof *to);
        tokens[i] = to;
    }
}

uint32_t sgt_pool_fetch(sgt_pool_cursor *c, const sgt_window *windows, uint32_t n,
                        const uint16_t **tokens)
{
    sgt_pool *p = c->p;
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t pool = pool_of(p, &windows[i]);
        if (pool < low) low = pool;
        if (pool > high) high = pool;
        tokens[i] = NULL;
    }
    if (is_childs(p)) return n;
    pthread_mutex_lock(&p->lock);
    steer(p, low, high);
    await_halves(p, low, high);
    half *halves[2] = {half_of(p, low), high > low ? half_of(p, low + 1) : NULL};
    for (int k = 0; k < 2; k++)
        if (halves[k]) halves[k]->pins++;
    for (int k = 0; k < 2; k++)
        if (halves[k]) await_blocks(p, halves[k], windows, n);
    uint32_t missing = locate(halves, windows, n, tokens);
    pthread_mutex_unlock(&p->lock);
    copy(c, n, tokens);
    pthread_mutex_lock(&p->lock);
    for (int k = 0; k < 2; k++)
        if (halves[k] && !--halves[k]->pins && !is_wanted(p, halves[k]->pool))
            pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    return missing;
}

uint64_t sgt_pool_blocks_read(sgt_pool *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t n = p->blocks_read;
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* ---- the pools of a mix ---- */

struct sgt_blocks {
    const sgt_mix *mix;
    uint32_t windows; /* most windows that one fetch asks for */
    sgt_pool *pools[SGT_BLOCKS_SETS];
};

struct sgt_blocks_cursor {
    sgt_blocks *b;
    uint32_t n; /* number of windows left over by the last fetch */
    sgt_pool_cursor *pooled[SGT_BLOCKS_SETS];
    sgt_window *some; /* the windows of one set; then those left over */
    uint32_t *places; /* their indices among the fetched windows */
    const uint16_t **tokens;
};

int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_reader_options *o, sgt_error *err)
{
    *out = NULL;
    if (o->sampling != SGT_SAMPLING_BLOCK) return SGT_OK;
    if (o->mix->sets > SGT_BLOCKS_SETS) {
        sgt_say(&o->notice,
                "blocks of %" PRIu32 " sets would take too much memory: reading windows one by one",
                o->mix->sets);
        return SGT_OK;
    }
    sgt_blocks *b = calloc(1, sizeof *b);
    if (!b) return sgt_fail_memory(err, "pools of blocks");
    b->mix = o->mix;
    b->windows = o->windows;
    for (uint32_t i = 0; i < o->mix->sets; i++) {
        int rc = sgt_pool_open(&b->pools[i], rings, set, &o->mix->samplers[i],
                               o->mix->shards_before[i], err);
        if (rc == 0 && b->pools[i]) continue;
        sgt_blocks_close(b); /* other sets would give the same result: it depends on T alone */
        return rc;
    }
    *out = b;
    return SGT_OK;
}

void sgt_blocks_close(sgt_blocks *b)
{
    if (!b) return;
    for (uint32_t i = 0; i < b->mix->sets; i++) sgt_pool_close(b->pools[i]);
    free(b);
}

int sgt_blocks_cursor_open(sgt_blocks_cursor **out, sgt_blocks *b, sgt_error *err)
{
    sgt_blocks_cursor *c = calloc(1, sizeof *c);
    int rc = SGT_OK;
    if (c) {
        c->b = b;
        c->some = calloc(b->windows, sizeof *c->some);
        c->places = calloc(b->windows, sizeof *c->places);
        c->tokens = calloc(b->windows, sizeof *c->tokens);
    }
    if (!c || !c->some || !c->places || !c->tokens)
        rc = sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " windows: out of memory", b->windows);
    for (uint32_t i = 0; i < b->mix->sets && rc == 0; i++)
        rc = sgt_pool_cursor_open(&c->pooled[i], b->pools[i], b->windows, err);
    if (rc < 0) sgt_blocks_cursor_close(c);
    else *out = c;
    return rc;
}

void sgt_blocks_cursor_close(sgt_blocks_cursor *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->b->mix->sets; i++) sgt_pool_cursor_close(c->pooled[i]);
    free(c->some);
    free(c->places);
    free(c->tokens);
    free(c);
}

/* Fetch the windows of one set among several. */
static void fetch_set(sgt_blocks_cursor *c, uint32_t set, const sgt_window *windows, uint32_t n,
                      const uint16_t **tokens)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (sgt_mix_set_of(c->b->mix, windows[i].shard) != set) continue;
        c->some[k] = windows[i];
        c->places[k++] = i;
    }
    if (k) sgt_pool_fetch(c->pooled[set], c->some, k, c->tokens);
    for (uint32_t i = 0; i < k; i++) tokens[c->places[i]] = c->tokens[i];
}

uint32_t sgt_blocks_fetch(sgt_blocks_cursor *c, const sgt_window *windows, uint32_t n,
                          const uint16_t **tokens, const sgt_window **left, const uint16_t ***where)
{
    if (c->b->mix->sets == 1) sgt_pool_fetch(c->pooled[0], windows, n, tokens);
    else
        for (uint32_t i = 0; i < c->b->mix->sets; i++) fetch_set(c, i, windows, n, tokens);
    c->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (tokens[i]) continue;
        c->some[c->n] = windows[i];
        c->places[c->n++] = i;
    }
    *left = c->some;
    *where = c->tokens;
    return c->n;
}

void sgt_blocks_put(const sgt_blocks_cursor *c, const uint16_t **tokens)
{
    for (uint32_t i = 0; i < c->n; i++) tokens[c->places[i]] = c->tokens[i];
}
