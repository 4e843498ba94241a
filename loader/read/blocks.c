/* blocks.c: see blocks.h. Each set of a mix has a pool.
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

typedef struct block_pool {
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
} block_pool;

struct sgt_blocks {
    uint32_t sets, windows; /* windows: most that one fetch asks for */
    size_t width;           /* tokens per window */
    block_pool *pools[SGT_BLOCKS_SETS];
};

struct sgt_blocks_cursor {
    sgt_blocks *b;
    uint32_t joined; /* pools that count this cursor */
    uint16_t *rows;  /* (windows, width): copies of the windows */
};

/* ---- which blocks ---- */

/* Return whether the window is of the pool's set. */
static int owns(const block_pool *p, const sgt_window *w)
{
    return w->shard - p->shard0 < p->sampler->shards;
}

static uint64_t pool_of(const block_pool *p, const sgt_window *w)
{
    uint64_t blocks = sgt_sampler_blocks(p->sampler);
    return w->block / blocks * p->pools + w->block % blocks / p->sampler->pool_blocks;
}

static half *half_of(block_pool *p, uint64_t pool)
{
    return p->halves[0].pool == pool   ? &p->halves[0]
           : p->halves[1].pool == pool ? &p->halves[1]
                                       : NULL;
}

static int is_wanted(const block_pool *p, uint64_t pool)
{
    return p->wanted != NONE && (pool == p->wanted || pool == p->wanted + 1);
}

static void begin(block_pool *p, half *h, uint64_t pool)
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

static int is_spare(const block_pool *p, const half *h)
{
    return !is_wanted(p, h->pool) && !h->pins && h->asked == h->landed;
}

/* Assign wanted pools without a half to halves that may be reused. */
static void give_pools(block_pool *p)
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
static half *half_to_fill(block_pool *p)
{
    half *best = NULL;
    for (half *h = p->halves; h < p->halves + 2; h++)
        if (h->asked < h->count && (h->pins || is_wanted(p, h->pool)) &&
            (!best || h->pool < best->pool))
            best = h;
    return best;
}

/* Assign memory from `to` on to the parts of a block, in order. Return 0 if they do not fit. */
static int assign_memory(const block_pool *p, block *b, flight *const *flights, char *to)
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
static void ask_block(block_pool *p, sgt_ring *r, half *h, uint32_t i)
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
    if (!b->lost) b->lost = !assign_memory(p, b, flights, h->memory + i * p->room);
    if (b->lost) b->parts = 1;
    for (uint32_t k = 0; k < b->parts && !b->lost; k++) sgt_ring_ask(r, &flights[k]->read);
    p->taken += b->parts;
}

/* Wait for the oldest read in flight, and store where its part lies. */
static void land(block_pool *p, sgt_ring *r)
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
static void keep_full(block_pool *p, sgt_ring *r)
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
    block_pool *p = arg;
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

static int start(block_pool *p, sgt_error *err)
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
static int is_childs(const block_pool *p) { return p->pid != getpid(); }

static size_t room_of(const block_pool *p)
{
    size_t tokens = (size_t)sgt_sampler_block_windows(p->sampler) * p->sampler->seq + PARTS;
    size_t around = sgt_rings_room(p->rings, 1) + sgt_rings_align(p->rings);
    return (2 * tokens + PARTS * around + SGT_RING_ALIGN - 1) / SGT_RING_ALIGN * SGT_RING_ALIGN;
}

static int open_halves(block_pool *p, sgt_error *err)
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

static void close_pool(block_pool *p)
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

/* Open the pool of a sampler whose shard 0 is shard `first` of the set. */
static int open_pool(block_pool **out, sgt_rings *rings, const sgt_set *set,
                     const sgt_sampler *sampler, uint32_t first, sgt_error *err)
{
    block_pool *p = calloc(1, sizeof *p);
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
    if (rc < 0) close_pool(p);
    else *out = p;
    return rc;
}

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
    if (o->seq > o->mix->samplers[0].block_tokens) return SGT_OK;
    sgt_blocks *b = calloc(1, sizeof *b);
    if (!b) return sgt_fail_memory(err, "pools of blocks");
    b->windows = o->windows;
    b->width = (size_t)o->seq + 1;
    for (; b->sets < o->mix->sets; b->sets++) {
        int rc = open_pool(&b->pools[b->sets], rings, set, &o->mix->samplers[b->sets],
                           o->mix->shards_before[b->sets], err);
        if (rc == 0) continue;
        sgt_blocks_close(b);
        return rc;
    }
    *out = b;
    return SGT_OK;
}

void sgt_blocks_close(sgt_blocks *b)
{
    if (!b) return;
    for (uint32_t i = 0; i < b->sets; i++) close_pool(b->pools[i]);
    free(b);
}

