/* test_pipeline.c: sgt_tokenize as a library. Its shards are compared with those of the slow way
 * (pipeline.h), for several numbers of threads, sizes of units, and options. Also stopping and
 * resuming. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/expect.h"
#include "tests/tokenize/pipeline.h"
#include "tokenize/input/feed.h"

TestSuite(pipeline, .init = enter_scratch, .fini = leave_scratch);

/* Return the bytes of these files without the literals that begin documents. */
static uint64_t text_bytes(const char *const *paths, size_t count, int special)
{
    const sgt_literal l = {"<|endoftext|>", 1};
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        scoped_memory char *text = NULL;
        const size_t n = get_file(&text, paths[i]);
        bytes += n - (special ? 13 * sgt_literal_count(&l, (const uint8_t *)text, n) : 0);
    }
    return bytes;
}

/* Tokenize three files with every combination of the options. */
Test(pipeline, equals_the_slow_way)
{
    static const char *const paths[] = {"in/a", "in/b", "in/c"};
    static const uint64_t shards[] = {97, 1000, 100000000};
    static const size_t pieces[] = {1, 100, 4096, 0};
    mkdir("in", 0777);
    put_mixed("in/a", 1, 20011, 1);
    put_mixed("in/b", 2, 0, 0);
    put_mixed("in/c", 3, 7001, 1);
    for (int mode = 0; mode < 4; mode++) {
        sgt_tokenize_options o = {.special_eot = mode & 1,
                                  .invalid_utf8 = mode & 2 ? SGT_INVALID_REPLACE : SGT_INVALID_KEEP,
                                  .val_fraction = mode == 1 ? .5 : 0};
        scoped(stream) train = slow_stream(paths, 3, &o, 0), val = slow_stream(paths, 3, &o, 1);
        const uint64_t bytes = text_bytes(paths, 3, o.special_eot),
                       literals = (27012 - text_bytes(paths, 3, 1)) / 13;
        cr_assert(literals > 20 && (!o.special_eot || train.documents + val.documents > 20));
        for (size_t k = 0; k < 12; k++) {
            char out[32];
            snprintf(out, sizeof out, "out%d-%zu", mode, k);
            o.shard_tokens = shards[k % 3];
            piece_bytes = pieces[k / 3];
            o.threads = (int)(k % 4 ? k % 4 : 5);
            sgt_tokenize_result r;
            must(tokenize(o, "in", out, &r, why));
            expect_shards(out, "train", &train, o.shard_tokens);
            expect_shards(out, "val", &val, o.shard_tokens);
            cr_assert(r.documents == train.documents + val.documents && r.files == 3 &&
                      r.bytes == bytes && r.bytes_read == bytes && !r.already_done &&
                      r.eot_literals == (o.special_eot ? 0 : literals));
            cr_assert(r.train_tokens == train.count && r.val_tokens == val.count &&
                      r.tokens == train.count + val.count);
        }
    }
}

/* There are more documents than a unit of work holds, most of them tiny or empty. Any number of
 * threads gives the same set. */
Test(pipeline, many_small_files)
{
    enum { FILES = 9000 };
    static char names[FILES][16];
    static const char *paths[FILES];
    sgt_tokenize_options o = {.shard_tokens = 5000, .val_fraction = .1, .threads = 1};
    mkdir("in", 0777);
    for (int i = 0; i < FILES; i++) {
        snprintf(names[i], sizeof names[i], "in/%05d", i);
        paths[i] = names[i];
        size_t n = i % 3 ? 0 : (size_t)(i % 11);
        put_text(names[i], "some words.", n);
    }
    scoped(stream) train = slow_stream(paths, FILES, &o, 0), val = slow_stream(paths, FILES, &o, 1);
    must(tokenize(o, "in", "out1", NULL, why));
    expect_shards("out1", "train", &train, o.shard_tokens);
    expect_shards("out1", "val", &val, o.shard_tokens);
    cr_assert(val.documents > FILES * 8 / 100 && val.documents < FILES * 12 / 100, "%zu of %d",
              val.documents, FILES);
    o.threads = 5;
    must(tokenize(o, "in", "out5", NULL, why));
    expect_same_folders("out1", "out5");
}

/* One document that takes many units of work, with a megabyte in which no cut is allowed. */
Test(pipeline, one_huge_document)
{
    static const char *const paths[] = {"in/a"};
    size_t n = 8 << 20;
    char *text = mixed_text(7, &n, 1);
    memset(text + n / 2, 'x', 1 << 20);
    sgt_tokenize_options o = {.shard_tokens = 300000};
    mkdir("in", 0777);
    put_text("in/a", text, n);
    free(text);
    scoped(stream) s = slow_stream(paths, 1, &o, 0);
    for (o.threads = 1; o.threads <= 5; o.threads += 2) {
        char out[16];
        snprintf(out, sizeof out, "out%d", o.threads);
        must(tokenize(o, "in", out, NULL, why));
        expect_shards(out, "train", &s, o.shard_tokens);
    }
}

