/* preload.c: the whole set in memory, in one block of huge pages filled by large reads; after that there is
 * nothing left that can fail. Ids are checked here, as they are read, so that a bad one ends a run before it begins. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/memory.h"
#include "read/reader.h"
#include "rows/rows.h"

#define READ_BYTES ((size_t)1 << 20) /* a read: large for the disk, and still in L2 when the ids are looked at */

typedef struct reader {
    sgt_arena arena;
    const uint16_t *tokens[]; /* of each shard */
} reader;

static void close_reader(void *p)
{
    reader *r = p;
    if (!r) return;
    sgt_arena_unmap(&r->arena);
    free(r);
}

static int check_ids(const sgt_set *set, uint32_t shard, const uint16_t *ids, size_t n, uint64_t at, sgt_error *err)
{
    if (sgt_rows_best()->largest(ids, n) < set->vocab) return SGT_OK;
    size_t i = 0;
    while (ids[i] < set->vocab) i++;
    return sgt_set_bad_id(set, shard, at + i, ids[i], err);
}

static int read_shard(const sgt_set *set, uint32_t shard, uint16_t *to, sgt_error *err)
{
    const sgt_set_shard *h = &set->shards[shard];
    int rc = SGT_OK, fd = sgt_set_open_shard(set, shard, err);
    if (fd < 0) return fd;
    for (uint64_t at = 0; at < h->head.tokens && rc == 0; at += READ_BYTES / 2) {
        uint64_t left = h->head.tokens - at;
        size_t n = left < READ_BYTES / 2 ? (size_t)left : READ_BYTES / 2;
        rc = sgt_pread_all(fd, to + at, 2 * n, h->head.data + 2 * at, h->path, err);
        if (rc == 0) rc = check_ids(set, shard, to + at, n, at, err);
    }
    close(fd);
    return rc;
}

static void lay_out(reader *r, const sgt_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        r->tokens[i] = sgt_arena_take(&r->arena, (size_t)set->shards[i].head.tokens, 2);
}

/* The kernel would promise the memory and end the process when it is touched: better to say so now. */
static int check_memory(uint64_t bytes, const char *root, sgt_error *err)
{
    sgt_memory m;
    sgt_memory_look(&m, root);
    if (bytes <= m.available) return SGT_OK;
    return sgt_fail(err, SGT_ENOMEM,
                    "the set takes %" PRIu64 " MiB and %s has %" PRIu64 " MiB of memory to be had: it cannot be "
                    "preloaded (--loader mmap or --loader uring: these readers need no memory for it)",
                    (bytes + (1 << 20) - 1) >> 20, m.limit, m.available >> 20);
}

static int open_reader(void **out, const sgt_set *set, const sgt_reader_options *o, sgt_error *err)
{
    int rc = check_memory(2 * set->tokens, o->fault.memory, err);
    if (rc < 0) return rc;
    reader *r = calloc(1, sizeof *r + set->count * sizeof *r->tokens);
    if (!r) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", set->shards[0].path);
    lay_out(r, set);
    rc = sgt_arena_map(&r->arena, r->arena.used, 0, err);
    if (rc < 0) {
        free(r);
        return rc;
    }
    lay_out(r, set);
    for (uint32_t i = 0; i < set->count && rc == 0; i++) rc = read_shard(set, i, (uint16_t *)r->tokens[i], err);
    if (rc < 0) {
        close_reader(r);
        return rc;
    }
    *out = r;
    return SGT_OK;
}

static const char *detail(const void *p)
{
    (void)p;
    return "preload";
}

/* The arena is all that a cursor needs. */
static int open_cursor(void **cursor, void *p, sgt_error *err)
{
    (void)err;
    *cursor = p;
    return SGT_OK;
}

static void close_cursor(void *cursor)
{
    (void)cursor;
}

static int fetch(void *cursor, const sgt_window *windows, uint32_t n, const uint16_t **tokens, sgt_error *err)
{
    const reader *r = cursor;
    (void)err;
    for (uint32_t i = 0; i < n; i++) tokens[i] = r->tokens[windows[i].shard] + windows[i].offset;
    return SGT_OK;
}

const sgt_reader_ops sgt_read_preload = {open_reader, close_reader, detail, open_cursor, close_cursor, fetch, NULL, 0,
                                         NULL};
