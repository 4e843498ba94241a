/* test_foreign.c: sets that other programs wrote, with their file names and formats. Checks the
 * rows drawn from them, how the formats are told apart, and the errors for a damaged .idx of
 * Megatron-LM. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/loader/batches.h"

TestSuite(foreign, .init = enter_scratch, .fini = leave_scratch);

static const sgt_loader_options small = {.batch = 4, .seq = 16},
                                small_val = {.batch = 4, .seq = 16, .split = "val"};

/* ---- llm.c, modded-nanogpt, nanoGPT ---- */

Test(foreign, names_of_modded_nanogpt)
{
    static const uint32_t train[] = {1, 2}, val[] = {7};
    put_foreign("d/fineweb_train_000001.bin", 1, 900);
    put_foreign("d/fineweb_train_000002.bin", 2, 700);
    put_foreign("d/fineweb_val_000000.bin", 7, 300);
    for (int reader = 0; reader < SGT_READERS; reader++) {
        sgt_loader_options o = {.reader = (sgt_reader)reader, .batch = 4, .seq = 16};
        check_loader("d", &o, NULL, train);
        o.split = "val";
        check_loader("d", &o, NULL, val);
    }
    put_foreign("d/edu_train.bin", 3, 300); /* llm.c's name for a set of one shard */
    /* The error names the first two sets in alphabetical order, whatever the file system's order
     * is. */
    static const char *const more[] = {"d/web_train.bin", "d/ice_train.bin", "d/law_train.bin",
                                       "d/sea_train.bin", "d/zoo_train.bin", "d/sun_train.bin"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) put_foreign(more[i], 4, 300);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d: edu_train.bin and fineweb_train_000001.bin belong to different sets (put "
                   "each set into its own folder)");
    /* if there are shards with sgt's names, shards with other names are not used */
    put_shard("d/train_000000.bin", 0, 600);
    check_loader("d", &small, NULL, NULL);
}

Test(foreign, one_shard_of_llmc)
{
    static const uint32_t map[] = {5};
    put_foreign("d/tiny_stories_train.bin", 5, 500);
    put_foreign("d/tiny_stories_val.bin", 6, 500);
    check_loader("d", &small, NULL, map);
    check_loader("d/tiny_stories_train.bin", &small, NULL, map);
}

Test(foreign, nanogpt_folder)
{
    static const uint32_t train[] = {3}, val[] = {4};
    put_raw("d/train.bin", 3, 500);
    put_raw("d/val.bin", 4, 500);
    put_bytes("d/meta.pkl", "x", 1);
    /* Without `raw`, nanoGPT's file names imply ids without a header, and one notice says so. A
     * header is still read if there is one, and text is refused. */
    notices said;
    sgt_loader_options o = {.batch = 4, .seq = 16, .notice = collect(&said)};
    check_loader("d", &o, NULL, train);
    cr_assert_str_eq(said.last, "d/train.bin has no header: reading it as nanoGPT's 16-bit ids");
    o.notice = collect(&said);
    o.split = "val";
    check_loader("d", &o, NULL, val);
    put_shard("d/train.bin", 3, 500);
    o.split = "train";
    check_loader("d", &o, NULL, train);
    cr_assert_eq(said.count, 0, "%s", said.last);
    put_bytes("d/train.bin", "It was the best of times, it was the worst of times, it was the a",
              64);
    expect_failure_about(open_only("d", &o, why), SGT_EFORMAT,
                         "d/train.bin: text, not 16-bit tokens");
    /* train.bin is ignored if there are shards with numbered names */
    put_shard("d/train_000000.bin", 3, 500);
    check_loader("d", &o, NULL, train);
    put_raw("d/train_000001.bin", 3, 500);
    expect_failure_about(open_only("d", &o, why), SGT_EFORMAT, "expected 20240520: not a shard");
}

Test(foreign, olmo_folder)
{
    sgt_loader_options o = small;
    for (; id_width <= 4; id_width += 2) {
        o.raw = 8 * (int)id_width;
        put_raw("d/train.npy", 3, 500);
        check_loader("d", &o, NULL, (const uint32_t[]){3});
    }
}

/* ---- Megatron-LM ---- */

/* 333 tokens in six sequences. Documents begin at tokens 0, 5 and 32; two more documents are
 * empty. */
