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

/* Check that the int64 output of batch k holds the same ids as `rows`. */
static void check_wide(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint16_t *rows)
{
    size_t T = l->o.seq, n = l->o.batch / l->o.ranks;
    scoped_memory int64_t *in = malloc(8 * n * T), *to = malloc(8 * n * T);
    must(sgt_loader_batches_i64(l, c, k, 1, in, to, why));
    for (size_t r = 0; r < n; r++)
        for (size_t t = 0; t <= T; t++) {
            uint16_t id = rows[r * (T + 1) + t];
            if (t < T) cr_assert_eq(in[r * T + t], id, "batch %lu, row %zu, token %zu", k, r, t);
            if (t) cr_assert_eq(to[r * T + t - 1], id);
        }
}

void check_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map)
{
    sgt_loader_info info;
    sgt_loader_get_info(l, &info);
    size_t T = info.seq, n = info.local_batch, i32 = n * T * sizeof(int32_t);
    scoped_memory uint16_t *rows = malloc(2 * n * (T + 1));
    scoped_memory int32_t *in = malloc(i32), *to = malloc(i32);
    must(sgt_loader_batch(l, c, k, rows, why));
    must(sgt_loader_batch_i32(l, c, k, in, to, why));
    check_wide(l, c, k, rows);
    for (size_t r = 0; r < n; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(l, k * info.batch + l->o.rank + r * l->o.ranks, &shard, &at);
        for (size_t t = 0; t <= T; t++) {
            uint16_t id = token_at(map ? map[shard] : shard, at + t);
            cr_assert_eq(rows[r * (T + 1) + t], id, "batch %lu, row %zu, token %zu", k, r, t);
            if (t < T) cr_assert_eq(in[r * T + t], id);
            if (t) cr_assert_eq(to[r * T + t - 1], id);
        }
    }
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

void check_run(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t n, const uint32_t *map)
{
    sgt_loader_info info;
    sgt_error err;
    sgt_loader_get_info(l, &info);
    size_t T = info.seq;
    scoped_memory uint16_t *rows = malloc(2 * info.local_batch * (T + 1));
    for (uint64_t k = first; k < first + n; k++) {
        cr_assert_eq(sgt_loader_batch(l, c, k, rows, &err), 0, "batch %lu: %s", k, err.text);
        for (size_t r = 0; r < info.local_batch; r++) {
            uint32_t shard;
            uint64_t at;
            sgt_loader_window(l, k * info.batch + l->o.rank + r * l->o.ranks, &shard, &at);
            for (size_t t = 0; t <= T; t++)
                cr_assert_eq(rows[r * (T + 1) + t], token_at(map ? map[shard] : shard, at + t),
                             "batch %lu, row %zu, token %zu", k, r, t);
        }
    }
}

unsigned open_descriptors(void)
{
    unsigned n = 0;
    scoped(DIR) *d = opendir("/proc/self/fd");
    while (readdir(d)) n++;
    return n;
}
