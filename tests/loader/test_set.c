/* test_set.c: which shards a set uses, and the messages about those that it does not use. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/loader/batches.h"

TestSuite(set, .init = enter_scratch, .fini = leave_scratch);

static sgt_loader_info info_of(const char *path, const sgt_loader_options *o)
{
    scoped(sgt_loader) *l = open_loader(path, o, NULL);
    sgt_loader_info info = loader_info(l);
    info.reader_detail = NULL; /* freed with the loader, as the list of sets is */
    info.sets = NULL;
    return info;
}

static void put_split(void)
{
    put_shard("d/train_000000.bin", 0, 3000);
    put_shard("d/train_000001.bin", 1, 2000);
    put_shard("d/val_000000.bin", 2, 1000);
}

/* Write a manifest that lists the first `count` of these shards. It says that the first one has
 * `first_tokens` tokens. */
static void list_shards(size_t count, uint64_t first_tokens)
{
    sgt_manifest_shard shards[] = {{"train_000000.bin", "train", first_tokens, 1, 0},
                                   {"val_000000.bin", "val", 1000, 1, 0},
                                   {"train_000001.bin", "train", 2000, 1, 0}};
    put_manifest("d", shards, count);
}

Test(set, defaults)
{
    put_split();
    sgt_loader_info i = info_of("d", NULL);
    cr_assert(i.batch == 8 && i.seq == 512 && i.local_batch == 8 && i.vocab == 50257);
    cr_assert(i.tokens == 5000 && i.shards == 2 && i.skipped == 0);
    cr_assert_eq(i.windows_per_epoch, 3000 / 512 - 1 + 2000 / 512 - 1);
    sgt_loader_options o = {.split = "val", .sampling = SGT_SAMPLING_SEQUENTIAL};
    i = info_of("d", &o);
    cr_assert(i.tokens == 1000 && i.shards == 1 && i.windows_per_epoch == 1);
}

Test(set, options_that_make_no_sense)
{
    put_split();
    static const struct {
        sgt_loader_options o;
        const char *text;
    } cases[] = {
        {{.batch = 8, .ranks = 3}, "a batch of 8 rows cannot be divided evenly among 3 ranks"},
        {{.rank = 2, .ranks = 2},
         "rank 2 of 2: must be below the number of ranks (ranks count from 0)"},
        {{.seq = 2147483647},
         "a sequence length of 2147483647 is too large: no shard can have that many tokens"},
        {{.reader = SGT_READERS}, "unknown reader 3"},
        {{.sampling = SGT_SAMPLINGS}, "unknown sampling 6"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failure(open_only("d", &cases[i].o, why), SGT_EUSAGE, "%s", cases[i].text);
}

Test(set, nothing_there)
{
    put_bytes("d/val_000000.txt", "", 0);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d: no train shards (train_*.bin) in it: make them with sgt-tokenize");
    expect_failure(open_only("e", NULL, why), SGT_EIO,
                   "e: No such file or directory (make a folder of shards with sgt-tokenize)");
    list_shards(0, 0);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d: no train shards (train_*.bin) in it: make them with sgt-tokenize");
    sgt_loader_options o = {.raw = 16};
    expect_failure(open_only("d", &o, why), SGT_EFORMAT,
                   "d: no train shards (train_*.bin) in it: make them with sgt-tokenize");
}

Test(set, short_shards_are_left_out_and_named)
{
    notices said;
    put_split();
    put_shard("d/train_000002.bin", 3, 512);
    put_shard("d/train_000003.bin", 4, 0);
    put_shard("d/train_000004.bin", 5, 513);
    sgt_loader_options o = {.notice = collect(&said)};
    sgt_loader_info i = info_of("d", &o);
    cr_assert(i.shards == 3 && i.skipped == 2 && i.tokens == 5513);
    cr_assert_eq(said.count, 1);
    cr_assert_str_eq(said.last, "d: skipping 2 of 5 shards, which have fewer than the 513 tokens "
                                "of a window (the longest of these, d/train_000002.bin, has 512)");
    o.seq = 3000;
    expect_failure(
        open_only("d", &o, why), SGT_EFORMAT,
        "d: rows of 3000 tokens need a shard of at least 3001, but the longest, "
        "d/train_000000.bin, has only 3000 (use a sequence length of at most 2999, or more text)");
    o.seq = 2999;
    i = info_of("d", &o);
    cr_assert(i.shards == 1 && i.skipped == 4 && i.windows_per_epoch == 1);
}

Test(set, headers_are_all_checked)
{
    put_split();
    resize("d/train_000001.bin", 1000);
    expect_failure(
        open_only("d", NULL, why), SGT_EFORMAT,
        "d/train_000001.bin: 1000 bytes, expected at least the header's 1024: cut short");
    /* `raw` applies to a file that the path names, not to the files of a folder */
    put_raw("d/train_000001.bin", 1, 2000);
    expect_failure_about(open_only("d", NULL, why), SGT_EFORMAT,
                         "d/train_000001.bin: at byte 0: magic number ");
    must(open_only("d/train_000001.bin", NULL, why));
}

Test(set, one_vocabulary)
{
    put_split();
    patch("d/train_000001.bin", 16, "\x52\xc4", 2);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d/train_000001.bin: a vocabulary of 50258, but d/train_000000.bin has 50257: "
                   "shards of one set must share a vocabulary");
    patch("d/train_000001.bin", 16, "\x51\xc4", 2);
    patch("d/train_000001.bin", 24, "\x01", 1);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d/train_000001.bin: vocabulary 123456789abcde01, but d/train_000000.bin has "
                   "123456789abcdef0: shards of one set must share a vocabulary");
}