static const int32_t lengths[] = {5, 0, 7, 20, 1, 300};
static const int64_t bounds[] = {0, 1, 1, 2, 4, 6};
enum {
    SEQUENCES = 6,
    BOUNDS = 6,
    TOKENS = 333,
    BEGINS_AT = 34 + 4 * SEQUENCES,
    BOUNDS_AT = 34 + 12 * SEQUENCES
};

static void put_index(const char *path, uint8_t type, const int32_t *tokens, uint64_t sequences,
                      const int64_t *firsts, uint64_t entries)
{
    uint64_t version = 1;
    FILE *f = fopen(path, "wb");
    cr_assert(f);
    fwrite("MMIDIDX\0", 1, 9, f);
    fwrite(&version, 8, 1, f);
    fwrite(&type, 1, 1, f);
    fwrite(&sequences, 8, 1, f);
    fwrite(&entries, 8, 1, f);
    fwrite(tokens, 4, sequences, f);
    int64_t at = 0;
    for (uint64_t i = 0; i < sequences; at += (int64_t)id_width * tokens[i++]) fwrite(&at, 8, 1, f);
    fwrite(firsts, 8, entries, f);
    cr_assert_eq(fclose(f), 0);
}

static void put_megatron(const char *prefix, uint32_t shard)
{
    char path[64];
    snprintf(path, sizeof path, "%s.bin", prefix);
    unlink(path); /* overwriting a file would wait for the disk */
    put_raw(path, shard, TOKENS);
    snprintf(path, sizeof path, "%s.idx", prefix);
    unlink(path);
    put_index(path, id_width == 2 ? 8 : 4, lengths, SEQUENCES, bounds, BOUNDS);
}

Test(foreign, megatron_by_any_name)
{
    static const char *const names[] = {"m/gpt2_text_document", "m/gpt2_text_document.idx",
                                        "m/gpt2_text_document.bin", "m", "m/"};
    for (; id_width <= 4; id_width += 2) {
        put_megatron("m/gpt2_text_document", 9);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            sgt_loader_options o = {.reader = (sgt_reader)(i % SGT_READERS), .batch = 4, .seq = 16};
            check_loader(names[i], &o, NULL, (const uint32_t[]){9});
            scoped(sgt_loader) *l = open_loader(names[i], &o, NULL),
                               *m = open_loader("m", &o, NULL);
            cr_assert_eq(loader_info(l).hash, loader_info(m).hash);
        }
    }
    expect_failure(
        open_only("m/gpt2_text", NULL, why), SGT_EIO,
        "m/gpt2_text: No such file or directory (make a folder of shards with sgt-tokenize)");
}

Test(foreign, megatron_splits_of_a_folder)
{
    put_megatron("m/books_text_document", 1);
    put_megatron("m/books_valid_text_document", 2);
    put_megatron("m/web_text_document", 3);
    put_megatron("m/web_test_text_document", 4);
    put_raw("m/notes.bin", 5, 100); /* no .idx, so it is not Megatron-LM's and is ignored */
    check_loader("m", &small, NULL, (const uint32_t[]){1, 3});
    check_loader("m", &small_val, NULL, (const uint32_t[]){2});
    /* this name would also fit modded-nanogpt's naming */
    put_megatron("n/owt_train_text_document", 6);
    check_loader("n", &small, NULL, (const uint32_t[]){6});
}

/* Documents are found in both files, for any sampling. The end-of-text id occurs among these tokens,
 * but begins no document. */
Test(foreign, megatron_documents)
{
    static const uint32_t starts[] = {0, 5, 32, 0, 5, 32};
    for (; id_width <= 4; id_width += 2) {
        const uint32_t eot = VOCAB - 1;
        put_megatron("m/a_text_document", 0);
        put_megatron("m/b_text_document", 1);
        patch("m/a_text_document.bin", 20 * id_width, &eot, id_width);
        for (int sampling = 0; sampling < SGT_SAMPLING_PACKED; sampling++) {
            const sgt_loader_options o = {
                .sampling = (sgt_sampling)sampling, .seq = 64, .padded_by = 1, .documents = 1};
            scoped(sgt_loader) *l = open_loader("m", &o, NULL);
            cr_assert_eq(l->documents.count, 6);
            cr_assert_arr_eq(l->documents.starts, starts, sizeof starts);
        }
    }
}

/* An .idx with columns that are too long for one read. Its token type is 3 (int16), which is read
 * like uint16. In the second round, a column of modes (a byte per sequence) follows at its end. */
