/* mmap.c: every shard mapped whole, once. The page cache holds what was read; other processes share it. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "read/reader.h"

typedef struct map {
    const uint16_t *tokens;
    void *base;
    size_t size;
} map;

typedef struct reader {
    uint32_t count;
    map maps[];
} reader;

static void close_reader(void *p)
{
    reader *r = p;
    if (!r) return;
    for (uint32_t i = 0; i < r->count; i++) munmap(r->maps[i].base, r->maps[i].size);
    free(r);
}

/* Random windows: without this advice each fault reads ahead megabytes of which a window uses two kilobytes. */
static int advice_for(sgt_sampling s)
{
    return s == SGT_SAMPLING_SEQUENTIAL ? MADV_SEQUENTIAL : s == SGT_SAMPLING_BLOCK ? MADV_NORMAL : MADV_RANDOM;
}

static int map_shard(map *m, const sgt_set *set, uint32_t shard, int advice, sgt_error *err)
{
    const sgt_set_shard *h = &set->shards[shard];
    uint64_t size = h->head.data + 2 * h->head.tokens;
    int fd = sgt_set_open_shard(set, shard, err);
    if (fd < 0) return fd;
    void *base = size > SIZE_MAX ? MAP_FAILED : mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    int rc = base == MAP_FAILED ? sgt_fail_errno(err, "%s: mapping it", h->path) : SGT_OK;
    close(fd); /* a map keeps its file */
    if (rc < 0) return rc;
    madvise(base, (size_t)size, advice); /* advice: refused, it is only slower */
    *m = (map){(const uint16_t *)((const char *)base + h->head.data), base, (size_t)size};
    return SGT_OK;
}

static int open_reader(void **out, const sgt_set *set, const sgt_reader_options *o, sgt_error *err)
{
    reader *r = calloc(1, sizeof *r + set->count * sizeof *r->maps);
    if (!r) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", set->shards[0].path);
    for (; r->count < set->count; r->count++) {
        int rc = map_shard(&r->maps[r->count], set, r->count, advice_for(o->sampling), err);
        if (rc < 0) {
            close_reader(r);
            return rc;
        }
    }
    *out = r;
    return SGT_OK;
}

static const char *detail(const void *p)
{
    (void)p;
    return "mmap";
}

/* The maps are all that a cursor needs. */
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
    for (uint32_t i = 0; i < n; i++) tokens[i] = r->maps[windows[i].shard].tokens + windows[i].offset;
    return SGT_OK;
}

const sgt_reader_ops sgt_read_mmap = {open_reader, close_reader, detail, open_cursor, close_cursor, fetch, NULL, 0};
