/* test_starts.c: document starts in rows, and the position and document numbers that are derived from
 * them, compared with the list of all starts: for every reader and rank, for windows of every
 * sampling, from .idx files or from the tokens. Also in streams. test_documents.c and test_packed.c
 * check the starts of the other samplings. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "tests/loader/batches.h"
#include "tests/loader/documents.h"

TestSuite(starts, .init = enter_scratch, .fini = leave_scratch);

enum { T = 24, B = 6 };

static void put_set(const char *name, int indexed)
{
    static const uint64_t sizes[SHARDS] = {900, 25, 30, 2400, 40, 30};
    put_documents(name, sizes, 17, 17, indexed);
}

/* Fill in *m for the window in row `row`. */
static void expect_row(row_model *m, const sgt_loader *l, const void *plan, uint64_t row)
{
    sgt_window w = sgt_mix_window(&l->mix, row);
    (void)plan;
    *m = (row_model){.start = first[w.shard % SHARDS] + w.offset, .tokens = T + 1};
    memcpy(m->ids, stream + m->start, (T + 1) * sizeof *m->ids);
    for (uint64_t d = 0; d < documents; d++)
        if (starts[d] >= m->start && starts[d] <= m->start + T) m->begins[starts[d] - m->start] = 1;
}

static void check_all(const char *path, const sgt_loader_options *o)
{
    scoped(sgt_loader) *l = open_loader(path, o, NULL);
    check_rows(l, expect_row, NULL);
}

static void check_set(int indexed)
{
    put_set("d", indexed);
    for (int reader = 0; reader < SGT_READERS; reader++)
        for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++)
            for (uint32_t rank = 0; rank < 3; rank++) {
                sgt_loader_options o = {.reader = (sgt_reader)reader,
                                        .sampling = (sgt_sampling)sampling,
                                        .batch = B,
                                        .seq = T,
                                        .seed = 3,
                                        .documents = rank == 2 ? 2 : 1,
                                        .rank = rank,
                                        .ranks = 3};
                scalar = rank == 1;
                check_all("d", &o);
            }
    must(sgt_remove_tree("d", why));
}

Test(starts, equal_the_list)
{
    for (; id_width <= 4; id_width += 2)
        for (int indexed = 0; indexed < 3; indexed++) check_set(indexed);
}

Test(starts, of_several_sets)
{
    const sgt_loader_set sets[] = {{"indexed", 2}, {"bare", 1}};
    put_set("indexed", 1);
    put_set("bare", 0);
    for (int sampling = 0; sampling < SGT_SAMPLING_DOCUMENTS; sampling++)
        check_all(NULL, &(sgt_loader_options){.sets = sets,
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
    /* in the third round, one of the three .idx files is missing */
    for (int asked = 0; asked < 3; asked++) {
        if (asked == 2) cr_assert_eq(unlink("d/train_000001.idx"), 0);
        sgt_loader_options o = {.batch = B, .seq = T, .documents = asked};
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        scoped(sgt_stream) *s = NULL;
        const sgt_loader_batch *b = sgt_cursor_batch(c);
        cr_assert_eq(loader_info(l).documents, asked == 1 ? documents : 0);
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