/* Stop after each unit of work in turn, and resume with other numbers of threads and sizes of
 * units. */
Test(pipeline, stopped_anywhere_and_resumed)
{
    mkdir("in", 0777);
    for (int i = 0; i < 6; i++) {
        char path[16];
        snprintf(path, sizeof path, "in/%d", i);
        put_mixed(path, (uint64_t)i, 3000, 1);
    }
    for (int k = 0; k < 22; k++) {
        sgt_tokenize_options o = {
            .shard_tokens = 1500, .val_fraction = .4, .special_eot = k % 2, .threads = 2};
        piece_bytes = 700;
        const char *whole = o.special_eot ? "whole" : "whole-plain";
        char out[16];
        if (k < 2) must(tokenize(o, "in", whole, NULL, why));
        snprintf(out, sizeof out, "out%d", k);
        cr_assert_gt(tokenize_in_stops(o, out, 1 + k / 2, 0), 0);
        expect_same_folders(whole, out);
    }
}

/* A resumed run reads only the inputs that are not yet finished. Its first report of progress says
 * what is already done. */
Test(pipeline, resume_reads_no_more_than_it_must)
{
    stopper s = {.after = 20}, again = {.after = INT_MAX};
    sgt_error err;
    mkdir("in", 0777);
    put_mixed("in/a", 5, 100000, 0);
    piece_bytes = 1000;
    sgt_tokenize_options o = {
        .threads = 1, .stop = &s.stop, .progress = stop_after, .progress_ctx = &s};
    cr_assert_eq(tokenize(o, "in", "out", NULL, &err), SGT_ESTOPPED);
    cr_assert(s.first_done == 0 && s.first_tokens == 0);
    o.stop = NULL;
    o.progress_ctx = &again;
    sgt_tokenize_result r;
    must(tokenize(o, "in", "out", &r, why));
    cr_assert_eq(r.bytes, 100000);
    cr_assert_eq(again.first_done, 100000 - r.bytes_read);
    cr_assert(again.first_tokens > 0 && again.first_tokens < r.tokens);
    cr_assert(r.bytes_read < 85000 && r.bytes_read > 50000, "%lu bytes were read",
              (unsigned long)r.bytes_read);
}

static const char *changing; /* the path of the file that changes */

static void grow(void) { cr_assert_eq(truncate(changing, 100001), 0); }

static void shrink(void) { cr_assert_eq(truncate(changing, 100), 0); }

static void rewrite(void)
{
    int fd = open(changing, O_WRONLY);
    struct timespec later[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    cr_assert(fd >= 0 && pwrite(fd, "other", 5, 0) == 5 && futimens(fd, later) == 0);
    close(fd);
}

static void change_once_begun(void *ctx, uint64_t done, uint64_t total, uint64_t tokens)
{
    (void)total, (void)tokens;
    if (done > 0) (*(void (**)(void))ctx)();
}

/* A file changes after the inputs were listed: while it is read (in/a), or before (in/b). If no
 * shard is complete yet, OUT is removed. */
Test(pipeline, file_that_changed_since_it_was_listed)
{
    static void (*change[])(void) = {grow, rewrite, shrink};
    static const char *const says[] = {"it had 100000 bytes, and now 100001",
                                       "its modification time is new",
                                       "it had 100000 bytes, and now 100"};
    sgt_error err;
    mkdir("in", 0777);
    piece_bytes = 1000;
    sgt_tokenize_options o = {.threads = 1, .progress = change_once_begun};
    for (int i = 0; i < 6; i++) {
        changing = i < 3 ? "in/a" : "in/b";
        put_mixed("in/a", 1, 100000, 0);
        put_mixed("in/b", 2, 100000, 0);
        o.progress_ctx = &change[i % 3];
        expect_failure(tokenize(o, "in", "out", NULL, why), SGT_EIO,
                       "%s: changed since the inputs were listed: %s (run the command again)",
                       changing, says[i % 3]);
        cr_assert(folder_is_gone("out"));
    }
    /* if a shard is complete, OUT is kept, and the next run notices that the inputs have changed */
    put_mixed("in/b", 2, 100000, 0);
    o.shard_tokens = 1000;
    cr_assert_eq(tokenize(o, "in", "out", NULL, &err), SGT_EIO);
    cr_assert(!folder_is_gone("out/train_000000.bin"));
    o.progress = NULL;
    expect_failure(
        tokenize(o, "in", "out", NULL, why), SGT_EFORMAT,
        "out: made from different inputs: in/b had 100000 bytes, now 100 (--force replaces it)");
    put_mixed("in/b", 2, 100000, 0);
    must(tokenize(o, "in", "out", NULL, why));
    must(tokenize(o, "in", "whole", NULL, why));
    expect_same_folders("whole", "out");
}
