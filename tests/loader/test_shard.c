/* test_shard.c: the shard format, byte by byte, and the error for every other kind of file. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/loader/shards.h"

TestSuite(shard, .init = enter_scratch, .fini = leave_scratch);

static void put_word(const char *path, int word, uint32_t v)
{
    uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    patch(path, 4 * (uint64_t)word, b, 4);
}

static int open_and_close(const char *path, int raw, sgt_error *err)
{
    sgt_shard_header h;
    int fd = sgt_shard_open(&h, path, raw, err);
    if (fd < 0) return fd;
    close(fd);
    return SGT_OK;
}

Test(shard, pack_is_the_layout_of_the_design)
{
    sgt_shard_header h = {.tokens = 0x01020304,
                          .vocab = 50257,
                          .eot = 50256,
                          .fingerprint = 0x1112131415161718,
                          .xxh3 = 0x2122232425262728,
                          .data = 1024};
    uint8_t bytes[SGT_SHARD_HEADER];
    static const uint8_t want[40] = {0x88, 0xd8, 0x34, 0x01, 1,    0,    0,    0,    0x04, 0x03,
                                     0x02, 0x01, 1,    0,    0,    0,    0x51, 0xc4, 0,    0,
                                     0x50, 0xc4, 0,    0,    0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
                                     0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};
    memset(bytes, 0xee, sizeof bytes);
    sgt_shard_pack(bytes, &h);
    cr_assert_arr_eq(bytes, want, sizeof want);
    for (size_t i = sizeof want; i < sizeof bytes; i++) cr_assert_eq(bytes[i], 0);
    /* the smallest vocabulary with 4-byte ids; the header differs from that of 2-byte ids in words
     * 0, 1 and 4 */
    static const uint8_t wide[20] = {0xa1, 0xd9, 0x34, 0x01, 7, 0, 0, 0, 0x04, 0x03,
                                     0x02, 0x01, 1,    0,    0, 0, 1, 0, 1,    0};
    h.vocab = 65537;
    sgt_shard_pack(bytes, &h);
    cr_assert_arr_eq(bytes, wide, sizeof wide);
    cr_assert_arr_eq(bytes + sizeof wide, want + sizeof wide, sizeof want - sizeof wide);
}

/* With raw 0 a header is required, with -1 it is used if there is one, and with 16 everything is
 * ids. Only words 0 to 2 of llm.c's header are read; other programs may use the rest. */
Test(shard, headers_and_raw_files)
{
    static const struct {
        const char *path;
        int raw;
        uint64_t tokens, data;
        uint32_t vocab;
    } cases[] = {{"foreign.bin", 0, 1000, 1024, 0}, {"raw.bin", -1, 1000, 0, 0},
                 {"raw.bin", 16, 1000, 0, 0},       {"shard.bin", -1, 1000, 1024, 50257},
                 {"shard.bin", 16, 1512, 0, 0},     {"empty.bin", -1, 0, 0, 0}};
    put_foreign("foreign.bin", 3, 1000);
    put_word("foreign.bin", 7, 77);
    put_raw("raw.bin", 3, 1000);
    put_shard("shard.bin", 3, 1000);
    put_bytes("empty.bin", "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sgt_shard_header h;
        sgt_error err;
        int fd = sgt_shard_open(&h, cases[i].path, cases[i].raw, &err);
        cr_assert(fd >= 0, "%s", err.text);
        close(fd);
        cr_assert(h.tokens == cases[i].tokens && h.data == cases[i].data &&
                      h.vocab == cases[i].vocab,
                  "%s, %d", cases[i].path, cases[i].raw);
        cr_assert(h.vocab || (!h.revision && !h.eot && !h.fingerprint && !h.xxh3));
    }
}

/* Text, compressed data, arrays and archives are refused, unless `raw` 16 says that they are
 * tokens. tests/cli/forms.sh has more kinds. The first 1,024 bytes end with the first three bytes
 * of a character, which must not matter. */