Test(foreign, megatron_of_many_documents)
{
    enum { MANY = 40000 };
    scoped_memory int32_t *tokens = malloc(MANY * sizeof *tokens);
    scoped_memory int64_t *firsts = malloc((MANY + 1) * sizeof *firsts);
    uint64_t sum = 0, at = 0, size = 34 + 12 * MANY + 8 * (MANY + 1);
    for (int i = 0; i < MANY; i++) sum += (uint64_t)(tokens[i] = 1 + i % 7);
    for (int i = 0; i <= MANY; i++) firsts[i] = i;
    put_raw("m.bin", 2, sum);
    put_index("m.idx", 3, tokens, MANY, firsts, MANY + 1);
    sgt_loader_options o = {.sampling = SGT_SAMPLING_DOCUMENTS, .seq = 16};
    for (int modes = 0; modes < 2; modes++) {
        sgt_loader *l = open_loader("m", &o, NULL);
        cr_assert_eq(l->documents.count, MANY);
        at = 0;
        for (int i = 0; i < MANY; at += (uint64_t)tokens[i++])
            cr_assert_eq(l->documents.starts[i], at);
        sgt_loader_close(l);
        resize("m.idx", size + MANY);
    }
}

/* A .bin with more tokens than 32 bits can count: every sampling works, except documents. */
Test(foreign, megatron_of_six_thousand_million_tokens)
{
    static const int32_t wide[] = {2147483647, 2147483647, 2147483647};
    static const int64_t ends[] = {0, 1, 2, 3};
    uint64_t all = 3 * (uint64_t)2147483647;
    uint16_t last[17] = {0}, row[17];
    for (uint16_t i = 0; i < 17; i++) last[i] = (uint16_t)(100 + i);
    resize("m.bin", 2 * all);
    patch("m.bin", 2 * (all - 17), last, sizeof last);
    put_index("m.idx", 8, wide, 3, ends, 4);
    for (int reader = SGT_READER_MMAP; reader < SGT_READERS; reader++) {
        sgt_loader_options o = {.reader = (sgt_reader)reader,
                                .sampling = SGT_SAMPLING_SEQUENTIAL,
                                .batch = 1,
                                .seq = 16};
        scoped(sgt_loader) *l = open_loader("m", &o, NULL);
        scoped(sgt_cursor) *c = open_cursor(l);
        uint64_t k = (all - 1) / 16 - 1;
        cr_assert_eq(loader_info(l).windows_per_epoch, k + 1);
        must(read_rows(l, c, k, row, why));
        for (uint64_t t = 16 * k; t < 16 * k + 17; t++)
            cr_assert_eq(row[t - 16 * k], t < all - 17 ? 0 : last[t - (all - 17)], "token %lu", t);
        cr_assert_eq(row[16], 104);
    }
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .sampling = SGT_SAMPLING_DOCUMENTS, .seq = 16};
    expect_failure(open_only("m", &o, why), SGT_EUNSUPPORTED,
                   "m.bin: 6442450941 tokens: documents can be found only in shards of at most "
                   "4294967295 tokens (other samplings have no such limit)");
}

/* Damage each number of the .idx in turn. The error is the same whether the path names the folder
 * or the file. */
