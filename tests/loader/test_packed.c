/* test_packed.c: packed rows through the loader. They must have the tokens that the plan names, for
 * every reader, output format and rank, and for shards of any size. Also document starts, streams,
 * mixes, errors. test_pack.c tests the plan itself. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/philox.h"
#include "tests/loader/batches.h"
#include "tests/loader/documents.h"

TestSuite(packed, .init = enter_scratch, .fini = leave_scratch);

static void put_set(const char *name, int indexed)
{
    static const uint64_t sizes[SHARDS] = {1700, 3, 1, 900, 60, 9};
    put_documents(name, sizes, 11, 70, indexed);
    cr_assert_gt(documents, 90);
}

/* ---- what is expected ---- */

static void at(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens)
{
    (void)ctx;
    *place = n;
    *tokens = starts[n + 1] - starts[n];
}

static sgt_pack plan_of(uint64_t seed, uint32_t T)
{
    sgt_pack p;
    sgt_pack_source from = {documents, at, NULL, 0};
    cr_assert_eq(sgt_pack_init(&p, T, &from, "", NULL), 0);
    p.seed = seed;
    return p;
}

/* Fill in *m for row `row`. plan: the plan of each set. */
static void expect_row(row_model *m, const sgt_loader *l, const void *plan, uint64_t row)
{
    const sgt_pack *p = plan;
    sgt_pack_piece pieces[600];
    if (l->mix.sets > 1) p += sgt_mix_row(&l->mix, NULL, row, &row);
    uint32_t n = sgt_pack_row(p, NULL, row, pieces, p->width);
    *m = (row_model){.start = starts[pieces[0].place]};
    for (uint32_t k = 0; k < n; k++) {
        m->begins[m->tokens] = 1;
        memcpy(m->ids + m->tokens, stream + starts[pieces[k].place], 4 * pieces[k].tokens);
        m->tokens += pieces[k].tokens;
    }
    cr_assert(m->tokens == p->width && m->ids[0] == EOT);
}

static void check_set(const char *path, const sgt_loader_options *o, const reader_fault *fault)
{
    scoped(sgt_loader) *l = open_loader(path, o, fault);
    sgt_pack p[2] = {{0}};
    sgt_loader_info info = loader_info(l);
    uint32_t n = info.set_count; /* with equal documents, but own seeds */
    for (uint32_t s = 0; s < n; s++)
        p[s] = plan_of(n == 1 ? o->seed : sgt_philox_u64(o->seed, s, 8), l->o.seq);
    cr_assert(!info.padded && info.windows_per_epoch == n * sgt_pack_epoch_rows(p));
    cr_assert(info.shards == n * SHARDS && !info.skipped && info.documents == n * documents);
    check_rows(l, expect_row, p);
    for (uint32_t s = 0; s < n; s++) sgt_pack_free(&p[s]);
}

Test(packed, equals_the_plan)
{
    for (; id_width <= 4; id_width += 2) {
        put_set("indexed", 1);
        put_set("bare", 0);
        for (int reader = 0; reader < SGT_READERS; reader++)
            for (uint32_t T = 1; T <= 512; T *= 8) {
                sgt_loader_options o = {.reader = (sgt_reader)reader,
                                        .sampling = SGT_SAMPLING_PACKED,
                                        .batch = T == 8 ? 1 : 5,
                                        .seq = T,
                                        .seed = 3,
                                        .documents = T != 64};
                scalar = 0;
                check_set("indexed", &o, NULL);
                scalar = 1;
                check_set("bare", &o, NULL);
            }
        must(sgt_remove_tree("indexed", why));
        must(sgt_remove_tree("bare", why));
    }
}

/* The row's number counts the rows of all ranks. A batch of 200 rows has more than an epoch. */
Test(packed, short_reads_and_ranks)
{
    put_set("d", 0);
    check_variants(check_set, SGT_SAMPLING_PACKED);
}

Test(packed, streams)
{
    for (; id_width <= 4; id_width += 2) {
        put_set("d", 1);
        check_streams(SGT_SAMPLING_PACKED);
        must(sgt_remove_tree("d", why));
    }
}