Test(set, the_manifest_decides)
{
    put_split();
    list_shards(2, 3000); /* the manifest leaves out train_000001.bin, which is in the folder */
    cr_assert_eq(info_of("d", NULL).tokens, 3000);
    list_shards(3, 3000);
    cr_assert_eq(info_of("d", NULL).tokens, 5000);
    cr_assert_eq(info_of("d", &(sgt_loader_options){.split = "val"}).tokens, 1000);
    list_shards(3, 2999);
    expect_failure(
        open_only("d", NULL, why), SGT_EFORMAT,
        "d/train_000000.bin: 3000 tokens, but d/manifest.json says 2999 (make the folder again)");
    list_shards(3, 3000);
    cr_assert_eq(unlink("d/train_000001.bin"), 0);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d/train_000001.bin: missing, but d/manifest.json lists it");
    put_bytes("d/manifest.json", "{}", 2);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d/manifest.json: field version is missing or not a whole number (damaged: copy "
                   "the folder again, or tokenize again with --force)");
}

Test(set, checksum_of_another_shard)
{
    put_split();
    sgt_manifest_shard shard = {"train_000000.bin", "train", 3000, 1, 7};
    put_manifest("d", &shard, 1);
    expect_failure_about(open_only("d", NULL, why), SGT_EFORMAT,
                         "d/train_000000.bin: at byte 32: checksum ");
    expect_failure_about(open_only("d", NULL, why), SGT_EFORMAT, "says 0000000000000007");
}

/* The hash differs between sets, and is the same for every reader, T and rank. */
Test(set, hash_identifies_the_data)
{
    put_split();
    uint64_t bare = info_of("d", NULL).hash;
    sgt_loader_options o = {
        .reader = SGT_READER_MMAP, .seq = 2500, .batch = 2, .ranks = 2, .rank = 1};
    cr_assert_eq(info_of("d", &o).hash, bare);
    patch("d/train_000001.bin", 32, "\xaa", 1); /* patch its checksum in the header */
    uint64_t changed = info_of("d", NULL).hash;
    cr_assert_neq(changed, bare);
    put_shard("d/train_000001.bin", 1, 2001);
    cr_assert_neq(info_of("d", NULL).hash, bare);
    put_shard("d/train_000001.bin", 1, 2000);
    cr_assert_eq(info_of("d", NULL).hash, bare);
    cr_assert_eq(rename("d/train_000001.bin", "d/train_000007.bin"), 0);
    cr_assert_neq(info_of("d", NULL).hash, bare);
    cr_assert_eq(rename("d/train_000007.bin", "d/train_000001.bin"), 0);

    list_shards(3, 3000);
    uint64_t with = info_of("d", NULL).hash;
    cr_assert_neq(with, bare);
    cr_assert_eq(info_of("d", &(sgt_loader_options){.split = "val"}).hash, with);
    list_shards(2, 3000);
    cr_assert_neq(info_of("d", NULL).hash, with);
}

