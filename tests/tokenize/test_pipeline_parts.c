/* test_pipeline_parts.c: single parts of the pipeline: the feed, the choice of the split, the
 * journal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/philox.h"
#include "tokenize/input/feed.h"
#include "tokenize/out/journal.h"
#include "tokenize/text/utf8.h"
#include "tokenize/vocab/vocab.h"
#include "tests/expect.h"
#include "tests/tokenize/pipeline.h"

SCOPED_POINTER(sgt_corpus, sgt_corpus_free)
SCOPED_POINTER(sgt_text_feed, sgt_text_feed_close)
SCOPED_STRUCT(sgt_unit, sgt_unit_free)

TestSuite(pipeline_parts, .init = enter_scratch, .fini = leave_scratch);

static sgt_corpus *list(const char *input)
{
    sgt_corpus *c;
    sgt_tokenize_options o = {.inputs = &input, .input_count = 1, .binary = SGT_BINARY_KEEP};
    must(sgt_corpus_list(&c, &o, why));
    return c;
}

/* Write text[n], which has long pre-tokens, to in/a and tokenize it. They are cut between tokens,
 * so the ids of the parts must be those of the whole, and no unit may have more than `most` bytes.
 * replaced: as with --invalid-utf8 replace. */
static void expect_long_pieces(const char *text, size_t n, int replaced, size_t most)
{
    sgt_error err;
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    scoped(sgt_unit) u = {0};
    put_text("in/a", text, n);
    scoped(sgt_corpus) *c = list("in");
    sgt_tokenize_options o = {.invalid_utf8 = replaced ? SGT_INVALID_REPLACE : SGT_INVALID_KEEP,
                              .special_eot = 1};
    sgt_text_feed_options fo = {
        .reading = {.corpus = c, .o = &o, .vocab = v}, .piece = 1000, .long_piece = 4000};
    scoped(sgt_text_feed) *f = NULL;
    must(sgt_text_feed_open(&f, &fo, why));
    scoped_memory uint16_t *whole = malloc(3 * n * sizeof *whole),
                           *parts = malloc(3 * (n + 1) * sizeof *parts);
    scoped_memory uint8_t *twin = malloc(3 * n);
    memcpy(twin, text, n);
    size_t m = replaced ? sgt_utf8_replace(twin, (const uint8_t *)text, n) : n;
    size_t want = encode(e, twin, m, whole), got = 0;
    int rc;
    while ((rc = sgt_text_feed_next(f, &u, &err)) == 0) {
        cr_assert_leq(u.used, most, "byte 10 is %d", text[10]);
        must(sgt_unit_work(&u, sgt_part_encode, &e, why));
        memcpy(parts + got, u.ids, u.id_count * sizeof *parts);
        got += u.id_count;
    }
    cr_assert_eq(rc, 1);
    cr_assert_eq(got, want + 1); /* the end-of-text id is added */
    cr_assert_arr_eq(parts + 1, whole, want * sizeof *whole);
}

Test(pipeline_parts, long_pieces_are_cut_by_their_tokens)
{
    enum { N = 50000 };
    static const char kinds[] = {0, ' ', 'a', '0', '=', '\'', '\xFF'};
    scoped_memory char *text = malloc(N);
    mkdir("in", 0777);
    for (size_t k = 0; k < sizeof kinds; k++) {
        memset(text, kinds[k], N);
        expect_long_pieces(text, N, 0, 8000);
    }
    expect_long_pieces(text, N, 1, 8000); /* each \xFF becomes three bytes */
    for (size_t i = 0; i < N; i++)
        text[i] = (char)(sgt_philox_u64(2, i, 0) % 3 ? '=' : 0x80 + i % 128);
    expect_long_pieces(text, N, 1, 8000);
    for (size_t i = 0; i < N; i++) text[i] = (char)('a' + sgt_philox_u64(1, i, 0) % 26);
    expect_long_pieces(text, N, 1, 8000);
    /* runs of three classes of characters */
    for (size_t i = 0; i < N; i += 9000) memset(text + i, i / 9000 & 1 ? ' ' : '<', 3000);
    expect_long_pieces(text, N, 0, 8000);
}

/* Read `path` with at most `most` bytes between two cuts. Expect `units` units, and then the error
 * `want` ("": the end of the text). */
static void expect_units(const char *path, size_t most, const sgt_tokenize_options *o, int units,
                         const char *want)
{
    sgt_error err;
    scoped(sgt_unit) u = {0};
    scoped(sgt_corpus) *c = list(path);
    scoped(sgt_text_feed) *f = NULL;
    sgt_text_feed_options all = {.reading = {.corpus = c, .o = o}, .piece = 4096, .extent = most};
    uint64_t lines = 0, bad = 0;
    int rc, count = 0;
    must(sgt_text_feed_open(&f, &all, why));
    for (err.text[0] = 0; !(rc = sgt_text_feed_next(f, &u, &err)); count++) {
        must(sgt_unit_unfold(&u, why));
        for (size_t i = 0; i < u.count; i++) lines += u.parts[i].records, bad += u.parts[i].bad;
        if (u.bad.why && (rc = sgt_bad_line_fail(&u.bad, c, lines + 1, &err)) < 0) break;
    }
    cr_assert_eq(rc, *want ? SGT_EFORMAT : 1, "%s", err.text);
    cr_assert_str_eq(err.text, want);
    cr_assert_eq(count, units, "%d units", count);
    cr_assert_eq(bad, (uint64_t)o->skip_bad);
    cr_assert(!o->skip_bad || lines == 4);
}

