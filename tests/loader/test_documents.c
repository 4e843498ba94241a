/* test_documents.c: sampling `documents`, one document per row. Rows are compared with a list of
 * documents that is made in a slow way, for every reader and output format and for shards of any
 * size. Also padding, ranks, .idx files and damaged .idx files. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/philox.h"
#include "tests/loader/batches.h"
#include "tests/loader/documents.h"

TestSuite(documents, .init = enter_scratch, .fini = leave_scratch);

static void put_set(const char *name, int indexed)
{
    static const uint64_t sizes[SHARDS] = {700, 3, 1, 400, 60, 9};
    put_documents(name, sizes, 23, 23, indexed);
    cr_assert_gt(documents, 30);
}

/* Return the document in row `row` by the definition in sampler.h. It uses sgt_permute, which
 * test_sampler.c checks. */
static uint64_t document_of(uint64_t seed, uint64_t row)
{
    sgt_permutation p;
    sgt_permutation_init(&p, sgt_philox_u64(seed, row / documents, 2), documents);
    return sgt_permute(&p, row % documents);
}

static void expect_row(row_model *m, const sgt_loader *l, const void *plan, uint64_t row)
{
    uint64_t seed = l->o.seed, own = row, T = l->o.seq;
    (void)plan;
    if (l->mix.sets > 1) seed = sgt_philox_u64(seed, sgt_mix_row(&l->mix, NULL, row, &own), 8);
    uint64_t d = document_of(seed, own), n = starts[d + 1] - starts[d];
    *m = (row_model){.start = starts[d], .tokens = n < T + 1 ? n : T + 1, .begins = {1}};
    for (uint64_t t = 0; t <= T; t++)
        m->ids[t] = t < n ? stream[starts[d] + t] : l->o.padded_by ? l->o.pad : EOT;
}

static void check_documents(const char *path, const sgt_loader_options *o,
                            const reader_fault *fault)
{
    scoped(sgt_loader) *l = open_loader(path, o, fault);
    sgt_loader_info info = loader_info(l);
    uint32_t n = info.set_count; /* with equal documents */
    cr_assert(info.padded && info.windows_per_epoch == n * documents && info.shards == n * SHARDS &&
              !info.skipped);
    cr_assert_eq(info.tokens, n * first[SHARDS]);
    check_rows(l, expect_row, NULL);
}

Test(documents, equal_the_slow_list)
{
    for (; id_width <= 4; id_width += 2) {
        put_set("indexed", 1);
        put_set("bare", 0);
        for (int reader = 0; reader < SGT_READERS; reader++)
            for (uint32_t T = 1; T <= 512; T *= 8) {
                sgt_loader_options o = {.reader = (sgt_reader)reader,
                                        .sampling = SGT_SAMPLING_DOCUMENTS,
                                        .batch = 5,
                                        .seq = T,
                                        .seed = 3,
                                        .documents = T != 64};
                scalar = 0;
                check_documents("indexed", &o, NULL);
                check_documents("bare", &o, NULL);
                scalar = o.padded_by = 1;
                check_documents("bare", &o, NULL);
                o.pad = VOCAB - 2;
                check_documents("bare", &o, NULL);
            }
        must(sgt_remove_tree("indexed", why));
        must(sgt_remove_tree("bare", why));
    }
}

/* The last document of a set ends where the set ends. It does not continue in the first shard of the
 * next set. */
Test(documents, of_several_sets)
{
    const sgt_loader_set sets[] = {{"indexed", 2}, {"bare", 1}};
    put_set("indexed", 1);
    put_set("bare", 0);
    for (int reader = 0; reader < SGT_READERS; reader++) {
        sgt_loader_options o = {.reader = (sgt_reader)reader, .batch = 6, .seq = 40, .seed = 9};
        o.sampling = SGT_SAMPLING_DOCUMENTS;
        o.sets = sets;
        o.set_count = 2;
        check_documents(NULL, &o, NULL);
    }
}

/* document_of takes a row's number in the whole run, so it holds for any ranks and batch sizes. */
Test(documents, short_reads_and_ranks)
{
    put_set("d", 0);
    check_variants(check_documents, SGT_SAMPLING_DOCUMENTS);
}

Test(documents, streams_carry_lengths)
{
    for (; id_width <= 4; id_width += 2) {
        put_set("d", 1);
        check_streams(SGT_SAMPLING_DOCUMENTS);
        must(sgt_remove_tree("d", why));
    }
}

/* A single shard has the documents that start in it. The tokens before the first start belong to no
 * document, with .idx or without. */
Test(documents, of_one_file)
{
    put_set("indexed", 1);
    put_set("bare", 0);
    uint64_t n = 0;
    for (uint64_t d = 0; d < documents; d++) n += starts[d] >= first[3] && starts[d] < first[4];
    static const char *const paths[] = {"indexed/train_000003.bin", "bare/train_000003.bin"};
    for (int i = 0; i < 2; i++) {
        sgt_loader_options o = {.sampling = SGT_SAMPLING_DOCUMENTS, .seq = 8};
        scoped(sgt_loader) *l = open_loader(paths[i], &o, NULL);
        cr_assert_eq(loader_info(l).windows_per_epoch, n);
    }
}

/* ---- errors ---- */

static int try(const char *path, const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader_options all = *o;
    all.sampling = SGT_SAMPLING_DOCUMENTS;
    return open_only(path, &all, err);
}

