/* uring.c: the reader that reads windows with io_uring, bypassing the page cache, for sets larger
 * than memory. It reads the windows of announced batches while the rows of the current batch are
 * written. Rows are copied directly from the memory into which the disk has written. If io_uring is
 * unavailable, the reader `mmap` is used instead.
 *
 * A cursor has a ring of `places`. Each place holds the reads and the memory for the windows of one
 * fetch. The current place belongs to the last fetch. The places after it belong to the announced
 * fetches, in the order in which they were announced. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/memory.h"
#include "loader/read/blocks.h"
#include "loader/read/ring.h"

/* maximum number of reads in flight; a higher number did not make the disk that we measured
 * faster */
#define DEPTH 128
/* number of windows that batch.c announces before it fetches them. It is DEPTH plus 32 (the windows
 * of a usual batch), so that DEPTH reads of later windows are in flight even while the cursor waits
 * for a batch */
#define AHEAD 160
/* maximum size in bytes of all announced windows together. However, one batch is announced even if
 * it is larger */
#define MOST_AHEAD ((size_t)64 << 20)

typedef struct reader {
    sgt_rings *rings;
    sgt_blocks *blocks; /* NULL unless the sampling is `block` */
    const sgt_set *set;
    uint32_t windows; /* maximum number of windows per fetch */
    uint32_t places;
    size_t room;
} reader;

typedef struct cursor {
    const reader *r;
    sgt_ring *ring;
    sgt_arena memory;
    /* used: index of the current place in the ring; known: number of fetches that have been
     * announced but not made yet, to which the places after the current one belong */
    uint32_t used, known;
    /* array of `places` x `windows` reads: for each place, the reads of one fetch */
    sgt_ring_read *reads;
} cursor;

/* ---- opening ---- */

static void close_reader(void *p)
{
    reader *r = p;
    sgt_blocks_close(r->blocks);
    sgt_rings_close(r->rings);
    free(r);
}

static int open_reader(void **out, const char **remark, const sgt_set *set,
                       const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err)
{
    uint32_t windows = o->batch / o->ranks;
    size_t bytes = set->width * ((size_t)o->seq + 1), ahead = (AHEAD + windows - 1) / windows;
    reader *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, set->shards[0].path);
    while (ahead > 1 && ahead * windows * bytes > MOST_AHEAD) ahead--;
    r->set = set;
    r->windows = windows;
    r->places = (uint32_t)ahead + 1;
    int rc = sgt_rings_open(&r->rings, remark, set, &o->notice, err);
    if (rc == 0) rc = sgt_blocks_open(&r->blocks, r->rings, set, o, mix, err);
    if (rc < 0) {
        close_reader(r);
        return rc;
    }
    r->room = sgt_rings_room(r->rings, bytes);
    *out = r;
    return SGT_OK;
}

static void close_cursor(void *p)
{
    cursor *c = p;
    if (!c) return;
    /* if the ring has failed, the kernel may still write into this memory, so leave it mapped */
    if (sgt_ring_close(c->ring) == 0) sgt_arena_unmap(&c->memory);
    free(c->reads);
    free(c);
}

static int open_cursor(void **out, void *p, sgt_error *err)
{
    const reader *r = p;
    size_t reads = (size_t)r->places * r->windows;
    cursor *c = calloc(1, sizeof *c);
    if (c) *c = (cursor){.r = r, .reads = calloc(reads, sizeof *c->reads)};
    int rc = SGT_ENOMEM;
    if (!c || !c->reads || reads > SIZE_MAX / r->room)
        sgt_fail(err, SGT_ENOMEM, "%zu windows of %zu bytes: out of memory", reads, r->room);
    else if ((rc = sgt_arena_map(&c->memory, reads * r->room, 0, err)) == 0)
        rc = sgt_ring_open(&c->ring, r->rings, DEPTH, c->memory.base, reads * r->room, err);
    if (rc < 0) {
        close_cursor(c);
        return rc;
    }
    *out = c;
    return SGT_OK;
}

/* ---- reading ---- */

/* Return the array of reads for a fetch: the current fetch if `after` is 0, the first announced
 * fetch if it is 1, the second if it is 2, and so on. */
static sgt_ring_read *place_at(cursor *c, uint32_t after)
{
    return c->reads + (size_t)((c->used + after) % c->r->places) * c->r->windows;
}

/* Fill in a read for each of n windows, and queue it if tokens[i] is NULL, where i is the index of
 * the window. If `tokens` itself is NULL, queue all reads. */
static void ask(cursor *c, sgt_ring_read *reads, const sgt_window *windows, uint32_t n,
                const void *const *tokens)
{
    const size_t width = c->r->set->width;
    for (uint32_t i = 0; i < n; i++) {
        const sgt_window *w = &windows[i];
        reads[i] = (sgt_ring_read){
            .shard = w->shard,
            .at = c->r->set->shards[w->shard].head.data + width * w->offset,
            .bytes = width * (size_t)w->tokens,
            .to = c->memory.base + (size_t)(&reads[i] - c->reads) * c->r->room,
        };
        if (!tokens || !tokens[i]) sgt_ring_ask(c->ring, &reads[i]);
    }
}

static int expect(void *cursor_, const sgt_window *windows, uint32_t n)
{
    cursor *c = cursor_;
    if (c->r->blocks) return 1; /* blocks are read ahead without announcements */
    /* The windows announced earlier are not needed any more. Their reads cannot be stopped, so the
     * structs of these reads are reused only when the reads have ended. */
    if (!n) c->known = 0;
    if (!n) return 1;
    sgt_ring_read *reads = place_at(c, c->known + 1);
    if (c->known + 1 == c->r->places || sgt_ring_pending(reads, c->r->windows)) return 0;
    ask(c, reads, windows, n, NULL);
    c->known++;
    sgt_ring_submit(c->ring);
    return 1;
}

/* Set tokens[i] to the address of the tokens of window i, for n windows. A window whose block is in
 * memory is copied from the block. If this fetch was announced, the other windows have been read
 * ahead of time; otherwise they are read now. */
static int fetch(void *cursor_, const sgt_window *windows, uint32_t n, const void **tokens,
                 sgt_error *err)
{
    cursor *c = cursor_;
    memset(tokens, 0, n * sizeof *tokens);
    if (c->r->blocks)
        sgt_blocks_fetch(c->r->blocks, windows, n, c->memory.base, c->r->room, tokens);
    if (c->known) {
        c->used = (c->used + 1) % c->r->places;
        c->known--;
    } else {
        ask(c, place_at(c, 0), windows, n, tokens);
    }
    sgt_ring_read *reads = place_at(c, 0);
    int rc = sgt_ring_wait(c->ring, reads, n, err);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        if (!tokens[i]) tokens[i] = reads[i].data;
    return rc;
}

const sgt_reader_ops sgt_read_uring = {open_reader, close_reader, open_cursor, close_cursor,
                                       fetch,       expect,       AHEAD,       NULL};