/* After its header was checked and before it is read, a shard is replaced by one of another size, or
 * by one of the same size, or is written to, which its modification time reveals. */
Test(set, shard_changed_while_opening)
{
    static const char path[] = "d/train_000001.bin";
    sgt_loader_options o = {.seq = 16, .split = "train"};
    put_split();
    for (int how = 0; how < 3; how++) {
        sgt_set s = {0};
        sgt_error err;
        put_foreign(path, 1, 2000);
        put_foreign("other", 2, how ? 2000 : 1999);
        must(sgt_set_open(&s, "d", &o, why));
        int fd = sgt_set_open_shard(&s, 1, &err);
        cr_assert(fd >= 0, "%s", err.text);
        close(fd);
        /* as long as the file is complete, a failed read is not called a cut */
        expect_failure(sgt_set_fail_read(&s.shards[1], 7, why), SGT_EIO,
                       "%s: at byte 7: cannot read: the disk failed, or the file was cut short "
                       "while in use",
                       path);
        struct timespec later[2] = {s.shards[1].file.st_mtim, s.shards[1].file.st_mtim};
        later[1].tv_sec++; /* file times are coarse */
        if (how < 2) cr_assert_eq(rename("other", path), 0);
        else patch(path, 2000, "\1\0", 2);
        if (how == 2) cr_assert_eq(utimensat(AT_FDCWD, path, later, 0), 0);
        expect_failure(sgt_set_open_shard(&s, 1, why), SGT_EFORMAT,
                       "%s: was written or replaced after the set was opened (open the set again)",
                       path);
        sgt_set_close(&s);
    }
}

/* For files without a header, the manifest gives the width of ids (what its vocabulary needs,
 * whatever the bytes look like) and the end-of-text id. */
Test(set, manifest_of_raw_files)
{
    for (; id_width <= 4; id_width += 2) {
        uint32_t ids[500] = {0};
        sgt_manifest_shard shard = {.file = "train.bin", .split = "train", .tokens = 500};
        sgt_manifest m = {.options = "{\"shards\": \"nanogpt\"}",
                          .vocabulary = "any",
                          .vocab = VOCAB,
                          .eot = VOCAB - 1,
                          .shards = &shard,
                          .count = 1};
        put_raw("d/train.bin", 0, 500);
        must(sgt_manifest_write(&m, "d", why));
        sgt_loader_options o = {.batch = 4, .seq = 16};
        check_loader("d", &o, NULL, NULL);
        sgt_loader_info i = info_of("d", &o);
        cr_assert(i.tokens == 500 && i.vocab == VOCAB && i.eot == VOCAB - 1);
        for (size_t k = 0; k < 500 * id_width / 4; k++) ids[k] = k % 2 ? 400 : VOCAB - 1;
        put_bytes("d/train.bin", ids, 500 * id_width);
        o.sampling = SGT_SAMPLING_DOCUMENTS;
        cr_assert_eq(info_of("d", &o).windows_per_epoch, 500 * id_width / 8);
    }
}

Test(set, what_sgt_tokenize_has_not_finished_is_refused)
{
    put_split();
    cr_assert_eq(mkdir("d/.work", 0777), 0);
    expect_failure(open_only("d", NULL, why), SGT_EFORMAT,
                   "d: unfinished (run the same sgt-tokenize command again to finish it)");
    /* sgt-tokenize writes the manifest last, so with it the set is complete, although .work still
     * exists */
    list_shards(3, 3000);
    cr_assert_eq(info_of("d", NULL).shards, 2);
}

