/* blocks.c: see blocks.h. Each set has its own store of blocks.
 *
 * A store has slots for the blocks of 2 1/8 pools; block n goes into slot n mod capacity. Two of
 * these pools are the one from which rows are drawn and the one after it. The extra eighth keeps
 * the disk busy while a cursor waits for the last blocks of the next pool. In each fetch, a cursor
 * starts reads of further blocks, no matter which cursor will need them. Blocks are read in
 * ascending order, under the store's lock:
 *
 *     landed <= asked <= begin + capacity
 *
 * The reads of blocks below `landed` have ended, perhaps in failure. Blocks landed ... asked-1 are
 * being read, at most DEPTH of them at once. A block stays in its slot until a later block is read
 * into that slot. `begin` is the lowest block that must stay in its slot. Usually it is the first
 * block of the pool that the last fetch needed, so that there is room to read the next pool.
 * Cursors move to the next pool at different times. Therefore, blocks of the previous pool are
 * replaced one by one, and a cursor that still needs a replaced block reads its window
 * separately. */
#include "loader/read/blocks.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/memory.h"
#include "loader/rows/rows.h"

#define DEPTH 32u /* maximum number of blocks that are being read at the same time: 8 MiB */
#define PARTS 4u  /* maximum number of extents per block */
/* number of bytes at the beginning of a window that are prefetched into the CPU caches by
 * instructions. While these bytes are copied, the hardware prefetcher loads the rest of the
 * window */
#define EXPECTED ((size_t)512)
#define NONE UINT64_MAX

typedef struct block {
    uint64_t number; /* index of the block in this slot; NONE: the slot is empty */
    /* number of extents of the block, each of which takes one read; 0: the block could not be read,
     * or has more than PARTS extents */
    uint32_t parts;
    sgt_extent extents[PARTS];
    sgt_ring_read reads[PARTS];
} block;

typedef struct store {
    const sgt_set *set;
    const sgt_sampler *sampler;
    const sgt_rings *rings;
    pid_t pid;
    size_t room; /* bytes of memory for one block */
    uint64_t per_pool, capacity;
    sgt_arena arena;
    sgt_ring *ring;
    block *blocks; /* (capacity) */
    sgt_sampler_memo memo;
    /* protects the fields below, as well as `blocks`, `ring` and `memo` */
    pthread_mutex_t lock;
    /* Indices of blocks. landed: lowest block whose reads may not have ended; asked: next block to
     * read; begin: lowest block that must stay in its slot, or NONE until the store first begins to
     * read */
    uint64_t landed, asked, begin;
    /* NONE if the last fetch found its blocks in the store. Otherwise, the index of the first block
     * of the pool that this fetch needed. If the next fetch needs the same pool, the store moves to
     * that pool */
    uint64_t stray;
} store;

struct sgt_blocks {
    uint32_t sets;
    store stores[SGT_BLOCKS_SETS];
};

/* Return 1 if window *w is in a shard of the store's set, otherwise 0. */
static int owns(const store *s, const sgt_window *w)
{
    return w->shard - s->sampler->first < s->sampler->shards;
}

static block *block_at(const store *s, uint64_t number) { return &s->blocks[number % s->capacity]; }

/* ---- reading ---- */

/* Start to read the block with index s->asked, and advance s->asked. */
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

/* Wait until the reads of block s->landed have ended, and advance s->landed. Ignore a read error
 * here: a caller that needs a window of this block reads the window itself, and gets the error
 * then. */
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

/* Advance s->landed past the blocks that have been read. After that, start to read further blocks,
 * until no slot is free or DEPTH blocks are being read. */
static void keep_reading(store *s)
{
    sgt_ring_submit(s->ring);
    while (has_arrived(s)) land(s);
    /* At most DEPTH blocks are read at the same time, and also at most `capacity`. Without the
     * second limit, a block could be read into a slot whose previous block is still being read,
     * because `begin` can advance past `landed`. */
    uint64_t most = s->capacity < DEPTH ? s->capacity : DEPTH;
    while (s->asked < s->begin + s->capacity && s->asked - s->landed < most) ask_block(s);
    sgt_ring_submit(s->ring);
}

/* Wait for all reads that have been started, and make block `to` the next block to read. */
static void jump(store *s, uint64_t to)
{
    while (s->landed < s->asked) land(s);
    s->landed = s->asked = s->begin = to;
}

/* Prepare the store for a fetch of windows in blocks `low` ... `high`. Return 1 if the store has
 * these blocks or will read them soon; for this, move `begin` forward if necessary. Return 0 if the
 * caller must read the windows itself, because the store has read nothing yet, because the blocks
 * are too far ahead, or because later blocks have replaced them.
 *
 * If the previous fetch needed the same pool and also got 0, the run has probably moved to that
 * pool permanently. In this case, jump to that pool and return 1. */
static int steer(store *s, uint64_t low, uint64_t high)
{
    /* first block of the pool that contains block `low` */
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
    /* if the ring has failed, the kernel may still write into the arena, so leave it mapped */
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

/* Return the address of the tokens of window *w in its block, or NULL if the store does not have
 * this block. */
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

/* For each window i that belongs to the set of this store and whose block is in memory, copy the
 * window to memory + i * room, and set tokens[i] to the address of the copy. */
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
        /* Skip the store if this is a child process after fork: the ring belongs to the parent, and
         * the lock may have been held by a thread that does not exist in the child. */
        if (low > high || s->pid != getpid()) continue;
        pthread_mutex_lock(&s->lock);
        fetch_from(s, windows, n, low, high, memory, room, tokens);
        pthread_mutex_unlock(&s->lock);
    }
}
