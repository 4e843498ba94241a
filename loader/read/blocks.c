/* blocks.c: see blocks.h. Each set of a mix has its own store of blocks.
 *
 * A store has slots for the blocks of 2 1/8 pools; block n goes into slot n mod capacity. Two pools
 * are the one that is being drawn from and the next one. The extra eighth keeps the disk busy while
 * a cursor waits for the last blocks of the next pool. A cursor starts reads of further blocks in
 * each fetch, whichever cursor will need them. Blocks are read in ascending order, under the
 * store's lock:
 *
 *     landed <= asked <= begin + capacity
 *
 * Reads of blocks below `landed` have ended, perhaps in failure. Blocks `landed` ... `asked` - 1
 * are being read, at most DEPTH of them at once. A block stays in its slot until a later block is
 * read into the same slot. `begin` is the lowest block that must stay. Usually it is the first
 * block of the last fetch's pool, which leaves room to read the next pool. Cursors move to the next
 * pool at different times. So blocks of the previous pool are replaced one by one, and a cursor
 * that still needs a replaced block reads its window separately. */
#include "loader/read/blocks.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/rows/rows.h"

#define DEPTH 32u /* blocks in flight: 8 MiB */
#define PARTS 4u  /* maximum number of extents per block */
/* number of bytes at the beginning of a window that are prefetched by software. While these bytes
 * are copied, the hardware prefetcher loads the rest of the window */
#define EXPECTED ((size_t)512)
#define NONE UINT64_MAX

typedef struct block {
    uint64_t number; /* index of the block in this slot; NONE: the slot is empty */
    /* number of extents that the block consists of, each of which is one read; 0: the block could
     * not be read, or consists of more than PARTS extents */
    uint32_t parts;
    sgt_extent extents[PARTS];
    sgt_ring_read reads[PARTS];
} block;

typedef struct store {
    const sgt_set *set;
    const sgt_sampler *sampler;
    const sgt_rings *rings;
    pid_t pid;
    size_t room; /* bytes of memory per block */
    uint64_t per_pool, capacity;
    sgt_arena arena;
    sgt_ring *ring;
    block *blocks; /* (capacity) */
    sgt_sampler_memo memo;
    /* protects the fields below, and also `blocks`, `ring` and `memo` */
    pthread_mutex_t lock;
    /* Indices of blocks. landed: lowest block whose reads may not have ended; asked: block whose
     * reads are started next; begin: lowest block that must stay in its slot (NONE until the first
     * fetch) */
    uint64_t landed, asked, begin;
    /* NONE if the store could serve the last fetch. Otherwise the index of the first block in the
     * pool that this fetch needed. If the next fetch needs the same pool, the store moves to that
     * pool */
    uint64_t stray;
} store;

struct sgt_blocks {
    uint32_t sets;
    store stores[SGT_BLOCKS_SETS];
};

/* Return whether the window belongs to the store's set. */
static int owns(const store *s, const sgt_window *w)
{
    return w->shard - s->sampler->first < s->sampler->shards;
}

static block *block_at(const store *s, uint64_t number) { return &s->blocks[number % s->capacity]; }

/* ---- reading ---- */

/* Start reading block `asked`. */
static void ask_block(store *s)
{
    block *b = block_at(s, s->asked);
    char *to = s->arena.base + (size_t)(b - s->blocks) * s->room, *end = to + s->room;
    b->number = s->asked++;
    b->parts = sgt_sampler_block(s->sampler, &s->memo, b->number, b->extents, PARTS);
    if (b->parts > PARTS) b->parts = 0;
    for (uint32_t k = 0; k < b->parts; k++) {
        sgt_extent *e = &b->extents[k];
        e->shard += s->sampler->first;
        b->reads[k] =
            (sgt_ring_read){.at = s->set->shards[e->shard].head.data + s->set->width * e->offset,
                            .bytes = s->set->width * (size_t)e->tokens,
                            .to = to,
                            .shard = e->shard};
        sgt_ring_ask(s->ring, &b->reads[k]);
        to += sgt_rings_room(s->rings, b->reads[k].bytes);
        assert(to <= end);
    }
}

