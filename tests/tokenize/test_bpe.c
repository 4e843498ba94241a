/* test_bpe.c: byte-pair encoding. Every implementation gives the ids of the definition, in linear
 * time. (tests/fuzz/text.c checks that the ids of any text decode to it.) */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "loader/base/ids.h"
#include "tokenize/bpe/bpe.h"
#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tests/tokenize/splits.h"
#include "tokenize/text/split.h"

/* ---- the definition, for pre-tokens of any length ---- */

/* Return GPT-2's vocabulary, or (`wide`) the one with 4-byte ids, with a rule that makes any text a
 * single pre-token. Its encoders use the fastest method for the length of the text. */
static sgt_vocab *one_piece(int wide)
{
    return wide ? wide_vocab("(?s).+", 0) : load_vocab("gpt2", "(?s).+");
}

/* Write n bytes in which many merges occur: random tokens and parts of tokens one after another,
 * with a random byte now and then. */
static size_t merging_bytes(const sgt_vocab *v, rng *r, uint8_t *out, size_t n)
{
    /* use a small part of the vocabulary, so that runs repeat */
    uint32_t few = 1 + below(r, 8) * below(r, 500);
    uint32_t base = below(r, sgt_vocab_size(v));
    for (size_t i = 0; i < n;) {
        size_t len;
        const uint8_t *t = sgt_vocab_token(v, (base + below(r, few)) % sgt_vocab_size(v), &len);
        if (len > 1 && below(r, 4) == 0) len = 1 + below(r, (uint32_t)len);
        for (size_t j = 0; j < len && i < n; j++) out[i++] = t[j];
        if (i < n && below(r, 16) == 0) out[i++] = (uint8_t)below(r, 256);
    }
    return n;
}

/* Check that `call`, which writes ids of v to `got` and returns their number, gives the `count` ids
 * in `want`. The other arguments are the message, as for printf. */
#define expect_ids(call, ...)                                                    \
    do {                                                                         \
        cr_assert_eq(call, count, __VA_ARGS__);                                  \
        for (size_t at_ = 0; at_ < count; at_++)                                 \
            cr_assert_eq(sgt_id_at(got, v->width, at_), want[at_], __VA_ARGS__); \
    } while (0)

/* The definition looks up whole byte strings, so it shares no table with the code under test. */
static void agree_with_the_definition(int wide)
{
    scoped(sgt_vocab) *v = one_piece(wide);
    scoped(sgt_encoder) *e = new_encoder(v);
    sgt_vocab_parts ranks = {.path = "ranks"};
    add_tokens(&ranks, v);
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    for (int i = 0; i < 20000; i++) {
        static const uint32_t longest[] = {4, 20, 64, 64, 66, 130, 300, 500};
        uint8_t s[512];
        uint32_t want[512], got[512];
        size_t n = merging_bytes(v, &r, s, 1 + below(&r, longest[i % 8]));
        size_t count = encode_by_ranks(&ranks, s, n, want);
        expect_ids(bpe_steps(e, s, n, got), "steps, SEED=%llu, %d", (unsigned long long)seed, i);
        expect_ids(encode(e, s, n, got), "piece, SEED=%llu, %d", (unsigned long long)seed, i);
        if (n > SGT_BPE_SCAN_MAX) continue;
        expect_ids(bpe_scan(v, s, n, got), "scan, SEED=%llu, %d", (unsigned long long)seed, i);
    }
    sgt_vocab_parts_free(&ranks);
}

Test(bpe, three_ways_and_the_definition_agree) { agree_with_the_definition(0); }
Test(bpe, three_ways_and_the_definition_agree_on_4_byte_ids) { agree_with_the_definition(1); }

/* ---- every CPU level against the definition ---- */

/* Like expect_ids, but `want` has ids in merge order, and `got` must have the public ids of the
 * same tokens. */
#define expect_public(call, ...)                                                               \
    do {                                                                                       \
        cr_assert_eq(call, count, __VA_ARGS__);                                                \
        for (size_t at_ = 0; at_ < count; at_++)                                               \
            cr_assert_eq(sgt_id_at(got, v->width, at_),                                        \
                         sgt_vocab_public_id(v, sgt_id_at(want, v->width, at_)), __VA_ARGS__); \
    } while (0)

/* Limit the CPU level to `level`, and return an encoder. */
static sgt_encoder *encoder_at(const sgt_vocab *v, const char *level)
{
    must(sgt_cpu_limit(level, why));
    return new_encoder(v);
}

/* Split a text and encode each pre-token by the definition (long ones by steps), without cuts and
 * without the encoder's tables. */
static size_t encode_by_scan(const sgt_vocab *v, sgt_encoder *e, const uint8_t *s, size_t n,
                             char *ids)
{
    const size_t width = v->width;
    sgt_splitter sp = sgt_splitter_by(NULL, s, n);
    size_t count = 0;
    for (size_t from = 0, len; from < n; from += len) {
        uint32_t end;
        cr_assert_eq(sgt_split(&sp, &end, 1), 1);
        len = sp.at - from;
        count += len <= SGT_BPE_SCAN_MAX ? bpe_scan(v, s + from, len, ids + count * width)
                                         : bpe_steps(e, s + from, len, ids + count * width);
    }
    return count;
}