Test(documents, indexes_that_cannot_be)
{
    static const uint64_t late = 700, none = 0;
    sgt_loader_options o = {.seq = 8};
    put_set("d", 1);
    resize("d/train_000003.idx", 13);
    expect_failure(try("d", &o, why), SGT_EFORMAT,
                   "d/train_000003.idx: 13 bytes, expected a whole number of 8-byte offsets");
    resize("d/train_000003.idx", 1 << 30);
    struct stat st;
    cr_assert_eq(stat("d/train_000003.bin", &st), 0);
    expect_failure(try("d", &o, why), SGT_EFORMAT,
                   "d/train_000003.idx: too large: a file of this kind may have at most %ld bytes",
                   (st.st_size - SGT_SHARD_HEADER) / 2 * 8);
    put_documents_index("d/train_000003.idx", 3);
    patch("d/train_000000.idx", 16, &late, 8);
    expect_failure(try("d", &o, why), SGT_EFORMAT,
                   "d/train_000000.idx: at byte 16: document 2 starts at token 700, but must start "
                   "after the document before it and below token 700");
    patch("d/train_000000.idx", 16, &none, 8);
    expect_failure(try("d", &o, why), SGT_EFORMAT,
                   "d/train_000000.idx: at byte 16: document 2 starts at token 0, but must start "
                   "after the document before it and below token 700");
}

Test(documents, indexes_that_the_manifest_knows_better)
{
    sgt_loader_options o = {.seq = 8};
    put_set("d", 1);
    sgt_manifest_shard shard = {.file = "train_000004.bin",
                                .split = "train",
                                .tokens = first[5] - first[4],
                                .documents = 100};
    put_manifest("d", &shard, 1);
    uint64_t n = 0;
    for (uint64_t d = 0; d < documents; d++) n += starts[d] >= first[4] && starts[d] < first[5];
    expect_failure(try("d", &o, why), SGT_EFORMAT,
                   "d/train_000004.idx: %lu documents, but the manifest says 100", n);
    shard.documents = n;
    put_manifest("d", &shard, 1);
    must(try("d", &o, why));
}

Test(documents, none_at_all)
{
    sgt_loader_options o = {.seq = 8};
    uint16_t ids[20] = {1, 2, 3};
    put_bytes("raw.bin", ids, sizeof ids);
    expect_failure(try("raw.bin", &o, why), SGT_EFORMAT,
                   "raw.bin: no documents found: no .idx file lists one, and no token is the "
                   "end-of-text id 50256 (other samplings need no documents)");
    /* nanoGPT writes this id behind each document; the loader begins a document at it, so the only
     * document is this token */
    ids[19] = 50256;
    put_bytes("raw.bin", ids, sizeof ids);
    must(try("raw.bin", &o, why));
    put_bytes("raw.bin", ids, 0);
    expect_failure(try("raw.bin", &o, why), SGT_EFORMAT,
                   "raw.bin: its shards have no tokens (the first is raw.bin)");
}

/* Ids of 4 bytes may be of any vocabulary, so there is no end-of-text id unless a header has one. */
Test(documents, unknown_end_of_text)
{
    const uint64_t starts_at[] = {0, 7};
    sgt_loader_options o = {.raw = 32, .seq = 8, .documents = 1};
    id_width = 4;
    put_raw("raw.bin", 0, 500);
    for (int whole = 0; whole < 2; whole++)
        expect_failure(
            (whole ? try : open_only)("raw.bin", &o, why), SGT_EFORMAT,
            "raw.bin: the starts of its documents are unknown: there is no .idx file, and "
            "no header states the end-of-text id (make the shards with sgt-tokenize)");
    put_bytes("raw.idx", starts_at, sizeof starts_at);
    must(open_only("raw.bin", &o, why));
    expect_failure(
        try("raw.bin", &o, why), SGT_EFORMAT,
        "raw.bin: no header states the end-of-text id, but rows are padded with it (set pad-id)");
    o.padded_by = 1;
    must(try("raw.bin", &o, why));
    o.sampling = SGT_SAMPLING_PACKED;
    expect_failure(open_only("raw.bin", &o, why), SGT_EFORMAT,
                   "raw.bin: no header states the end-of-text id, but packed rows need it (use a "
                   "different sampling)");
}

Test(documents, padding_that_the_vocabulary_lacks)
{
    sgt_loader_options o = {.seq = 8, .padded_by = 1, .pad = 50257};
    put_set("d", 0);
    expect_failure(try("d", &o, why), SGT_EUSAGE,
                   "pad-id 50257: must be below 50257, like all ids of d");
    o.vocab = 50256; /* a model whose vocabulary lacks the default padding id */
    o.padded_by = 0;
    expect_failure(try("d", &o, why), SGT_EUSAGE,
                   "pad-id 50256: must be below 50256, like all ids of d");
}

/* The error about an id outside the vocabulary names the id's position, whichever piece of a row
 * has it. */
Test(documents, ids_that_no_vocabulary_has)
{
    static const uint16_t bad = 60000;
    put_set("d", 1);
    patch("d/train_000003.bin", SGT_SHARD_HEADER + 2 * 2, &bad, 2);
    sgt_loader_options o = {
        .sampling = SGT_SAMPLING_DOCUMENTS, .batch = (uint32_t)documents, .seq = 512};
    scoped_memory uint16_t *rows = malloc(documents * 513 * 2);
    static const char said[] =
        "d/train_000003.bin: token 2 (byte 1028): id 60000, expected below 50257";
    expect_failure(open_only("d", &o, why), SGT_EFORMAT, said); /* preload reads everything */
    for (o.reader = SGT_READER_MMAP; o.reader < SGT_READERS; o.reader++) {
        scoped(sgt_loader) *l = open_loader("d", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        expect_failure(read_rows(l, c, 0, rows, why), SGT_EFORMAT, said);
    }
}
