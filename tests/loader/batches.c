#include "tests/loader/batches.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

int scalar;
static const uint64_t lengths[] = {5000, 17, 1234, 40, 3000};

void put_folder(void)
{
    char name[64];
    cr_assert_eq(mkdir("d", 0777), 0);
    for (uint32_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "d/train_%06u.bin", i);
        if (i == 3) put_foreign(name, i, lengths[i]);
        else put_shard(name, i, lengths[i]);
    }
}

sgt_loader *open_loader(const char *path, const sgt_loader_options *o, const reader_fault *fault)
{
    sgt_loader *l;
    set_faults(fault);
    must(sgt_loader_open(&l, path, o, why));
    if (scalar) sgt_loader_set_rows(l, &sgt_rows_plain);
    return l;
}

int open_only(const char *path, const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader *l;
    int rc = sgt_loader_open(&l, path, o, err);
    if (rc == 0) sgt_loader_close(l);
    return rc;
}

sgt_cursor *open_cursor(const sgt_loader *l)
{
    sgt_cursor *c;
    must(sgt_cursor_open(&c, l, why));
    return c;
}

/* Read rows of uint16 of batch k, and compare them with the shards' content. */
static void check_rows(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map,
                       uint16_t *rows)
{
    uint32_t T = l->o.seq, n = l->o.batch / l->o.ranks;
    must(read_rows(l, c, k, rows, why));
    for (uint32_t r = 0; r < n; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(l, k * l->o.batch + l->o.rank + r * l->o.ranks, &shard, &at);
        for (uint32_t t = 0; t <= T; t++)
            cr_assert_eq(rows[r * (T + 1) + t], token_at(map ? map[shard] : shard, at + t),
                         "batch %lu, row %u, token %u", k, r, t);
    }
}

static uint16_t *room_of_rows(const sgt_loader *l)
{
    return malloc((size_t)2 * (l->o.batch / l->o.ranks) * (l->o.seq + 1));
}

void check_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map)
{
    size_t T = l->o.seq, ids = l->o.batch / l->o.ranks * T;
    scoped_memory uint16_t *rows = room_of_rows(l);
    scoped_memory int32_t *in = malloc(4 * ids), *to = malloc(4 * ids);
    scoped_memory int64_t *in64 = malloc(8 * ids), *to64 = malloc(8 * ids);
    sgt_loader_batch i64 = {.output = SGT_OUTPUT_I64, .inputs = in64, .targets = to64};
    check_rows(l, c, k, map, rows);
    must(read_i32(l, c, k, in, to, why));
    must(sgt_loader_read(l, c, k, 1, &i64, why));
    for (size_t i = 0; i < ids; i++) {
        const uint16_t *id = rows + i / T * (T + 1) + i % T;
        cr_assert(in[i] == id[0] && to[i] == id[1], "batch %lu, id %zu", k, i);
        cr_assert(in64[i] == id[0] && to64[i] == id[1], "batch %lu, id %zu", k, i);
    }
}

void check_run(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t n, const uint32_t *map)
{
    scoped_memory uint16_t *rows = room_of_rows(l);
    for (uint64_t k = first; k < first + n; k++) check_rows(l, c, k, map, rows);
}

void check_loader(const char *path, const sgt_loader_options *o, const reader_fault *fault,
                  const uint32_t *map)
{
    scoped(sgt_loader) *l = open_loader(path, o, fault);
    scoped(sgt_cursor) *c = open_cursor(l);
    for (uint64_t k = 0; k < 200; k++) check_batch(l, c, k, map);
    check_batch(l, c, 123456789, map);
    check_batch(l, c, 0, map);
}

unsigned open_descriptors(void)
{
    unsigned n = 0;
    scoped(DIR) *d = opendir("/proc/self/fd");
    while (readdir(d)) n++;
    return n;
}