int sgt_blocks_cursor_open(sgt_blocks_cursor **out, sgt_blocks *b, sgt_error *err)
{
    sgt_blocks_cursor *c = calloc(1, sizeof *c);
    int rc = SGT_OK;
    if (c) c->rows = reallocarray(NULL, b->windows, b->width * sizeof *c->rows);
    if (!c || !c->rows) {
        free(c);
        return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " windows of %zu tokens: out of memory",
                        b->windows, b->width);
    }
    c->b = b;
    for (; c->joined < b->sets && rc == 0 && !is_childs(b->pools[0]); c->joined++) {
        block_pool *p = b->pools[c->joined];
        pthread_mutex_lock(&p->lock);
        if (!p->running) rc = start(p, err);
        p->cursors++;
        pthread_mutex_unlock(&p->lock);
    }
    if (rc < 0) sgt_blocks_cursor_close(c);
    else *out = c;
    return rc;
}

void sgt_blocks_cursor_close(sgt_blocks_cursor *c)
{
    if (!c) return;
    for (uint32_t i = 0; i < c->joined && !is_childs(c->b->pools[i]); i++) {
        pthread_mutex_lock(&c->b->pools[i]->lock);
        c->b->pools[i]->cursors--;
        pthread_mutex_unlock(&c->b->pools[i]->lock);
    }
    free(c->rows);
    free(c);
}

/* ---- fetching ---- */

/* Make `pool` the wanted one. Wake the cursors that wait for the previous one, even if no half
 * changes its pool. */
static void want(block_pool *p, uint64_t pool)
{
    p->wanted = pool;
    p->stray = NONE;
    p->late = 0;
    give_pools(p);
    pthread_cond_signal(&p->work);
    pthread_cond_broadcast(&p->arrived);
}

/* Advance `wanted` for a fetch whose windows are in pools `low` to `high`, by the rules above. */
static void steer(block_pool *p, uint64_t low, uint64_t high)
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
static void await_halves(block_pool *p, uint64_t low, uint64_t high)
{
    while (((is_wanted(p, low) && !half_of(p, low)) || (is_wanted(p, high) && !half_of(p, high))) &&
           !p->ended_early)
        pthread_cond_wait(&p->arrived, &p->lock);
}

/* Wait until the blocks of h that hold the pool's windows have arrived. */
static void await_blocks(block_pool *p, half *h, const sgt_window *windows, uint32_t n)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t b = windows[i].block - h->first;
        if (owns(p, &windows[i]) && b < h->count && b > last) last = (uint32_t)b;
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

/* Set tokens[i] to window i if it is the pool's and has arrived in one of these halves (NULL:
 * none). */
static void locate(const block_pool *p, half *const *halves, const sgt_window *windows, uint32_t n,
                   const uint16_t **tokens)
{
    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < 2 && owns(p, &windows[i]) && !tokens[i]; k++)
            if (halves[k] && windows[i].block - halves[k]->first < halves[k]->landed)
                tokens[i] = find(halves[k], &windows[i]);
}

/* Copy the pool's windows to the cursor's rows. */
static void copy(sgt_blocks_cursor *c, const block_pool *p, const sgt_window *windows, uint32_t n,
                 const uint16_t **tokens)
{
    size_t width = c->b->width;
    for (uint32_t i = 0; i < n; i++) {
        uint16_t *to = c->rows + i * width;
        if (i + 2 < n && tokens[i + 2])
            for (size_t line = 0; line < 8; line++)
                __builtin_prefetch((const char *)tokens[i + 2] + 64 * line);
        if (!tokens[i] || !owns(p, &windows[i])) continue;
        memcpy(to, tokens[i], width * sizeof *to);
        tokens[i] = to;
    }
}

/* Fetch those of the windows that are of the pool's set. */
static void fetch_from(sgt_blocks_cursor *c, block_pool *p, const sgt_window *windows, uint32_t n,
                       const uint16_t **tokens)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!owns(p, &windows[i])) continue;
        uint64_t number = pool_of(p, &windows[i]);
        if (number < low) low = number;
        if (number > high) high = number;
    }
    if (low > high || is_childs(p)) return;
    pthread_mutex_lock(&p->lock);
    steer(p, low, high);
    await_halves(p, low, high);
    half *halves[2] = {half_of(p, low), high > low ? half_of(p, low + 1) : NULL};
    for (int k = 0; k < 2; k++)
        if (halves[k]) halves[k]->pins++;
    for (int k = 0; k < 2; k++)
        if (halves[k]) await_blocks(p, halves[k], windows, n);
    locate(p, halves, windows, n, tokens);
    pthread_mutex_unlock(&p->lock);
    copy(c, p, windows, n, tokens);
    pthread_mutex_lock(&p->lock);
    for (int k = 0; k < 2; k++)
        if (halves[k] && !--halves[k]->pins && !is_wanted(p, halves[k]->pool))
            pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

void sgt_blocks_fetch(sgt_blocks_cursor *c, const sgt_window *windows, uint32_t n,
                      const uint16_t **tokens)
{
    memset(tokens, 0, n * sizeof *tokens);
    for (uint32_t i = 0; i < c->b->sets; i++) fetch_from(c, c->b->pools[i], windows, n, tokens);
}

uint64_t sgt_blocks_read(sgt_blocks *b)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < b->sets; i++) {
        pthread_mutex_lock(&b->pools[i]->lock);
        n += b->pools[i]->blocks_read;
        pthread_mutex_unlock(&b->pools[i]->lock);
    }
    return n;
}