Test(shard, other_kinds_of_files)
{
    static const struct {
        const char *begin, *path, *kind, *hint;
    } files[] = {
        {"It was na\xc3\xafve.\r\n\t", "book", "text", "tokenize it with sgt-tokenize book OUT/"},
        {"[1]", "book", "JSON", "tokenize it with sgt-tokenize book OUT/"},
        {"\x1f\x8b\x08", "book", "gzip data", "tokenize it with sgt-tokenize book OUT/"},
        {"PK\3\4", "a.bin", "a ZIP archive", "tokenize text with sgt-tokenize"},
        {"\x93NUMPY\x01", "a.npy", "an array with the header of numpy.save",
         "write 16-bit ids without a header with numpy's tofile"}};
    char bytes[2048];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        memset(bytes, i < 2 ? 'e' : 0, sizeof bytes);
        memcpy(bytes, files[i].begin, strlen(files[i].begin));
        memcpy(bytes + 1021, "\xf0\x9f\x98\x80", 4);
        put_bytes(files[i].path, bytes, sizeof bytes);
        expect_failure(open_and_close(files[i].path, -1, why), SGT_EFORMAT,
                       "%s: %s, not 16-bit tokens (%s)", files[i].path, files[i].kind,
                       files[i].hint);
        must(open_and_close(files[i].path, 16, why));
        /* A file named .bin that is this short may be text or tokens, so it is taken as tokens. */
        put_bytes("short.bin", bytes, 62);
        if (i < 2) must(open_and_close("short.bin", -1, why));
        else expect_failure_about(open_and_close("short.bin", -1, why), SGT_EFORMAT, files[i].kind);
    }
}

/* Bytes stored as 16-bit ids look like UTF-16, so the file's name decides. */
Test(shard, bytes_as_ids)
{
    char bytes[1024];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i % 2 ? 0 : 'a' + i / 2 % 26);
    put_bytes("a.bin", bytes, sizeof bytes);
    must(open_and_close("a.bin", -1, why));
    put_bytes("a.txt", bytes, sizeof bytes);
    expect_failure(open_and_close("a.txt", -1, why), SGT_EFORMAT,
                   "a.txt: UTF-16LE, not 16-bit tokens (if it holds ids, give it a name that ends "
                   "in .bin)");
    for (size_t i = 0; i < sizeof bytes; i += 2) bytes[i] = (char)(i / 2 % 65); /* characters */
    put_bytes("a.u16", bytes, sizeof bytes);
    must(open_and_close("a.u16", -1, why));
}

static void put_numbers(const char *path, const uint64_t *numbers, size_t n, size_t width)
{
    uint8_t bytes[32768];
    for (size_t i = 0; i < n; i++) memcpy(bytes + i * width, &numbers[i], width);
    put_bytes(path, bytes, n * width);
}

/* Files of numpy.uint32 or int64 have no header either. Their 16-bit halves would all be valid
 * ids. */
Test(shard, wide_ids_without_a_header)
{
    uint64_t ids[4096];
    for (size_t i = 0; i < 4096; i++) ids[i] = token_at(7, i);
    for (size_t width = 4; width <= 8; width += 4)
        for (size_t n = 32; n <= 4096; n *= 2) {
            put_numbers("w.bin", ids, n, width);
            for (int raw = -1; raw <= 16; raw += raw < 0 ? 1 : 16)
                expect_failure(
                    open_and_close("w.bin", raw, why), SGT_EUNSUPPORTED, "%s",
                    width == 4
                        ? "w.bin: 32-bit ids without a header, not 16-bit ones (sgt-inspect and "
                          "sgt-bench loader read them with --raw 32, Python with raw=32; sgt-train "
                          "and sgt-eval need a header)"
                        : "w.bin: 64-bit ids without a header: sgt reads only 16-bit and 32-bit "
                          "ids (convert them with numpy.fromfile(FILE, "
                          "'u8').astype('u4').tofile(NEW), then use --raw 32)");
            must(open_and_close("w.bin", 16 | SGT_SHARD_SURE, why));
            cr_assert_eq(open_and_close("w.bin", 32, NULL), width == 4 ? 0 : SGT_EUNSUPPORTED);
        }
    /* 32-bit ids of a vocabulary of 1,048,576, then of one of 5 */
    for (size_t i = 0; i < 4096; i++)
        ids[i] = i % 3 ? token_at(7, i) : token_at(7, i) % 16 << 16 | 30;
    put_numbers("w.bin", ids, 4096, 4);
    cr_assert_eq(open_and_close("w.bin", -1, NULL), SGT_EUNSUPPORTED);
    for (size_t i = 0; i < 4096; i++) ids[i] = token_at(7, i) % 5;
    put_numbers("w.bin", ids, 4096, 4);
    cr_assert_eq(open_and_close("w.bin", -1, NULL), SGT_EUNSUPPORTED);
}

/* 16-bit ids that resemble 32-bit ones: zeros, one id repeated, few different ids, bytes, commas
 * between words, an odd number of ids, and one larger id at an odd position. */