/* The rows of a mix are those of its sets. Each set has its own plan and its own seed. */
Test(packed, mixes)
{
    put_set("indexed", 1);
    put_set("bare", 0);
    for (int weighted = 0; weighted < 2; weighted++) {
        const sgt_loader_set sets[] = {{"indexed", 2 * weighted}, {"bare", weighted}};
        sgt_loader_options o = {.batch = 6, .seq = 20, .seed = 5, .sets = sets, .set_count = 2};
        o.sampling = SGT_SAMPLING_PACKED;
        check_set(NULL, &o, NULL);
    }
}

Test(packed, what_rows_hold)
{
    put_set("d", 1);
    sgt_loader_options o = {.sampling = SGT_SAMPLING_PACKED, .seq = 40};
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
    sgt_pack p = plan_of(0, 40);
    /* all rows are full; some tokens of the last ones belong to the next epoch */
    uint64_t tokens = 41 * sgt_pack_epoch_rows(&p) - p.epochs[1].open,
             uncut = starts[documents] - starts[0];
    sgt_loader_info is = loader_info(l);
    cr_assert(is.packed_tokens == uncut && is.cropped == uncut - tokens && is.cropped > 0);
    sgt_pack_free(&p);
    sgt_loader_close(l);
    o.sampling = SGT_SAMPLING_SHUFFLE;
    l = open_loader("d", &o, NULL);
    is = loader_info(l);
    cr_assert(is.packed_tokens == 0 && is.cropped == 0);
}

/* ---- errors ---- */

Test(packed, too_little_text)
{
    put_set("d", 1);
    sgt_loader_options o = {.sampling = SGT_SAMPLING_PACKED, .seq = 9999};
    expect_failure(open_only("d", &o, why), SGT_EFORMAT,
                   "d: its %lu documents have only %lu tokens, but a packed row needs 10000 (use a "
                   "shorter sequence length, or more text)",
                   documents, first[SHARDS] - starts[0]);
}

/* Documents that do not begin with the end-of-text id, as in Megatron-LM's sets or with a wrong
 * .idx. */
Test(packed, other_beginnings)
{
    put_set("d", 1);
    sgt_loader_options o = {.sampling = SGT_SAMPLING_PACKED, .batch = 2000, .seq = 16};
    static uint16_t rows[2000 * 17];
    uint64_t d = 0;
    /* the first document of at least 17 tokens is checked when the set is opened */
    while (starts[d + 1] - starts[d] < 17) d++;
    d++;
    /* the second such document begins a row in each epoch, where it is checked */
    while (starts[d + 1] - starts[d] < 17) d++;
    patch("d/train_000000.bin", SGT_SHARD_HEADER + 2 * starts[d], "\x07\x00", 2);
    for (int reader = 0; reader < SGT_READERS; reader++) {
        o.reader = (sgt_reader)reader;
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        expect_failure(
            read_rows(l, c, 0, rows, why), SGT_EFORMAT,
            "d/train_000000.bin: token %lu: this document begins with id 7, but for packed rows it "
            "must begin with the end-of-text id, 50256 (use a different sampling)",
            starts[d]);
    }
    put_bytes("raw.bin", (uint16_t[]){5, 6, 7, 8, 9, 5, 6, 7}, 16);
    put_bytes("raw.idx", (uint64_t[]){0, 4}, 16);
    o.seq = 4;
    expect_failure(open_only("raw.bin", &o, why), SGT_EFORMAT,
                   "raw.bin: token 0: this document begins with id 5, but for packed rows it must "
                   "begin with the end-of-text id, 50256 (use a different sampling)");
}

/* A file is cut short, and a row begins after its new end. The error must name the cut, not the id
 * 0 that is read there. */
Test(packed, cut_while_mapped)
{
    enum { T = 64, LEFT = 300 };
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .sampling = SGT_SAMPLING_PACKED, .batch = 1, .seq = T};
    uint16_t row[T + 1];
    uint32_t shard = 1;
    uint64_t k = 0, from = 0;
    put_set("d", 1);
    must(sgt_loader_guard_sigbus(why));
    scoped(sgt_loader) *l = open_loader("d", &o, NULL);
    scoped(sgt_cursor) *c = open_cursor(l);
    must(read_rows(l, c, 0, row, why));
    while (shard || from < LEFT) sgt_loader_window(l, ++k, &shard, &from);
    resize("d/train_000000.bin", SGT_SHARD_HEADER + 2 * LEFT);
    expect_failure(
        read_rows(l, c, k, row, why), SGT_EFORMAT,
        "d/train_000000.bin: ends at byte 1624, in the middle of a window: cut short while in use");
}