/* Encode text of every length up to two blocks, and some longer text, at the end of its allocation.
 * Encode each text twice: the second time, the encoder's tables hold its words. */
static void levels_agree(const sgt_vocab *v)
{
    uint64_t seed = test_seed();
    for (const char *const *level = split_levels(); *level; level++) {
        scoped(sgt_encoder) *e = encoder_at(v, *level);
        rng r = {seed, 0};
        for (int i = 0; i < 3000; i++) {
            size_t n = i < 150 ? (size_t)i : below(&r, i % 20 ? 400 : 20000);
            scoped_memory uint8_t *s = malloc(n + 1);
            n = i % 3 ? hard_text(&r, s, n, i % 2) : merging_bytes(v, &r, s, n);
            s = realloc(s, n + !n);
            scoped_memory char *want = malloc(n * v->width + 1), *got = malloc(n * v->width + 1);
            size_t count = encode_by_scan(v, e, s, n, want);
            for (int again = 0; again < 2; again++)
                expect_public(encode(e, s, n, got), "%s, SEED=%llu, %d", *level,
                              (unsigned long long)seed, i);
        }
    }
    sgt_cpu_limit("auto", NULL);
}

Test(bpe, levels_agree_with_the_definition)
{
    scoped(sgt_vocab) *v = gpt2();
    levels_agree(v);
}

Test(bpe, levels_agree_with_the_definition_on_4_byte_ids)
{
    for (int eot_first = 0; eot_first < 2; eot_first++) {
        scoped(sgt_vocab) *v = wide_vocab(NULL, eot_first);
        levels_agree(v);
    }
}

/* Encode every token by itself, and followed by each of six bytes. Some of these texts are in the
 * encoder's tables, some are not, and some have more ids than a table entry holds. */
static void levels_agree_on_every_token(int wide)
{
    static const char behind[] = {0, 'e', ' ', '\'', '\xC3', '\xFF'};
    scoped(sgt_vocab) *v = one_piece(wide);
    for (const char *const *level = split_levels(); *level; level++) {
        scoped(sgt_encoder) *e = encoder_at(v, *level);
        for (uint32_t id = 0; id < sgt_vocab_eot(v); id++)
            for (size_t b = 0; b < sizeof behind; b++) {
                uint8_t s[256];
                uint32_t want[256], got[256];
                size_t n;
                const uint8_t *token = sgt_vocab_token(v, id, &n);
                memcpy(s, token, n);
                s[n++] = (uint8_t)behind[b];
                if (n > SGT_BPE_SCAN_MAX) continue;
                size_t count = bpe_scan(v, s, n, want);
                expect_public(encode(e, s, n, got), "%s, token %u", *level, id);
                if (b) continue;
                cr_assert(encode(e, s, n - 1, got) == 1 && sgt_id_at(got, v->width, 0) == id,
                          "%s, token %u", *level, id);
            }
    }
    sgt_cpu_limit("auto", NULL);
}

Test(bpe, levels_agree_on_every_token_of_gpt2) { levels_agree_on_every_token(0); }
Test(bpe, levels_agree_on_every_token_of_4_byte_ids) { levels_agree_on_every_token(1); }

/* ---- cuts ---- */

/* Check that no cut is allowed between two bytes that are neighbours in some token. Of all other
 * pairs whose second byte begins a character beyond ASCII, at least `tenths` tenths allow a cut. */
static void expect_cuts(const uint64_t joins[1024], int tenths)
{
    sgt_cuts c;
    int may = 0, are = 0;
    sgt_cuts_make(&c, joins);
    for (unsigned pair = 0; pair < 65536; pair++) {
        const uint8_t s[2] = {(uint8_t)(pair >> 8), (uint8_t)pair};
        int joined = (int)(joins[pair >> 6] >> (pair & 63) & 1), cut = sgt_cuts_at(&c, s + 1);
        cr_assert(!cut || (s[1] >= 0xC0 && !joined), "%02x %02x", s[0], s[1]);
        may += s[1] >= 0xC0 && !joined;
        are += cut;
    }
    cr_assert_geq(10 * are, tenths * may, "%d of %d", are, may);
}

/* GPT-2's table of pairs, an empty one, and random ones. Some have more kinds of first bytes than
 * the bits that stand for kinds. */
Test(cuts, are_where_no_token_joins)
{
    scoped(sgt_vocab) *v = gpt2();
    uint64_t joins[1024] = {0};
    rng r = {3, 0};
    expect_cuts(v->joins, 9);
    for (int i = 0; i < 20; i++) {
        expect_cuts(joins, i ? 0 : 10);
        for (uint32_t n = 2000; n > 0; n--) {
            uint32_t pair = below(&r, 65536);
            joins[pair >> 6] |= (uint64_t)1 << (pair & 63);
        }
    }
}