Test(shard, narrow_ids_that_look_wide)
{
    enum { N = 4096 };
    sgt_error err;
    for (int kind = 0; kind < 8; kind++) {
        uint64_t ids[N] = {0};
        size_t n = kind == 6 ? N - 1 : N;
        for (size_t i = 0; i < n; i++) {
            uint64_t id = token_at(7, i), odd = i % 2;
            if (kind == 1) ids[i] = odd ? 0 : 500;
            if (kind == 2) ids[i] = id % 5;
            if (kind == 3) ids[i] = id % 24;
            if (kind == 4) ids[i] = id % 257;
            if (kind == 5) ids[i] = odd ? 11 : id;
            if (kind >= 6) ids[i] = odd ? 0 : id;
        }
        if (kind == 7) ids[N / 2 + 1] = 16;
        put_numbers("n.bin", ids, n, 2);
        for (int raw = -1; raw <= 16; raw += 17)
            cr_assert_eq(open_and_close("n.bin", raw, &err), 0, "%d: %s", kind, err.text);
    }
    /* too few to tell */
    uint64_t few[32] = {0};
    for (size_t i = 0; i < 32; i += 2) few[i] = 100 + i;
    put_numbers("n.bin", few, 32, 2);
    must(open_and_close("n.bin", -1, why));
}

/* A file is not text if a single id among 512 has a byte that is a control character. */
Test(shard, tokens_that_are_almost_text)
{
    static const char *const ids[] = {"e\x1f", "e\x7f",
                                      "\x01"
                                      "e",
                                      "e\x0b"};
    char bytes[1024];
    for (size_t i = 0; i < 2 * sizeof ids / sizeof *ids; i++) {
        memset(bytes, 'e', sizeof bytes);
        memcpy(bytes + (i % 2 ? 1018 : 0), ids[i / 2], 2);
        put_bytes("r.bin", bytes, sizeof bytes);
        must(open_and_close("r.bin", -1, why));
    }
    memset(bytes, 0, 512);
    put_bytes("r.bin", bytes, sizeof bytes);
    must(open_and_close("r.bin", -1, why));
}

Test(shard, what_is_no_shard)
{
    put_bytes("empty.bin", "", 0);
    expect_failure(open_and_close("empty.bin", 0, why), SGT_EFORMAT,
                   "empty.bin: at byte 0: magic number 0, expected 20240520: not a shard (if it "
                   "has no header, pass the file itself)");
    put_bytes("three.bin", "\x88\xd8\x34", 3);
    expect_failure(open_and_close("three.bin", 0, why), SGT_EFORMAT,
                   "three.bin: at byte 0: magic number 0, expected 20240520: not a shard (if it "
                   "has no header, pass the file itself)");
    expect_failure(
        open_and_close("none.bin", 0, why), SGT_EIO,
        "none.bin: No such file or directory (make a folder of shards with sgt-tokenize)");
    cr_assert_eq(mkdir("folder.bin", 0777), 0);
    expect_failure(open_and_close("folder.bin", 0, why), SGT_EFORMAT,
                   "folder.bin: not a regular file");
    cr_assert_eq(mkfifo("pipe.bin", 0666), 0); /* opening it would wait for a writer */
    expect_failure(open_and_close("pipe.bin", 0, why), SGT_EFORMAT, "pipe.bin: not a regular file");
}

/* A shard of 10 tokens takes 1044 bytes, or 1064 bytes with 4-byte ids. Change a word of its header,
 * or its size. */
