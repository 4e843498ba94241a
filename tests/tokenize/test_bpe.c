/* Merging: the ways of doing it against one another, linear time, and back to bytes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bpe.h"
#include "common.h"

/* ---- the definition, for any length, by looking up whole byte strings: it shares no table with what it checks ---- */

#define NAMES 131072 /* slots, open addressing over FNV-1a */

static size_t name_slot(const sgt_vocab *v, const uint16_t *by_name, const uint8_t *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ s[i]) * 16777619u;
    for (size_t i = h % NAMES;; i = (i + 1) % NAMES) {
        size_t len = 0;
        const uint8_t *t = by_name[i] ? sgt_vocab_token(v, by_name[i] - 1u, &len) : NULL;
        if (!t || (len == n && !memcmp(t, s, n))) return i;
    }
}

static uint16_t *make_names(const sgt_vocab *v)
{
    uint16_t *by_name = calloc(NAMES, sizeof *by_name);
    for (uint32_t id = 0; id < sgt_vocab_eot(v); id++) {
        size_t n;
        const uint8_t *s = sgt_vocab_token(v, id, &n);
        by_name[name_slot(v, by_name, s, n)] = (uint16_t)(id + 1);
    }
    return by_name;
}

static size_t encode_by_names(const sgt_vocab *v, const uint16_t *by_name, const uint8_t *s, size_t n, uint16_t *ids)
{
    size_t from[512], count = n;
    for (size_t i = 0; i <= n; i++) from[i] = i;
    for (;;) {
        uint32_t best = UINT32_MAX;
        size_t at = 0;
        for (size_t i = 0; i + 2 <= count; i++) {
            uint32_t id = by_name[name_slot(v, by_name, s + from[i], from[i + 2] - from[i])];
            if (id && id < best) best = id, at = i;
        }
        if (best == UINT32_MAX) break;
        memmove(from + at + 1, from + at + 2, (count - at - 1) * sizeof *from);
        count--;
    }
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint16_t)(by_name[name_slot(v, by_name, s + from[i], from[i + 1] - from[i])] - 1);
    return count;
}

/* Bytes that merge a lot: tokens and parts of tokens one after another, at times a random byte. */
static size_t merging_bytes(const sgt_vocab *v, rng *r, uint8_t *out, size_t n)
{
    uint32_t few = 1 + below(r, 8) * below(r, 500); /* of a small part of the vocabulary: runs that repeat */
    uint32_t base = below(r, 50000);
    for (size_t i = 0; i < n;) {
        size_t len;
        const uint8_t *t = sgt_vocab_token(v, (base + below(r, few)) % 50256, &len);
        if (len > 1 && below(r, 4) == 0) len = 1 + below(r, (uint32_t)len);
        for (size_t j = 0; j < len && i < n; j++) out[i++] = t[j];
        if (i < n && below(r, 16) == 0) out[i++] = (uint8_t)below(r, 256);
    }
    return n;
}

Test(bpe, three_ways_and_the_definition_agree)
{
    sgt_vocab *v = gpt2();
    sgt_encoder *e = new_encoder(v);
    uint16_t *by_name = make_names(v);
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    for (int i = 0; i < 20000; i++) {
        static const uint32_t longest[] = {4, 20, 64, 64, 66, 130, 300, 500};
        uint8_t s[512];
        uint16_t want[512], got[512];
        size_t n = merging_bytes(v, &r, s, 1 + below(&r, longest[i % 8]));
        size_t count = encode_by_names(v, by_name, s, n, want);
        cr_assert_eq(sgt_bpe_steps(e, s, n, got), count, "steps, SEED=%llu, %d", (unsigned long long)seed, i);
        cr_assert_arr_eq(got, want, count * sizeof *want, "steps, SEED=%llu, %d", (unsigned long long)seed, i);
        cr_assert_eq(sgt_encode_piece(e, s, n, got), count, "piece, SEED=%llu, %d", (unsigned long long)seed, i);
        cr_assert_arr_eq(got, want, count * sizeof *want, "piece, SEED=%llu, %d", (unsigned long long)seed, i);
        if (n > SGT_BPE_SCAN_MAX) continue;
        cr_assert_eq(sgt_bpe_scan(v, s, n, got), count, "scan, SEED=%llu, %d", (unsigned long long)seed, i);
        cr_assert_arr_eq(got, want, count * sizeof *want, "scan, SEED=%llu, %d", (unsigned long long)seed, i);
    }
    free(by_name);
    sgt_encoder_free(e);
    sgt_vocab_free(v);
}

/* What sgt_bpe_steps rests on: each token is what the merges make of its own bytes. */
Test(bpe, every_token_is_what_its_bytes_merge_to)
{
    sgt_vocab *v = gpt2();
    sgt_encoder *e = new_encoder(v);
    for (uint32_t id = 0; id < sgt_vocab_eot(v); id++) {
        uint16_t ids[256];
        size_t n;
        const uint8_t *s = sgt_vocab_token(v, id, &n);
        if (n <= SGT_BPE_SCAN_MAX) cr_assert(sgt_bpe_scan(v, s, n, ids) == 1 && ids[0] == id, "token %u", id);
        cr_assert(sgt_bpe_steps(e, s, n, ids) == 1 && ids[0] == id, "token %u", id);
    }
    sgt_encoder_free(e);
    sgt_vocab_free(v);
}

