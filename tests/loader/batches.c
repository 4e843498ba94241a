#include "tests/loader/batches.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/scratch.h"

int scalar;
static const uint64_t lengths[] = {5000, 17, 1234, 40, 3000};

void put_folder(void)
{
    for (uint32_t i = 0; i < 5; i++)
        (i == 3 ? put_foreign : put_shard)(shard_path("d", i, "bin"), i, lengths[i]);
}

/* Call sgt_loader_open with these options (NULL: the defaults). The data is at `path`, or, if that
 * is NULL, where the options say. */
static int open_at(sgt_loader **l, const char *path, const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader_options all = {0};
    if (o) all = *o;
    all.size = sizeof all;
    if (path) all.data = path;
    return sgt_loader_open(l, &all, err);
}

sgt_loader *open_loader(const char *path, const sgt_loader_options *o, const reader_fault *fault)
{
    sgt_loader *l;
    set_faults(fault);
    must(open_at(&l, path, o, why));
    if (scalar) sgt_loader_set_rows(l, &sgt_rows_plain);
    return l;
}

int open_only(const char *path, const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader *l;
    int rc = open_at(&l, path, o, err);
    if (rc == 0) sgt_loader_close(l);
    return rc;
}

sgt_cursor *open_cursor(const sgt_loader *l)
{
    sgt_cursor *c;
    must(sgt_cursor_open(&c, l, why));
    return c;
}

sgt_loader_info loader_info(const sgt_loader *l) { return *sgt_loader_get_info(l); }

void check_ids(const sgt_loader *l, const sgt_loader_batch *b, uint64_t k, const uint32_t *map)
{
    int pairs = sgt_output_pairs(b->output);
    uint32_t T = l->o.seq, n = l->o.batch / l->o.ranks, width = T + !pairs;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(l, k * l->o.batch + l->o.rank + r * l->o.ranks, &shard, &at);
        for (uint32_t t = 0; t <= T; t++) {
            int64_t id = token_at(map ? map[shard] : shard, at + t);
            if (t < width)
                cr_assert_eq(id_of(b, b->inputs, r * width + t), id, "batch %lu, row %u, token %u",
                             k, r, t);
            if (pairs && t)
                cr_assert_eq(id_of(b, b->targets, r * T + t - 1), id, "batch %lu, row %u, token %u",
                             k, r, t);
        }
    }
}

/* Read batch k in the format `output`, and check its ids. */
static void check_output(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map,
                         sgt_output output)
{
    size_t ids = (size_t)l->o.batch / l->o.ranks * (l->o.seq + 1);
    scoped_memory int64_t *both = malloc(16 * ids);
    sgt_loader_batch b;
    must(read_batch(l, c, k, output, both, &b, why));
    cr_assert_null(b.lengths);
    check_ids(l, &b, k, map);
}

sgt_output output_of_rows(const sgt_loader *l)
{
    return l->set.width == 2 ? SGT_OUTPUT_U16 : SGT_OUTPUT_I32_ROWS;
}

void check_batch(const sgt_loader *l, sgt_cursor *c, uint64_t k, const uint32_t *map)
{
    for (int output = l->set.width == 2 ? 0 : 1; output < SGT_OUTPUTS; output++)
        check_output(l, c, k, map, (sgt_output)output);
}

void check_run(const sgt_loader *l, sgt_cursor *c, uint64_t first, uint64_t n, const uint32_t *map)
{
    for (uint64_t k = first; k < first + n; k++) check_output(l, c, k, map, output_of_rows(l));
}

void check_stream(const sgt_loader *l, sgt_output output, uint32_t threads, uint32_t slots)
{
    uint32_t T = l->o.seq, n = l->o.batch / l->o.ranks, width = T + !sgt_output_pairs(output);
    const sgt_stream_options o = {.size = sizeof o,
                                  .first = 3,
                                  .count = 40,
                                  .threads = threads,
                                  .slots = slots,
                                  .output = output};
    scoped_memory int32_t *rows = malloc((size_t)4 * n * (T + 1));
    scoped(sgt_cursor) *c = open_cursor(l);
    scoped(sgt_stream) *s = NULL;
    const sgt_loader_batch *b;
    sgt_loader_batch own;
    uint64_t k = 3;
    must(sgt_stream_open(&s, l, &o, why));
    for (; sgt_stream_next(s, &b, NULL) == 0; k++, sgt_stream_release(s, b, NULL)) {
        cr_assert(b->index == k && b->slot < slots && b->output == output);
        cr_assert_eq(b->targets != NULL, sgt_output_pairs(output));
        must(read_batch(l, c, k, output_of_rows(l), rows, &own, why));
        cr_assert(!b->lengths == !own.lengths && !b->starts == !own.starts);
        if (own.lengths) cr_assert_arr_eq(b->lengths, own.lengths, n * sizeof *b->lengths);
        if (own.starts) {
            cr_assert_arr_eq(b->row_starts, own.row_starts, (n + 1) * sizeof *b->row_starts);
            cr_assert_arr_eq(b->starts, own.starts, own.row_starts[n] * sizeof *b->starts);
            cr_assert_arr_eq(b->begins, own.begins, n * T * sizeof *b->begins);
            cr_assert_arr_eq(b->positions, own.positions, n * T * sizeof *b->positions);
            cr_assert_arr_eq(b->ids, own.ids, n * T * sizeof *b->ids);
        }
        for (uint32_t i = 0; i < n * (T + 1); i++) {
            uint32_t r = i / (T + 1), t = i % (T + 1);
            int64_t id = id_of(&own, rows, i);
            if (t < width) cr_assert_eq(id_of(b, b->inputs, r * width + t), id);
            if (own.lengths && t >= own.lengths[r]) id = SGT_IGNORED;
            if (b->targets && t) cr_assert_eq(id_of(b, b->targets, r * T + t - 1), id);
        }
    }
    cr_assert_eq(k, 43);
    cr_assert_eq(sgt_stream_next(s, &b, NULL), 1);
}

void check_streams(sgt_sampling sampling)
{
    sgt_loader_options o = {.sampling = sampling, .batch = 7, .seq = 24, .seed = 1, .documents = 1};
    for (int output = id_width == 4; output < SGT_OUTPUTS; output++) {
        o.reader = (sgt_reader)(output % SGT_READERS);
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        check_stream(l, (sgt_output)output, 3, 4);
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

unsigned open_descriptors(void) { return count_names("/proc/self/fd"); }
