/* test_manifest.c: manifest.json: the same content gives the same bytes; all fields are read back;
 * every invalid manifest is refused with a message that names the fault. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/shards/manifest.h"
#include "tests/loader/shards.h"

TestSuite(manifest, .init = enter_scratch, .fini = leave_scratch);

static sgt_manifest_shard some_shards[] = {
    {"train_000000.bin", "train", 100000000, 12, 0xfedcba9876543210},
    {"val_000000.bin", "val", 7, 1, 1}};

static sgt_manifest example(void)
{
    return (sgt_manifest){.options = "{\"b\": 1, \"a\": [\"x\\ny\"]}",
                          .vocabulary = "gpt2",
                          .fingerprint = 0x0123456789abcdef,
                          .vocab = 50257,
                          .eot = 50256,
                          .shards = some_shards,
                          .count = 2,
                          .tokens = 100000007,
                          .documents = 13,
                          .bytes = 1ull << 52,
                          .files = 3,
                          .invalid_utf8 = 2,
                          .invalid = "[{\"path\": \"a\\u001B.txt\", \"offset\": 17}]"};
}

static const char example_text[] =
    "{\n \"version\": 1,\n \"options\": {\n  \"b\": 1,\n  \"a\": [\n   \"x\\ny\"\n  ]\n },\n"
    " \"vocabulary\": {\n  \"name\": \"gpt2\",\n  \"fingerprint\": \"0123456789abcdef\",\n  "
    "\"size\": 50257,\n"
    "  \"eot\": 50256\n },\n \"shards\": [\n  {\n   \"file\": \"train_000000.bin\",\n   \"split\": "
    "\"train\",\n"
    "   \"tokens\": 100000000,\n   \"documents\": 12,\n   \"xxh3\": \"fedcba9876543210\"\n  },\n  "
    "{\n"
    "   \"file\": \"val_000000.bin\",\n   \"split\": \"val\",\n   \"tokens\": 7,\n   "
    "\"documents\": 1,\n"
    "   \"xxh3\": \"0000000000000001\"\n  }\n ],\n \"totals\": {\n  \"tokens\": 100000007,\n  "
    "\"documents\": 13,\n"
    "  \"bytes\": 4503599627370496,\n  \"files\": 3,\n  \"invalid_utf8\": 2\n },\n "
    "\"invalid_utf8_at\": [\n  {\n"
    "   \"path\": \"a\\u001B.txt\",\n   \"offset\": 17\n  }\n ]\n}\n";

/* A manifest that was read is written with the same bytes, which shows that all fields are read. */
Test(manifest, bytes_are_frozen)
{
    sgt_manifest m = example(), got;
    for (int round = 0; round < 2; round++) {
        scoped_memory char *text = NULL;
        size_t n;
        must(sgt_manifest_write(round ? &got : &m, ".", why));
        must(sgt_file_get(&text, &n, "manifest.json", 1 << 20, why));
        cr_assert_str_eq(text, example_text);
        if (round) sgt_manifest_free(&got);
        else must(sgt_manifest_read(&got, ".", why));
    }
}

Test(manifest, nothing_but_shards)
{
    sgt_manifest m = {.vocabulary = "gpt2"}, got;
    must(sgt_manifest_write(&m, ".", why));
    must(sgt_manifest_read(&got, ".", why));
    cr_assert(got.count == 0 && !got.invalid);
    cr_assert_str_eq(got.options, "{}");
    sgt_manifest_free(&got);
}

Test(manifest, what_cannot_be_written)
{
    for (int i = 0; i < 3; i++) {
        sgt_manifest m = example();
        sgt_manifest_shard s = some_shards[0];
        if (i == 0) m.options = "{";
        if (i == 1) strcpy(m.vocabulary, "gpt\xff");
        if (i == 2) strcpy(s.file, "\xc0");
        m.shards = &s;
        m.count = 1;
        expect_failure(
            sgt_manifest_write(&m, ".", why), SGT_ENOMEM,
            "./manifest.json: cannot write it: out of memory, or a file name is not UTF-8");
    }
    cr_assert_neq(access("manifest.json", F_OK), 0);
}

#define HINT " (damaged: copy the folder again, or tokenize again with --force)"