/* More different pieces than the cache holds, met twice: what was evicted or kept must not matter. */
Test(bpe, a_small_cache_changes_nothing)
{
    sgt_vocab *v = gpt2();
    sgt_encoder *e = new_encoder(v);
    rng r = {7, 0};
    for (int i = 0; i < 400000; i++) {
        uint8_t s[16];
        uint16_t want[16], got[16];
        size_t n = 1 + below(&r, 15);
        for (size_t j = 0; j < n; j++) s[j] = below(&r, 8) ? (uint8_t)('a' + below(&r, 6)) : 0; /* NUL: as padding */
        size_t count = sgt_bpe_scan(v, s, n, want);
        for (int again = 0; again < 2; again++) {
            cr_assert_eq(sgt_encode_piece(e, s, n, got), count);
            cr_assert_arr_eq(got, want, count * sizeof *want);
        }
    }
    sgt_encoder_free(e);
    sgt_vocab_free(v);
}

/* The least of three times, in seconds of this thread. */
static double time_encode(sgt_encoder *e, const uint8_t *s, size_t n, uint16_t *ids)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        struct timespec a, b;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        sgt_encode(e, s, n, ids);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        double t = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
        if (t < best) best = t;
    }
    return best;
}

/* One piece, or one run of white space, of 1 MiB takes about 16 times as long as one of 64 KiB; 256 times where
 * quadratic. */
Test(bpe, long_runs_take_linear_time)
{
    const size_t small = 64 << 10, large = 1 << 20;
    static const char *const units[] = {"a", "=", "7", " ", "\n", " \n", "\xE0\xB8\x81", "\xE4\xB8\xAD", "\xFF",
                                        "\xF0\x9F", "random"};
    sgt_vocab *v = gpt2();
    sgt_encoder *e = new_encoder(v);
    uint8_t *s = malloc(large);
    uint16_t *ids = malloc(large * sizeof *ids);
    sgt_vocab_need_trie(v); /* made once, whatever the length */
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t len = strlen(units[u]);
        rng r = {11, 0};
        int random = units[u][0] == 'r';
        for (size_t i = 0; i < large; i++) s[i] = (uint8_t)(random ? 'a' + below(&r, 26) : (uint32_t)units[u][i % len]);
        double t = time_encode(e, s, small, ids), whole = time_encode(e, s, large, ids);
        cr_assert_lt(whole, 64 * t + 0.01, "'%s': %.1f ms for 64 KiB, %.1f ms for 1 MiB", units[u], t * 1e3,
                     whole * 1e3);
    }
    free(s);
    free(ids);
    sgt_encoder_free(e);
    sgt_vocab_free(v);
}

static void *encode_long(void *shared)
{
    sgt_encoder *e = new_encoder(shared);
    uint8_t s[5000];
    uint16_t ids[5000];
    for (size_t i = 0; i < sizeof s; i++) s[i] = (uint8_t)('a' + i * i % 26);
    uint32_t crc = crc32_of(0, ids, sgt_encode(e, s, sizeof s, ids) * sizeof *ids);
    sgt_encoder_free(e);
    return (void *)(uintptr_t)crc;
}

Test(bpe, threads_that_need_the_trie_at_once_share_it)
{
    for (int round = 0; round < 10; round++) {
        sgt_vocab *v = gpt2();
        pthread_t t[4];
        void *first, *other;
        for (int i = 0; i < 4; i++) cr_assert_eq(pthread_create(&t[i], NULL, encode_long, v), 0);
        pthread_join(t[0], &first);
        for (int i = 1; i < 4; i++) {
            pthread_join(t[i], &other);
            cr_assert_eq(other, first);
        }
        sgt_vocab_free(v);
    }
}

/* ---- and back ---- */

static void comes_back(const sgt_vocab *v, sgt_encoder *e, const uint8_t *s, size_t n, uint64_t seed)
{
    sgt_error err;
    uint16_t *ids = malloc(n * sizeof *ids + 1); /* no more than promised: sanitizers watch its end */
    char *text = NULL;
    size_t m = 0, count = sgt_encode(e, s, n, ids);
    cr_assert_leq(count, n);
    cr_assert_eq(sgt_decode(v, ids, count, &text, &m, &err), SGT_OK, "%s", err.text);
    cr_assert_eq(m, n, "SEED=%llu", (unsigned long long)seed);
    cr_assert_arr_eq(text, s, n, "SEED=%llu", (unsigned long long)seed);
    cr_assert_eq(text[n], 0);
    free(text);
    free(ids);
}

Test(decode, any_bytes_come_back)
{
    sgt_vocab *v = gpt2();
    sgt_encoder *e = new_encoder(v);
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    for (int i = 0; i < 4000; i++) {
        size_t n = i < 40 ? (size_t)i : below(&r, i % 50 ? 400 : 20000);
        uint8_t *s = malloc(n + 1); /* exactly as long as it is */
        if (i % 2) n = hard_text(&r, s, n, 1);
        else
            for (size_t j = 0; j < n; j++) s[j] = (uint8_t)below(&r, 256);
        s = realloc(s, n + !n);
        comes_back(v, e, s, n, seed);
        free(s);
    }
    sgt_encoder_free(e);
    sgt_vocab_free(v);
}

Test(decode, refuses_an_id_that_is_none)
{
    static const uint16_t ids[] = {15496, 50256, 50257};
    sgt_error err;
    sgt_vocab *v = gpt2();
    char *text = NULL;
    size_t n = 0;
    cr_assert_eq(sgt_decode(v, ids, 3, &text, &n, &err), SGT_EFORMAT);
    cr_assert_str_eq(err.text, "token 2: id 50257 is not in the vocabulary gpt2 (below 50257)");
    cr_assert_null(text);
    cr_assert_eq(sgt_decode(v, ids, 2, &text, &n, &err), SGT_OK);
    cr_assert_str_eq(text, "Hello<|endoftext|>");
    free(text);
    sgt_vocab_free(v);
}