/* Text in which no cut is allowed, or a single line, is read up to a limit of bytes. Beyond it,
 * text is an error, and a line counts as a bad line. */
Test(pipeline_parts, stretch_that_cannot_be_cut)
{
    static const sgt_tokenize_options plain, skip = {.skip_bad = 1};
    const size_t most = 1 << 20;
    scoped_memory char *text = malloc(3 * most);
    memset(text, 'a', 3 * most);
    memcpy(text, "a  b=", 5); /* text can be cut after the = */
    mkdir("in", 0777);
    put_text("in/b.txt", text, 5 + most);
    expect_units("in/b.txt", most, &plain, 2, "");
    put_text("in/b.txt", text, 5 + most + 2);
    expect_units("in/b.txt", most, &plain, 1,
                 "in/b.txt: offset 5: more than 1 MiB without a place to divide the text (split -C "
                 "512M FILE makes smaller files)");
    static const char good[] = "{\"text\":\"x\"}\n";
    const size_t n = sizeof good - 1;
    for (size_t length = most + 1; length < 3 * most - 3 * n; length += most / 3) {
        memset(text, 'a', 3 * most);
        memcpy(text, good, n);
        text[n + length] = '\n';
        memcpy(text + n + length + 1, good, n);
        memcpy(text + 2 * n + length + 1, good, n - 1);
        put_text("in/a.jsonl", text, 3 * n + length);
        expect_units("in/a.jsonl", most, &skip, 3, "");
        expect_units(
            "in/a.jsonl", most, &plain, 1,
            "in/a.jsonl: line 2: byte 1048577: longer than 1 GiB (--skip-bad skips such lines)");
    }
}

/* The split depends only on name and position. The values are recorded, so that it never changes by
 * accident. */
Test(pipeline_parts, split)
{
    int val = 0;
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "dir/%d.txt", i);
        val += sgt_text_feed_split(name, 0, .01);
        cr_assert(sgt_text_feed_split(name, 0, .2) || !sgt_text_feed_split(name, 0, .01),
                  "a larger share lets go of %s", name);
        cr_assert(!sgt_text_feed_split(name, 0, 0) && sgt_text_feed_split(name, 0, 1));
    }
    cr_assert(val > 70 && val < 130, "1%% of 10000 documents: %d", val);
    char bits[33] = "";
    for (int i = 0; i < 32; i++)
        strcat(bits, sgt_text_feed_split(i % 2 ? "a" : "b/c", (uint64_t)i, .5) ? "1" : "0");
    cr_assert_str_eq(bits, "10000110001111101111000101110001");
}

/* A journal is read as it was written. If it is cut off or changed anywhere, it is refused, or
 * gives the same position. */
Test(pipeline_parts, damaged_journal)
{
    sgt_error err;
    sgt_journal *j, *again;
    scoped_memory char *bytes = NULL;
    static const char options[] = "{\"a\": 1}";
    const sgt_checkpoint now = {.file = 4,
                                .offset = 400,
                                .skip = 4000,
                                .shards = {4, 1},
                                .all_bytes = UINT64_MAX - 4,
                                .hash = UINT64_MAX};
    mkdir("w", 0777);
    must(sgt_journal_open(&j, "w", why));
    cr_assert_null(j);
    must(sgt_journal_create(&j, "w", UINT64_MAX - 1, options, why));
    must(sgt_journal_open(&again, "w", why));
    cr_assert(sgt_journal_empty(again) && !again->begun);
    sgt_journal_close(again);
    for (uint64_t i = 0; i < 2 * SGT_INVALID_LISTED; i++)
        sgt_journal_invalid(j, (sgt_invalid_at){i / 2, i * i});
    must(sgt_journal_commit(j, &now, why));
    must(sgt_journal_open(&again, "w", why));
    cr_assert(again->begun && again->fingerprint == UINT64_MAX - 1 &&
              !strcmp(again->options, options) && !memcmp(&again->now, &now, sizeof now) &&
              again->invalid_count == SGT_INVALID_LISTED &&
              !memcmp(again->invalid, j->invalid, sizeof j->invalid));
    sgt_journal_close(again);
    sgt_journal_close(j);
    const size_t n = get_file(&bytes, "w/journal");
    for (size_t cut = 0; cut < n; cut++) {
        put_text("w/journal", bytes, cut);
        cr_assert_eq(sgt_journal_open(&j, "w", &err), SGT_EFORMAT, "cut after %zu bytes", cut);
    }
    for (size_t i = 0; i < n; i++) { /* change each byte in turn */
        bytes[i] ^= 1;
        put_text("w/journal", bytes, n);
        bytes[i] ^= 1;
        if (sgt_journal_open(&j, "w", &err) < 0) continue;
        cr_assert(!memcmp(&j->now, &now, sizeof now), "byte %zu", i);
        sgt_journal_close(j);
    }
}
