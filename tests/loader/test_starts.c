/* test_starts.c: document starts in rows, compared with the list of all starts, for every reader,
 * sampling, output format and rank, from .idx files or from the tokens. Also in streams, and the
 * position and document numbers that are derived from the starts. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/philox.h"
#include "tests/loader/batches.h"

TestSuite(starts, .init = enter_scratch, .fini = leave_scratch);

#define EOT (VOCAB - 1)
enum { SHARDS = 3, T = 24, B = 6 };

static const uint64_t sizes[SHARDS] = {900, 25, 3000};

/* Return whether a document begins at a token. About every 17th does; some begin right after
 * another, and some at a shard's first token. */
static int begins(uint32_t shard, uint64_t at)
{
    return sgt_philox_u64(5, at, shard) % 17 == 0 || at == 300 || at == 301 ||
           (shard == 2 && at == 0);
}

/* Write a set. Without .idx files, end-of-text ids mark the document starts. With .idx files, these
 * ids occur at other tokens instead, and must be ignored. */
static void put_set(const char *name, int indexed)
{
    char path[64];
    cr_assert_eq(mkdir(name, 0777), 0);
    for (uint32_t s = 0; s < SHARDS; s++) {
        uint32_t ids[3000];
        uint64_t index[3000], n = 0;
        for (uint64_t i = 0; i < sizes[s]; i++) {
            if (begins(s, i)) index[n++] = i;
            ids[i] = (indexed ? i % 5 == 0 : begins(s, i)) ? EOT : (uint32_t)i % 5000;
        }
        snprintf(path, sizeof path, "%s/train_%06u.bin", name, s);
        put_ids(path, ids, sizes[s]);
        snprintf(path, sizeof path, "%s/train_%06u.idx", name, s);
        if (indexed) put_bytes(path, index, 8 * n);
    }
}

/* Check what a batch says about input t of row r. It belongs to the row's document number `id`,
 * which begins at input `from`. id -1: the input is padding. */
static void check_input(const sgt_loader_batch *d, uint32_t r, uint32_t t, uint32_t from,
                        int32_t id)
{
    if (id < 0) from = t;
    cr_assert_eq(d->begins[r * T + t], (int32_t)from, "row %u, input %u", r, t);
    if (!d->positions) return;
    cr_assert_eq(d->positions[r * T + t], (int32_t)(t - from), "row %u, input %u", r, t);
    cr_assert_eq(d->ids[r * T + t], id, "row %u, input %u", r, t);
}

static void check_rows(const sgt_loader *l, uint64_t k, const sgt_loader_batch *d)
{
    uint32_t n = l->o.batch / l->o.ranks, at = 0;
    cr_assert(d->starts && d->row_starts[0] == 0);
    cr_assert((d->positions && d->ids) == (l->o.documents == 1));
    for (uint32_t r = 0; r < n; r++) {
        uint32_t shard, from = 0, own = d->lengths ? d->lengths[r] : T;
        int32_t id = 0;
        uint64_t offset;
        sgt_loader_window(l, k * l->o.batch + l->o.rank + (uint64_t)r * l->o.ranks, &shard,
                          &offset);
        cr_assert_eq(d->row_starts[r], at);
        for (uint32_t t = 0; t <= l->o.seq; t++) {
            int one = l->o.sampling == SGT_SAMPLING_DOCUMENTS ? t == 0
                                                              : begins(shard % SHARDS, offset + t);
            int said = at < d->row_starts[r + 1] && d->starts[at] == t;
            cr_assert_eq(said, one, "batch %lu, row %u, token %u", k, r, t);
            at += said != 0;
            if (one && t) from = t, id++;
            if (t < T) check_input(d, r, t, from, t < own ? id : -1);
        }
        cr_assert_eq(d->row_starts[r + 1], at);
    }
}

