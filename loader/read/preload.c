/* preload.c: the whole set in memory, in one block of huge pages, filled at open by large reads,
 * many of them in flight. Fetches cannot fail after that. Ids are checked as they arrive, so an
 * invalid id is reported before a run begins.
 *
 * A shard's whole file, with its header, starts at a multiple of SGT_RING_ALIGN in memory. So
 * offsets that are aligned in the file are aligned in memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/read/pages.h"
#include "loader/read/ring.h"
#include "loader/rows/rows.h"

#define READ_BYTES ((size_t)1 << 20) /* bytes per read */
/* reads in flight; more did not make the measured disk faster */
#define DEPTH 16u

typedef struct reader {
    sgt_arena arena;
    char detail[288];
    const uint16_t *tokens[]; /* address in the arena of each shard's first token */
} reader;

/* The shards' bytes are read in pieces, in order. Piece n uses reads[n % DEPTH]. Pieces `landed` to
 * `asked` - 1 are in flight. */
typedef struct filling {
    const sgt_set *set;
    const reader *r;
    sgt_ring *ring;
    uint32_t shard; /* shard and byte offset at which the next piece begins */
    uint64_t at;
    int fd; /* descriptor of that shard, through the page cache; -1: not open */
    uint64_t asked, landed;
    sgt_ring_read reads[DEPTH];
    /* 1: the piece was copied from the page cache, so there is no read to wait for */
    int here[DEPTH];
} filling;

static void close_reader(void *p)
{
    reader *r = p;
    if (!r) return;
    sgt_arena_unmap(&r->arena);
    free(r);
}

/* ---- reading ---- */

/* Return the bytes of memory that a shard's file takes, rounded up because its last read may fill
 * whole units of SGT_RING_ALIGN. */
static uint64_t image_size(const sgt_set_shard *h)
{
    return (sgt_shard_bytes(&h->head) + SGT_RING_ALIGN - 1) / SGT_RING_ALIGN * SGT_RING_ALIGN;
}

static char *image(const filling *f, uint32_t shard)
{
    return (char *)(uintptr_t)f->r->tokens[shard] - f->set->shards[shard].head.data;
}

/* Copy the next piece from the page cache if it is there: this is faster, and the disk works on
 * earlier reads meanwhile. Otherwise start a direct read, which saves a copy and evicts nothing
 * from the page cache. If copying fails (the file was cut short, or the disk failed), the ring
 * reads the piece and reports the error. */
static int ask(filling *f, sgt_error *err)
{
    const sgt_set_shard *h = &f->set->shards[f->shard];
    uint64_t left = sgt_shard_bytes(&h->head) - f->at;
    unsigned slot = (unsigned)(f->asked++ % DEPTH);
    sgt_ring_read *read = &f->reads[slot];
    *read = (sgt_ring_read){.at = f->at,
                            .bytes = left < READ_BYTES ? (size_t)left : READ_BYTES,
                            .to = image(f, f->shard) + f->at,
                            .shard = f->shard};
    if (f->fd < 0 && (f->fd = sgt_set_open_shard(f->set, f->shard, err)) < 0) return f->fd;
    f->here[slot] = sgt_resident(f->fd, read->at, read->bytes) &&
                    sgt_pread_all(f->fd, read->to, read->bytes, read->at, h->path, NULL) == 0;
    if (!f->here[slot]) sgt_ring_ask(f->ring, read);
    f->at += read->bytes;
    if (f->at < sgt_shard_bytes(&h->head)) return SGT_OK;
    close(f->fd);
    f->fd = -1;
    f->shard++;
    f->at = 0;
    return SGT_OK;
}

/* Wait for the oldest piece and check its ids. */
static int land(filling *f, sgt_error *err)
{
    unsigned slot = (unsigned)(f->landed++ % DEPTH);
    sgt_ring_read *read = &f->reads[slot];
    uint64_t data = f->set->shards[read->shard].head.data, end = read->at + read->bytes;
    uint64_t begin = read->at < data ? data : read->at, first = (begin - data) / 2;
    int rc = f->here[slot] ? SGT_OK : sgt_ring_wait(f->ring, read, 1, err);
    if (rc < 0 || begin >= end) return rc;
    const uint16_t *ids = f->r->tokens[read->shard] + first;
    size_t n = (size_t)(end - begin) / 2, i = sgt_rows_first_beyond(ids, n, f->set->vocab);
    return i == n ? SGT_OK : sgt_set_bad_id(f->set, read->shard, first + i, ids[i], err);
}