Test(foreign, megatron_index_that_lies)
{
    static const struct {
        uint64_t at;
        int width;
        int64_t value;
        int code;
        const char *text;
    } lies[] = {
        {9, 8, 2, SGT_EUNSUPPORTED, "at byte 9: version 2, expected 1"},
        {17, 1, 5, SGT_EUNSUPPORTED,
         "at byte 17: the tokens have type 5 (int64, 64 bits), but sgt reads only uint16, int16 "
         "and int32"},
        {17, 1, 9, SGT_EFORMAT, "at byte 17: type 9, expected 8 (uint16) or 4 (int32)"},
        {18, 8, 7, SGT_EFORMAT,
         "154 bytes, but its header (at byte 18) says 7 sequences of 12 bytes and 6 document "
         "bounds of 8 bytes (cut short or damaged: make it again)"},
        /* times 12 bytes this would wrap around to 8 in 64 bits */
        {18, 8, 0x1555555555555556, SGT_EFORMAT,
         "154 bytes, but its header (at byte 18) says 1537228672809129302 sequences of 12 bytes "
         "and 6 document bounds of 8 bytes (cut short or damaged: make it again)"},
        {26, 8, -1, SGT_EFORMAT,
         "154 bytes, but its header (at byte 18) says 6 sequences of 12 bytes and "
         "18446744073709551615 document bounds of 8 bytes (cut short or damaged: make it again)"},
        {34 + 4, 4, -1, SGT_EFORMAT,
         "at byte 38: sequence 1 has -1 tokens, but only 328 are left in the .bin"},
        {34, 4, 334, SGT_EFORMAT,
         "at byte 34: sequence 0 has 334 tokens, but only 333 are left in the .bin"},
        {34, 4, 4, SGT_EFORMAT,
         "at byte 66: sequence 1 begins at byte 10 of the .bin, expected 8, where the sequence "
         "before it ends"},
        {34 + 20, 4, 299, SGT_EFORMAT,
         "its sequences have 332 tokens, but the .bin has 333 (the two files do not belong "
         "together, or one was cut short)"},
        {BEGINS_AT + 16, 8, -10, SGT_EFORMAT,
         "at byte 74: sequence 2 begins at byte -10 of the .bin, expected 10, where the sequence "
         "before it ends"},
#define ORDER \
    "but these numbers must begin with 0, never decrease, and end with the number of sequences, 6"
        {BOUNDS_AT, 8, 1, SGT_EFORMAT, "at byte 106: document 0 begins with sequence 1, " ORDER},
        {BOUNDS_AT + 24, 8, 0, SGT_EFORMAT,
         "at byte 130: document 3 begins with sequence 0, " ORDER},
        {BOUNDS_AT + 32, 8, 7, SGT_EFORMAT,
         "at byte 138: document 4 begins with sequence 7, " ORDER},
        {BOUNDS_AT + 40, 8, 5, SGT_EFORMAT,
         "at byte 146: document 5 begins with sequence 5, " ORDER},
    };
    sgt_loader_options o = {.seq = 16};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        put_megatron("m/a", 0);
        patch("m/a.idx", lies[i].at, &lies[i].value, (size_t)lies[i].width);
        expect_failure(open_only("m/a", &o, why), lies[i].code, "m/a.idx: %s", lies[i].text);
        expect_failure(open_only("m", &o, why), lies[i].code, "m/a.idx: %s", lies[i].text);
        /* the .idx is checked for every sampling: alternate between `documents` and the default */
        o.sampling = o.sampling ? 0 : SGT_SAMPLING_DOCUMENTS;
    }
}

Test(foreign, megatron_index_cut_short)
{
    sgt_error err;
    sgt_loader_options o = {.seq = 16};
    for (uint64_t size = 0; size < 154; size++) {
        put_megatron("a", 0);
        resize("a.idx", size);
        int rc = open_only("a.bin", &o, &err);
        /* too short to be an .idx of Megatron-LM */
        if (size < 9) cr_assert_eq(rc, 0, "%s", err.text);
        else cr_assert_eq(rc, SGT_EFORMAT, "%lu bytes", size);
    }
    put_megatron("a", 0);
    resize("a.idx", 33);
    expect_failure(open_only("a", &o, why), SGT_EFORMAT,
                   "a.idx: 33 bytes, expected at least the header's 34: cut short");
    put_megatron("a", 0);
    resize("a.bin", 2 * TOKENS - 1);
    expect_failure(open_only("a", &o, why), SGT_EFORMAT,
                   "a.bin: 665 bytes: the size of a file of 16-bit tokens must be a multiple of 2");
    put_bytes("a.idx", "TNTIDX\0\0\1\0\0\0\0\0\0", 16);
    expect_failure(open_only("a.bin", &o, why), SGT_EUNSUPPORTED,
                   "a.idx: at byte 0: TNTIDX, an index of an old Megatron-LM: sgt reads only "
                   "MMIDIDX (make it again with a newer Megatron-LM)");
}

/* The .idx has no documents: sampling `documents` fails, sampling windows works. */
Test(foreign, megatron_without_documents)
{
    static const int64_t none[] = {0};
    static const int32_t nothing[1];
    put_raw("a.bin", 0, 0);
    put_index("a.idx", 8, nothing, 0, none, 1);
    expect_failure(open_only("a", &(sgt_loader_options){.seq = 16}, why), SGT_EFORMAT,
                   "a: every shard has fewer than two tokens, but a row and its targets need two "
                   "(tokenize more text)");
    put_raw("a.bin", 0, 5);
    put_index("a.idx", 8, lengths, 1, none, 1);
    expect_failure(open_only("a", &(sgt_loader_options){.seq = 4}, why), SGT_EFORMAT,
                   "a.idx: at byte 46: document 0 begins with sequence 0, but these numbers must "
                   "begin with 0, never decrease, and end with the number of sequences, 1");
}