static void check_all(const char *path, sgt_loader_options o)
{
    int32_t rows[B * (T + 1)], both[2 * B * T];
    scoped(sgt_loader) *l = open_loader(path, &o, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    for (uint64_t k = 0; k < 40; k++) {
        sgt_loader_batch b;
        cr_assert_eq(read_batch(l, c, k, output_of_rows(l), rows, &b, NULL), 0);
        check_rows(l, k, &b);
        cr_assert_eq(read_batch(l, c, 1000 + k, SGT_OUTPUT_I32, both, &b, NULL), 0);
        check_rows(l, 1000 + k, &b);
    }
}

static void check_sets(void)
{
    put_set("indexed", 1);
    put_set("bare", 0);
    for (int reader = 0; reader < SGT_READERS; reader++)
        for (int sampling = 0; sampling < SGT_SAMPLING_PACKED; sampling++)
            for (uint32_t rank = 0; rank < 3; rank++) {
                sgt_loader_options o = {.reader = (sgt_reader)reader,
                                        .sampling = (sgt_sampling)sampling,
                                        .batch = B,
                                        .seq = T,
                                        .seed = 3,
                                        .documents = rank == 2 ? 2 : 1,
                                        .rank = rank,
                                        .ranks = 3};
                check_all("indexed", o);
                check_all("bare", o);
                o.rank = o.ranks = 0;
                scalar = 1;
                check_all("indexed", o);
                scalar = 0;
            }
    must(sgt_remove_tree("indexed", why));
    must(sgt_remove_tree("bare", why));
}

Test(starts, equal_the_list)
{
    for (; id_width <= 4; id_width += 2) check_sets();
}

Test(starts, of_several_sets)
{
    put_set("indexed", 1);
    put_set("bare", 0);
    const sgt_loader_set sets[] = {{"indexed", 2}, {"bare", 1}};
    for (int sampling = 0; sampling < SGT_SAMPLING_PACKED; sampling++)
        check_all(NULL, (sgt_loader_options){.sets = sets,
                                             .set_count = 2,
                                             .sampling = (sgt_sampling)sampling,
                                             .batch = B,
                                             .seq = T,
                                             .documents = 1});
}

Test(starts, streams_carry_them)
{
    put_set("d", 1);
    for (int sampling = 0; sampling < SGT_SAMPLING_PACKED; sampling++)
        check_streams((sgt_sampling)sampling);
}

Test(starts, only_where_they_are_asked_for)
{
    put_set("d", 1);
    uint16_t rows[B * (T + 1)];
    uint64_t all = 0;
    for (uint32_t s = 0; s < SHARDS; s++)
        for (uint64_t i = 0; i < sizes[s]; i++) all += (uint64_t)begins(s, i);
    /* in the third round, one of the three .idx files is missing */
    for (int asked = 0; asked < 3; asked++) {
        if (asked == 2) cr_assert_eq(unlink("d/train_000001.idx"), 0);
        sgt_loader_options o = {.batch = B, .seq = T, .documents = asked};
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        scoped(sgt_stream) *s = NULL;
        const sgt_loader_batch *b = sgt_cursor_batch(c);
        cr_assert_eq(loader_info(l).documents, asked == 1 ? all : 0);
        must(read_rows(l, c, 0, rows, why));
        cr_assert_eq(b->starts != NULL, asked != 0);
        cr_assert(sgt_stream_open(&s, l, NULL, NULL) == 0 && sgt_stream_next(s, &b, NULL) == 0);
        cr_assert_eq(b->starts != NULL, asked != 0);
    }
}

/* If no document start is known, the tokens of each row count as one document. Only sampling
 * documents fails. */
Test(starts, of_no_document)
{
    uint16_t ids[400] = {0}, rows[B * (T + 1)];
    put_bytes("plain.bin", ids, sizeof ids);
    sgt_loader_options o = {.batch = B, .seq = T, .documents = 1};
    scoped(sgt_loader) *l = open_loader("plain.bin", &o, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    cr_assert_eq(loader_info(l).documents, 0);
    sgt_loader_batch b;
    cr_assert_eq(read_batch(l, c, 0, SGT_OUTPUT_U16, rows, &b, NULL), 0);
    for (uint32_t r = 0; r <= B; r++) cr_assert_eq(b.row_starts[r], 0);
}

/* Without .idx files, rows are searched for end-of-text ids. Row widths are around the length of a
 * search step, and documents start at every position, including the first and the last. */
Test(starts, of_rows_of_any_width)
{
    uint16_t ids[4096], rows[2 * 300];
    for (uint32_t i = 0; i < 4096; i++) ids[i] = i % 67 == 0 || i % 64 == 63 ? EOT : 1;
    put_bytes("plain.bin", ids, sizeof ids);
    for (uint32_t seq = 1; seq < 299; seq++) {
        sgt_loader_options o = {
            .batch = 2, .seq = seq, .documents = 1, .sampling = SGT_SAMPLING_RANDOM, .seed = seq};
        scoped(sgt_loader) *l = open_loader("plain.bin", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        for (uint64_t k = 0; k < 20; k++) {
            sgt_loader_batch d;
            cr_assert_eq(read_batch(l, c, k, SGT_OUTPUT_U16, rows, &d, NULL), 0);
            uint32_t at = 0;
            for (uint32_t r = 0; r < 2; r++) {
                cr_assert_eq(d.row_starts[r], at);
                for (uint32_t t = 0; t <= seq; t++)
                    if (rows[r * (seq + 1) + t] == EOT) cr_assert_eq(d.starts[at++], t);
            }
            cr_assert_eq(d.row_starts[2], at);
        }
    }
}