static int read_all(filling *f, sgt_error *err)
{
    int rc = SGT_OK;
    while (rc == 0 && (f->shard < f->set->count || f->landed < f->asked)) {
        if (f->shard < f->set->count && f->asked - f->landed < DEPTH) rc = ask(f, err);
        else rc = land(f, err);
    }
    if (f->fd >= 0) close(f->fd);
    return rc;
}

static int fill(reader *r, const sgt_set *set, const sgt_reader_options *o, sgt_error *err)
{
    sgt_rings *rings;
    filling f = {.set = set, .r = r, .fd = -1};
    int rc = sgt_rings_open(&rings, set, o, err);
    if (rc < 0) return rc;
    const char *without = sgt_rings_detail(rings);
    snprintf(r->detail, sizeof r->detail, *without ? "preload (%s)" : "preload%s", without);
    sgt_helpers prefault;
    sgt_prefault_start(&prefault, &r->arena);
    rc = sgt_ring_open(&f.ring, rings, DEPTH, NULL, 0, err);
    if (rc == 0) rc = read_all(&f, err);
    sgt_helpers_end(&prefault);
    /* if reads may still be in flight, leak the memory that they write to */
    if (sgt_ring_close(f.ring)) r->arena = (sgt_arena){0};
    sgt_rings_close(rings);
    return rc;
}

/* ---- opening ---- */

static void lay_out(reader *r, const sgt_set *set)
{
    char *at = r->arena.base;
    for (uint32_t i = 0; i < set->count; i++) {
        r->tokens[i] = (const uint16_t *)(const void *)(at + set->shards[i].head.data);
        at += image_size(&set->shards[i]);
    }
}

/* Check free memory before mapping: the kernel would grant the memory and kill the process when it
 * is written. */
static int check_memory(uint64_t bytes, sgt_error *err)
{
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    if (bytes <= m.available) return SGT_OK;
    return sgt_fail(err, SGT_ENOMEM,
                    "the set takes %" PRIu64 " MiB and %s has %" PRIu64
                    " MiB of free memory: it cannot be preloaded (use --loader mmap or "
                    "--loader uring, which need no memory for it)",
                    (bytes + (1 << 20) - 1) >> 20, m.limit, m.available >> 20);
}

static int open_reader(void **out, const sgt_set *set, const sgt_reader_options *o, sgt_error *err)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < set->count; i++) bytes += image_size(&set->shards[i]);
    int rc = check_memory(bytes, err);
    if (rc < 0) return rc;
    reader *r = calloc(1, sizeof *r + set->count * sizeof *r->tokens);
    if (!r) return sgt_fail_memory(err, set->shards[0].path);
    if ((rc = sgt_arena_map(&r->arena, (size_t)bytes, 0, err)) == 0) {
        lay_out(r, set);
        rc = fill(r, set, o, err);
    }
    if (rc < 0) {
        close_reader(r);
        return rc;
    }
    *out = r;
    return SGT_OK;
}

static const char *detail(const void *p) { return ((const reader *)p)->detail; }

/* Open a cursor, which needs no state: all windows are in the arena. */
static int open_cursor(void **cursor, void *p, sgt_error *err)
{
    (void)err;
    *cursor = p;
    return SGT_OK;
}

static void close_cursor(void *cursor) { (void)cursor; }

static int fetch(void *cursor, const sgt_window *windows, uint32_t n, const uint16_t **tokens,
                 sgt_error *err)
{
    const reader *r = cursor;
    (void)err;
    for (uint32_t i = 0; i < n; i++) tokens[i] = r->tokens[windows[i].shard] + windows[i].offset;
    return SGT_OK;
}

const sgt_reader_ops sgt_read_preload = {
    open_reader, close_reader, detail, open_cursor, close_cursor, fetch, NULL, 0, NULL};