/* Wait until block s->landed has been read, and advance s->landed. Ignore a read error here: a
 * caller that needs a window of this block will read that window itself and get the error. */
static void land(store *s)
{
    block *b = block_at(s, s->landed++);
    if (sgt_ring_wait(s->ring, b->reads, b->parts, NULL) < 0) b->parts = 0;
}

static int has_arrived(const store *s)
{
    const block *b = block_at(s, s->landed);
    return s->landed < s->asked && !sgt_ring_pending(b->reads, b->parts);
}

/* Collect the blocks that have arrived. Then start reading further blocks until the store or the
 * ring is full. */
static void keep_reading(store *s)
{
    sgt_ring_submit(s->ring);
    while (has_arrived(s)) land(s);
    /* Besides the limit DEPTH, allow at most `capacity` blocks in flight. Without this limit, a
     * block could be read into a slot whose previous block is still being read, because `begin` can
     * advance past `landed`. */
    uint64_t most = s->capacity < DEPTH ? s->capacity : DEPTH;
    while (s->asked < s->begin + s->capacity && s->asked - s->landed < most) ask_block(s);
    sgt_ring_submit(s->ring);
}

/* Wait for all reads in flight, then make `to` the next block to read. */
static void jump(store *s, uint64_t to)
{
    while (s->landed < s->asked) land(s);
    s->landed = s->asked = s->begin = to;
}

/* Prepare the store for a fetch of windows in blocks `low` ... `high`. If the store has these
 * blocks or will read them soon, move `begin` forward if necessary, and return 1. Return 0 if the
 * caller must read the windows itself: the store has read nothing yet, the blocks are too far
 * ahead, or they have been replaced.
 *
 * If the previous fetch also got 0 for the same pool, the run has probably moved to that pool
 * permanently. In that case, jump to that pool and return 1. */
static int steer(store *s, uint64_t low, uint64_t high)
{
    /* the pool's first block */
    uint64_t pool = low - low % sgt_sampler_blocks(s->sampler) % s->per_pool;
    int dropped = high < s->asked && block_at(s, high)->number != high;
    if (s->begin == NONE || pool > s->begin + s->capacity || dropped) {
        int again = pool == s->stray;
        s->stray = again ? NONE : pool;
        if (again) jump(s, pool);
        return again;
    }
    s->stray = NONE;
    if (pool > s->begin) s->begin = pool;
    if (high >= s->begin + s->capacity) s->begin = high + 1 - s->capacity;
    return 1;
}

/* ---- opening ---- */

static int open_store(store *s, sgt_rings *rings, const sgt_set *set, const sgt_sampler *sampler,
                      sgt_error *err)
{
    uint64_t blocks = sgt_sampler_blocks(sampler), most = sampler->pool_blocks;
    size_t tokens = (size_t)sgt_sampler_block_windows(sampler) * sampler->seq + PARTS;
    *s = (store){.set = set, .sampler = sampler, .rings = rings, .pid = getpid()};
    s->begin = s->stray = NONE;
    s->per_pool = blocks < most ? blocks : most;
    s->capacity = 2 * s->per_pool + s->per_pool / 8;
    s->room = sgt_rings_room(rings, set->width * (tokens + (PARTS - 1) * sgt_rings_align(rings)));
    pthread_mutex_init(&s->lock, NULL);
    if (!(s->blocks = calloc(s->capacity, sizeof *s->blocks)))
        return sgt_fail(err, SGT_ENOMEM, "%" PRIu64 " blocks: out of memory", s->capacity);
    for (uint64_t i = 0; i < s->capacity; i++) s->blocks[i].number = NONE;
    int rc = sgt_arena_map(&s->arena, s->capacity * s->room, 0, err);
    return rc < 0 ? rc : sgt_ring_open(&s->ring, rings, DEPTH, NULL, 0, err);
}