/* ---- tables, time, threads ---- */

/* Encode more different pre-tokens than the encoder's tables hold, each twice. Whether an entry was
 * evicted or kept must not change the ids. */
Test(bpe, what_the_table_forgot_changes_nothing)
{
    scoped(sgt_vocab) *v = one_piece(0);
    scoped(sgt_encoder) *e = new_encoder(v);
    rng r = {7, 0};
    for (int i = 0; i < 400000; i++) {
        uint8_t s[16];
        uint16_t want[16], got[16];
        size_t n = 1 + below(&r, 15);
        /* use NUL bytes too, because the tables pad keys with zeros */
        for (size_t j = 0; j < n; j++) s[j] = below(&r, 8) ? (uint8_t)('a' + below(&r, 6)) : 0;
        size_t count = bpe_scan(v, s, n, want);
        for (int again = 0; again < 2; again++) {
            cr_assert_eq(encode(e, s, n, got), count);
            cr_assert_arr_eq(got, want, count * sizeof *want);
        }
    }
}

/* A single pre-token or a run of white space of 2 MiB, for which quadratic time would be hours. */
Test(bpe, long_runs_take_linear_time, .timeout = 60)
{
    const size_t size = 2 << 20;
    static const char *const units[] = {
        "a",    "=",        "7",     " ", "\n", " \n", "\xE0\xB8\x81", "\xE4\xB8\xAD",
        "\xFF", "\xF0\x9F", "random"};
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    scoped_memory uint8_t *s = malloc(size);
    scoped_memory uint16_t *ids = malloc(size * sizeof *ids);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t len = strlen(units[u]);
        rng r = {11, 0};
        int random = units[u][0] == 'r';
        for (size_t i = 0; i < size; i++)
            s[i] = (uint8_t)(random ? 'a' + below(&r, 26) : (uint32_t)units[u][i % len]);
        cr_assert_gt(encode(e, s, size, ids), size / 200);
    }
}

static void *encode_long(void *shared)
{
    scoped(sgt_encoder) *e = new_encoder(shared);
    uint8_t s[5000];
    uint16_t ids[5000];
    for (size_t i = 0; i < sizeof s; i++) s[i] = (uint8_t)('a' + i * i % 26);
    uint32_t crc = crc32_of(0, ids, encode(e, s, sizeof s, ids) * sizeof *ids);
    return (void *)(uintptr_t)crc;
}

Test(bpe, threads_that_need_the_trie_at_once_share_it)
{
    for (int round = 0; round < 10; round++) {
        scoped(sgt_vocab) *v = gpt2();
        pthread_t t[4];
        void *first, *other;
        for (int i = 0; i < 4; i++) cr_assert_eq(pthread_create(&t[i], NULL, encode_long, v), 0);
        pthread_join(t[0], &first);
        for (int i = 1; i < 4; i++) {
            pthread_join(t[i], &other);
            cr_assert_eq(other, first);
        }
    }
}

/* The caller must give room for as many ids as the text has bytes, in the vocabulary's width. */
Test(bpe, too_little_room_is_refused)
{
    for (int wide = 0; wide < 2; wide++) {
        scoped(sgt_vocab) *v = one_piece(wide);
        scoped(sgt_encoder) *e = new_encoder(v);
        const sgt_text texts[] = {{"abc", 3}, {"!?", 2}};
        uint32_t ids[5];
        size_t ends[2];
        expect_failure(sgt_encode_texts(e, texts, 2, ids, 3 * v->width - 1, ends, why), SGT_EUSAGE,
                       "ids: the buffer has room for 2 ids of %zu bytes, but a text of 3 bytes may "
                       "need an id for each byte (pass a larger buffer)",
                       v->width);
        must(sgt_encode_texts(e, texts, 2, ids, 5 * v->width, ends, why));
        cr_assert(ends[0] == encode(e, "abc", 3, ids) &&
                  ends[1] == ends[0] + encode(e, "!?", 2, ids));
        expect_failure_about(sgt_encode(e, "a", 1, ids, v->width - 1, ends, why), SGT_EUSAGE,
                             "has room for 0 ids");
        cr_assert_eq(encode(e, "", 0, ids), 0);
    }
}

Test(bpe, decoding_refuses_an_id_that_is_none)
{
    static const uint16_t ids[] = {15496, 50256, 50257};
    scoped(sgt_vocab) *v = gpt2();
    scoped_memory char *text = NULL;
    size_t n = 0;
    expect_failure(sgt_decode(v, ids, 3, &text, &n, why), SGT_EFORMAT,
                   "token 2: id 50257 is not in the vocabulary gpt2 (its ids are below 50257)");
    cr_assert_null(text);
    must(sgt_decode(v, ids, 2, &text, &n, why));
    cr_assert_str_eq(text, "Hello<|endoftext|>");
}