/* The address space is limited (RLIMIT_AS) to less than the maps need. */
Test(set, no_room_for_maps)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    cr_skip_test("sanitizers need all the address space there is");
#endif
    sgt_loader_options o = {.reader = SGT_READER_MMAP};
    put_sparse("d/train_000000.bin");
    struct rlimit room = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    cr_assert_eq(setrlimit(RLIMIT_AS, &room), 0);
    expect_failure(open_only("d", &o, why), SGT_ENOMEM,
                   "d/train_000000.bin: cannot map 4294968318 bytes: a limit on mappings is "
                   "reached (raise sysctl vm.max_map_count or ulimit -v, or use the reader uring)");
}

Test(set, shards_of_a_folder_are_in_the_order_of_their_names)
{
    static const char *const made[] = {"f/train_000010.bin", "f/train_000002.bin", "f/train_b.bin",
                                       "f/val_000000.bin",   "f/train_000002.idx", "f/trains_0.bin",
                                       "f/train_0.bin.tmp",  "f/train.bin",        "f/train_.bin"};
    static const char *const want[] = {"f/train_.bin", "f/train_000002.bin", "f/train_000010.bin",
                                       "f/train_b.bin"};
    const sgt_manifest none = {0};
    sgt_set s = {.survey = 1};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) put_bytes(made[i], "", 0);
    must(sgt_set_add_split(&s, "f", "train", 0, &none, why));
    cr_assert_eq(s.count, 4);
    for (size_t i = 0; i < s.count; i++) cr_assert_str_eq(s.shards[i].path, want[i]);
    must(sgt_set_add_split(&s, "f", "test", 0, &none, why));
    cr_assert_eq(s.count, 4);
    expect_failure(sgt_set_add_split(&s, "g", "train", 0, &none, why), SGT_EIO,
                   "g: No such file or directory");
    sgt_set_close(&s);
}

/* Structs begin with their size. An older program's struct lacks fields, which get their defaults.
 * A newer program's has unknown fields, which must be 0. */
Test(set, structs_of_other_versions)
{
    struct {
        sgt_loader_options o;
        uint64_t more;
    } newer = {{.size = sizeof newer, .data = "d"}, 0};
    sgt_loader_options older = {.size = offsetof(sgt_loader_options, seq), .data = "d", .seq = 9};
    sgt_loader_state state = {.size = offsetof(sgt_loader_state, seq), .seq = 99};
    sgt_stream_options stream = {.slots = 2};
    sgt_stream *s;
    uint64_t next;
    scoped(sgt_loader) *l = NULL;
    put_shard("d/train_000000.bin", 0, 1000);
    must(sgt_loader_open(&l, &newer.o, why));
    sgt_loader_close(l);
    must(sgt_loader_open(&l, &older, why));
    cr_assert_eq(sgt_loader_get_info(l)->seq, 512);
    must(sgt_loader_get_state(l, 3, &state, why));
    cr_assert(state.rows == 24 && state.seq == 99);
    newer.more = 1;
    expect_failure_about(sgt_loader_open(&l, &newer.o, why), SGT_EUSAGE,
                         "is older than its header");
    newer.o.size = state.size = 0;
    expect_failure(sgt_loader_open(&l, &newer.o, why), SGT_EUSAGE,
                   "sgt_loader_options.size is 0: set it to sizeof(sgt_loader_options)");
    expect_failure_about(sgt_loader_open(&l, NULL, why), SGT_EUSAGE, "options.size is 0");
    expect_failure_about(sgt_loader_resume(l, &state, &next, why), SGT_EUSAGE, "state.size is 0");
    expect_failure_about(sgt_loader_get_state(l, 3, &state, why), SGT_EUSAGE, "state.size is 0");
    expect_failure_about(sgt_stream_open(&s, l, &stream, why), SGT_EUSAGE, "options.size is 0");
}