static void close_store(store *s)
{
    /* keep the arena mapped if the kernel may still write into it */
    if (sgt_ring_close(s->ring) == 0) sgt_arena_unmap(&s->arena);
    free(s->blocks);
    pthread_mutex_destroy(&s->lock);
}

int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err)
{
    int rc = SGT_OK;
    *out = NULL;
    if (o->sampling != SGT_SAMPLING_BLOCK) return SGT_OK;
    if (mix->sets > SGT_BLOCKS_SETS) {
        sgt_say(&o->notice,
                "buffering blocks of %" PRIu32
                " sets would take too much memory: reading windows one by one instead",
                mix->sets);
        return SGT_OK;
    }
    if (o->seq > mix->samplers[0].block_tokens) return SGT_OK;
    sgt_blocks *b = calloc(1, sizeof *b);
    if (!b) return sgt_fail_memory(err, "blocks");
    for (; b->sets < mix->sets && rc == SGT_OK; b->sets++)
        rc = open_store(&b->stores[b->sets], rings, set, &mix->samplers[b->sets], err);
    if (rc < 0) sgt_blocks_close(b);
    else *out = b;
    return rc;
}

void sgt_blocks_close(sgt_blocks *b)
{
    for (uint32_t i = 0; b && i < b->sets; i++) close_store(&b->stores[i]);
    free(b);
}

/* ---- fetching ---- */

/* Return the address of a window's tokens in its block, or NULL if the store does not have the
 * block. */
static const void *find(const store *s, const sgt_window *w)
{
    const block *b = block_at(s, w->block);
    if (b->number != w->block || w->block >= s->landed) return NULL;
    for (uint32_t k = 0; k < b->parts; k++) {
        const sgt_extent *e = &b->extents[k];
        if (e->shard == w->shard && w->offset >= e->offset)
            return b->reads[k].data + s->set->width * (w->offset - e->offset);
    }
    return NULL;
}

/* For each window i that belongs to this store's set and whose block is stored, copy the window to
 * memory + i * room, and set tokens[i] to the address of the copy. */
static void fetch_from(store *s, const sgt_window *windows, uint32_t n, uint64_t low, uint64_t high,
                       char *memory, size_t room, const void **tokens)
{
    const size_t bytes = s->set->width * ((size_t)s->sampler->seq + 1);
    if (!steer(s, low, high)) return;
    keep_reading(s);
    while (s->landed <= high && s->landed < s->asked) {
        land(s);
        keep_reading(s);
    }
    for (uint32_t i = 0; i < n; i++)
        if (owns(s, &windows[i]) && (tokens[i] = find(s, &windows[i])))
            sgt_rows_expect(tokens[i], bytes < EXPECTED ? bytes : EXPECTED);
    for (uint32_t i = 0; i < n; i++)
        if (owns(s, &windows[i]) && tokens[i])
            tokens[i] = memcpy(memory + i * room, tokens[i], bytes);
}

void sgt_blocks_fetch(sgt_blocks *b, const sgt_window *windows, uint32_t n, char *memory,
                      size_t room, const void **tokens)
{
    for (store *s = b->stores; s < b->stores + b->sets; s++) {
        uint64_t low = UINT64_MAX, high = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (!owns(s, &windows[i])) continue;
            if (windows[i].block < low) low = windows[i].block;
            if (windows[i].block > high) high = windows[i].block;
        }
        /* Skip the store in a child after fork: the ring belongs to the parent, and the lock may
         * have been held by a thread that does not exist in the child. */
        if (low > high || s->pid != getpid()) continue;
        pthread_mutex_lock(&s->lock);
        fetch_from(s, windows, n, low, high, memory, room, tokens);
        pthread_mutex_unlock(&s->lock);
    }
}