Test(shard, headers_and_sizes_that_lie)
{
    enum { SIZE = -1 };
    static const struct {
        size_t width;
        int word; /* SIZE: the file's size instead */
        uint32_t value;
        const char *says;
    } lies[] = {
        {2, SIZE, 4, "4 bytes, expected at least the header's 1024: cut short"},
        {2, SIZE, 1023, "1023 bytes, expected at least the header's 1024: cut short"},
        {2, SIZE, 1043,
         "1043 bytes, but its header says 10 tokens, which take 1044 (cut short: make it again)"},
        {2, SIZE, 1046,
         "1046 bytes, but its header says 10 tokens, which take 1044 (too long: make it again)"},
        {2, 0, 12345,
         "at byte 0: magic number 12345, expected 20240520: not a shard (if it has no header, pass "
         "the file itself)"},
        {2, 1, 7, "at byte 4: version 7, expected 1 (16-bit tokens)"},
        {2, 2, 0x7fffffff,
         "1044 bytes, but its header says 2147483647 tokens, which take 4294968318 (cut short: "
         "make it again)"},
        {2, 2, 0xffffffff, "at byte 8: the number of tokens is -1"},
        {2, 3, 2, "at byte 12: header revision 2, expected 0 or 1 (made by a newer sgt?)"},
        {2, 4, 65537,
         "at byte 16: a vocabulary of 65537 ids does not match the 16-bit ids of this file"},
        {2, 5, 50257,
         "at byte 20: end-of-text id 50257, expected an id below the vocabulary size, 50257"},
        {4, 1, 1, "at byte 4: version 1, expected 7 (32-bit tokens)"},
        {4, 2, 11,
         "1064 bytes, but its header says 11 tokens, which take 1068 (cut short: make it again)"},
        {4, 4, 65536,
         "at byte 16: a vocabulary of 65536 ids does not match the 32-bit ids of this file"},
        {4, 4, 1048577,
         "at byte 16: a vocabulary of 1048577 ids does not match the 32-bit ids of this file"}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        id_width = lies[i].width;
        put_shard("a.bin", 0, 10);
        must(open_and_close("a.bin", 0, why));
        if (lies[i].word == SIZE) resize("a.bin", lies[i].value);
        else put_word("a.bin", lies[i].word, lies[i].value);
        expect_failure(open_and_close("a.bin", 0, why), SGT_EFORMAT, "a.bin: %s", lies[i].says);
    }
}

Test(shard, verify_reads_everything)
{
    uint64_t n = 1500000; /* tokens, which take twelve reads to verify */
    put_shard("a.bin", 1, n);
    must(sgt_shard_verify("a.bin", 0, 50257, NULL, NULL, why));

    uint8_t was[2] = {(uint8_t)token_at(1, 1234567), (uint8_t)(token_at(1, 1234567) >> 8)};
    uint8_t other[2] = {was[0] ^ 1, 0};
    patch("a.bin", 1024 + 2 * 1234567, other, 2);
    expect_failure_about(sgt_shard_verify("a.bin", 0, 50257, NULL, NULL, why), SGT_EFORMAT,
                         "its tokens have changed since it was written");
    expect_failure_about(sgt_shard_verify("a.bin", 0, 50257, NULL, NULL, why), SGT_EFORMAT,
                         "a.bin: checksum ");

    patch("a.bin", 1024 + 2 * 1234567, was, 2);
    must(sgt_shard_verify("a.bin", 0, 50257, NULL, NULL, why));

    put_word("a.bin", 8, 0); /* a checksum of 0 means unknown, and is not checked */
    put_word("a.bin", 9, 0);
    patch("a.bin", 1024, "\0\0", 2);
    must(sgt_shard_verify("a.bin", 0, 50257, NULL, NULL, why));
}

/* An id that is too large is found at every position: at the ends of a vector, of a read, and of
 * the file. */
Test(shard, verify_names_the_first_id_that_is_too_large)
{
    static const uint64_t places[] = {0, 1, 4094, 4095, 4096, 4097, 131071, 131072, 135167, 139999};
    for (; id_width <= 4; id_width += 2) {
        const uint32_t high = VOCAB;
        put_shard("a.bin", 1, 140000);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const uint64_t byte = 1024 + id_width * places[i];
            const uint32_t was = token_at(1, places[i]);
            patch("a.bin", byte, &high, id_width);
            expect_failure(sgt_shard_verify("a.bin", 0, VOCAB, NULL, NULL, why), SGT_EFORMAT,
                           "a.bin: token %lu (byte %lu): id %u, expected below %u", places[i], byte,
                           high, high);
            patch("a.bin", byte, &was, id_width);
        }
        must(sgt_shard_verify("a.bin", 0, VOCAB, NULL, NULL, why));
    }
}

Test(shard, verify_stops_and_reads_raw)
{
    sgt_stop stop = {0};
    put_shard("a.bin", 1, 1000);
    sgt_stop_request(&stop);
    expect_failure(sgt_shard_verify("a.bin", 0, 50257, NULL, &stop, why), SGT_ESTOPPED,
                   "a.bin: stopped");
    put_raw("r.bin", 1, 1000);
    must(sgt_shard_verify("r.bin", 16, 50257, NULL, NULL, why));
    put_shard("e.bin", 1, 0);
    must(sgt_shard_verify("e.bin", 0, 50257, NULL, NULL, why));
}
