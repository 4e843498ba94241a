/* test_pipeline_inputs.c: JSONL and compressed files through the whole pipeline, compared with the
 * same documents as text files. With several numbers of threads and sizes of units, also stopped
 * and resumed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "loader/base/philox.h"
#include "tests/expect.h"
#include "tests/tokenize/pipeline.h"
#include "tokenize/text/utf8.h"

TestSuite(pipeline_inputs, .init = enter_scratch, .fini = leave_scratch);

/* Write `text` to `out` as a JSON string. Each character is escaped in one of its possible ways,
 * chosen at random. */
static size_t put_string(char *out, const char *text, size_t n, uint64_t seed)
{
    char *at = out;
    *at++ = '"';
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = sgt_utf8_unit((const uint8_t *)text + i, n - i, &cp);
        uint64_t r = sgt_philox_u64(seed, i, 0) % 8;
        if (cp < 0x20 || cp == '"' || cp == '\\' || (r == 0 && cp < 0x10000))
            at += sprintf(at, r & 1 ? "\\u%04x" : "\\u%04X", cp);
        else if (r == 1 && cp > 0xFFFF)
            at += sprintf(at, "\\u%04x\\u%04x", 0xD800 + ((cp - 0x10000) >> 10),
                          0xDC00 + ((cp - 0x10000) & 0x3FF));
        else {
            memcpy(at, text + i, len);
            at += len;
        }
        i += len;
    }
    *at++ = '"';
    return (size_t)(at - out);
}

/* Write `count` documents of at most `most` bytes twice: as files PREFIX00, PREFIX01, ..., and as
 * lines of the JSONL file `path`, which `put` writes. */
static void put_documents(const char *prefix, uint64_t seed, int count, size_t most,
                          void (*put)(const char *path, const void *p, size_t n), const char *path)
{
    scoped_memory char *lines = malloc((size_t)count * (8 * most + 64));
    char *at = lines;
    for (int i = 0; i < count; i++) {
        char name[32];
        size_t n = sgt_philox_u64(seed, (uint64_t)i, 1) % (most + 1);
        scoped_memory char *text = mixed_text(seed + (uint64_t)i, &n, 0);
        n = sgt_utf8_valid((uint8_t *)text, n); /* drop a character that the end cuts off */
        snprintf(name, sizeof name, "%s%02d", prefix, i);
        put_text(name, text, n);
        if (i % 7 == 3) *at++ = '\n';
        at += sprintf(at, "{\"n\": %d, \"text\": ", i);
        at += put_string(at, text, n, seed);
        at = stpcpy(at, i % 5 ? "}\n" : "}\r\n");
    }
    put(path, lines, (size_t)(at - lines));
}

/* Write a gzip file with two members. */
static void put_gz(const char *path, const void *p, size_t n)
{
    for (int half = 0; half < 2; half++) {
        gzFile f = gzopen(path, half ? "ab" : "wb");
        size_t from = half ? n / 2 : 0, to = half ? n : n / 2;
        cr_assert(f &&
                  gzwrite(f, (const char *)p + from, (unsigned)(to - from)) == (int)(to - from) &&
                  gzclose(f) == Z_OK);
    }
}

static void put_zst(const char *path, const void *p, size_t n)
{
    size_t room = ZSTD_compressBound(n);
    scoped_memory char *packed = malloc(room);
    size_t got = ZSTD_compress(packed, room, p, n, 3);
    cr_assert(!ZSTD_isError(got));
    put_text(path, packed, got);
}

/* Write in/a.jsonl, in/b.jsonl.gz, in/c.ndjson.zst and in/d.gz, and write their documents as text
 * files in text/. */
static void put_inputs(void)
{
    size_t n = 30000;
    mkdir("in", 0777);
    mkdir("text", 0777);
    put_documents("text/a", 100, 40, 900, put_text, "in/a.jsonl");
    put_documents("text/b", 200, 60, 300, put_gz, "in/b.jsonl.gz");
    put_documents("text/c", 300, 9, 20000, put_zst, "in/c.ndjson.zst");
    scoped_memory char *text = mixed_text(400, &n, 1);
    put_text("text/d", text, n);
    put_gz("in/d.gz", text, n);
}

Test(pipeline_inputs, equal_files_of_text)
{
    sgt_tokenize_options o = {.threads = 2};
    put_inputs();
    for (int k = 0; k < 16; k++) {
        static const size_t pieces[] = {1, 333, 5000, 0};
        char out[16];
        snprintf(out, sizeof out, "out%d", k);
        o.special_eot = k / 8; /* literals in a field begin documents as they do in a file */
        o.force = 1;
        if (k % 8 == 0) must(tokenize(o, "text", "want", NULL, why));
        piece_bytes = pieces[k / 2 % 4];
        o.threads = k % 2 ? 1 : 4;
        must(tokenize(o, "in", out, NULL, why));
        expect_same_file("want", out, "train_000000.bin");
        expect_same_file("want", out, "train_000000.idx");
    }
}

/* Overwrite one byte of the file, at `permille` thousandths of its size. */
static void damage(const char *path, size_t permille)
{
    char *bytes;
    const size_t n = get_file(&bytes, path);
    bytes[n * permille / 1000] ^= 0x55;
    put_text(path, bytes, n);
    free(bytes);
}

/* Runs are stopped anywhere and resumed, within lines of JSONL and compressed data. With skip_bad,
 * the text before the damage in a file is the same for any threads and sizes of units. */
Test(pipeline_inputs, damaged_files_are_cut_at_one_place)
{
    put_inputs();
    put_documents("text/e", 500, 60, 30000, put_zst, "in/e.jsonl.zst");
    damage("in/b.jsonl.gz", 700);
    damage("in/c.ndjson.zst", 0);
    damage("in/d.gz", 999);
    damage("in/e.jsonl.zst", 600);
    for (int special = 0; special < 2; special++) {
        const char *whole = special ? "whole-special" : "whole";
        sgt_tokenize_options o = {.shard_tokens = 2500,
                                  .val_fraction = .4,
                                  .special_eot = special,
                                  .threads = 1,
                                  .skip_bad = 1};
        sgt_tokenize_result r;
        sgt_error err;
        must(tokenize(o, "in", whole, &r, why));
        cr_assert_geq(r.bad_lines, 4);
        for (int after = 1; after < 40; after += 9) {
            char out[16];
            snprintf(out, sizeof out, "out%d-%d", special, after);
            cr_assert_gt(tokenize_in_stops(o, out, after, 0), 0);
            expect_same_folders(whole, out);
        }
        o.skip_bad = 0;
        cr_assert_eq(tokenize(o, "in", "out", NULL, &err), SGT_EFORMAT);
    }
}