/* Write the example manifest with the first occurrence of `from` replaced by `to`. */
static void put_changed(const char *from, const char *to)
{
    char text[4096];
    const char *at = strstr(example_text, from);
    cr_assert(at, "%s", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - example_text), example_text, to,
             at + strlen(from));
    put_bytes("manifest.json", text, strlen(text));
}

static int read_and_free(sgt_error *err)
{
    sgt_manifest m = {0};
    int rc = sgt_manifest_read(&m, ".", err);
    cr_assert(rc == 0 || (!m.options && !m.shards)); /* on failure m is unchanged */
    sgt_manifest_free(&m);
    return rc;
}

Test(manifest, wrong_fields_are_named)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"version\": 1", "\"version\": 2", "version 2, expected 1 (made by a newer sgt?)"},
        {"\"version\": 1", "\"v\": 1", "field version is missing or not a whole number"},
        {"\"size\": 50257", "\"size\": 1048577",
         "field size is missing or not a whole number up to 1048576"},
        {"\"tokens\": 100000000,", "\"tokens\": -1,",
         "field tokens is missing or not a whole number"},
        {"\"tokens\": 100000000,", "\"tokens\": 2147483648,",
         "field tokens is missing or not a number of tokens that a shard can have"},
        {"\"tokens\": 100000000,", "\"tokens\": 1.5,",
         "field tokens is missing or not a whole number"},
        {"\"fedcba9876543210\"", "\"fedcba987654321\"",
         "field xxh3 is missing or not a string of 16 hex digits"},
        {"\"fedcba9876543210\"", "\"fedcba987654321g\"",
         "field xxh3 is missing or not a string of 16 hex digits"},
        {"\"fedcba9876543210\"", "7", "field xxh3 is missing or not a string of 16 hex digits"},
        {"\"split\": \"train\"", "\"split\": \"\"", "field split is missing or not a short string"},
        {"\"split\": \"train\"", "\"split\": \"a-name-that-is-too-long\"",
         "field split is missing or not a short string"},
        {"\"shards\": [", "\"shards_\": [", "field shards is missing or not an array"},
        {"\"totals\"", "\"totally\"", "field tokens is missing or not a whole number"},
        {"\"vocabulary\"", "\"vocal\"", "field name is missing or not a short string"},
        {"\"invalid_utf8_at\": [", "\"invalid_utf8_at\": 7, \"x\": [",
         "field invalid_utf8_at is missing or not an array"},
        {"\"options\": {", "\"options\": 1, \"o\": {", "field options is missing or not an object"},
        {"train_000000.bin", "../train_000000.bin",
         "shard \"../train_000000.bin\" lies outside the folder: refused"},
        {"train_000000.bin", "..", "shard \"..\" lies outside the folder: refused"},
        {"train_000000.bin", ".", "shard \".\" lies outside the folder: refused"},
        {"train_000000.bin", "\\u001b/[31m",
         "shard \"\\x1b/[31m\" lies outside the folder: refused"},
        {"train_000000.bin", "a\\u0000b",
         "line 17: \\u0000 is not allowed without JSON_ALLOW_NUL near '\"a\\u0000b\"'"},
        {"\"b\": 1", "\"a\": 1", "line 5: duplicate object key near '\"a\"'"},
        {"]\n}\n", "]\n", "line 44: '}' expected near end of file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_changed(cases[i].from, cases[i].to);
        expect_failure(read_and_free(why), SGT_EFORMAT, "./manifest.json: %s%s", cases[i].message,
                       cases[i].message[strlen(cases[i].message) - 1] == ')' ? "" : HINT);
    }
}

Test(manifest, what_is_no_manifest)
{
    expect_failure(read_and_free(why), SGT_EIO, "./manifest.json: No such file or directory");
    put_bytes("manifest.json", "", 0);
    expect_failure(read_and_free(why), SGT_EFORMAT,
                   "./manifest.json: line 1: '[' or '{' expected near end of file" HINT);
    put_bytes("manifest.json", "[]", 2);
    expect_failure(read_and_free(why), SGT_EFORMAT,
                   "./manifest.json: line 1: expected a JSON object" HINT);
    char *deep = malloc(10000);
    memset(deep, '[', 10000);
    put_bytes("manifest.json", deep, 10000);
    free(deep);
    expect_failure(read_and_free(why), SGT_EFORMAT,
                   "./manifest.json: line 1: maximum parsing depth reached near '['" HINT);
}
