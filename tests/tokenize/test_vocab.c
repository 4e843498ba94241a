/* test_vocab.c: vocabularies: GPT-2's, which is built in, those that sgt_vocab_load reads from files
 * of every format, and those that are trained. All methods of encoding give the same ids with them. */
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tokenize/bpe/bpe.h"
#include "tests/expect.h"
#include "tests/scratch.h"
#include "tests/tokenize/common.h"
#include "tokenize/learn/merges.h"
#include "tokenize/vocab/vocab.h"
#include "tokenize/vocab/vocab_file.h"

#define DATA "tests/data/vocab/"
#define GPT2_MERGES "tokenize/vocab/gpt2.bpe" /* the published file */

Test(vocab_load, a_vocabulary_of_every_format)
{
    scoped(sgt_vocab) *trained = load_vocab(DATA "trained", NULL),
                      *o200k = load_vocab(DATA "o200k/tokenizer.json", NULL);
    scoped(sgt_vocab) *ranks = load_vocab(DATA "ranks.tiktoken", NULL);
    size_t n;
    cr_assert(sgt_vocab_size(trained) == 700 && sgt_vocab_size(o200k) == 700 &&
              sgt_vocab_size(ranks) == 700);
    cr_assert(sgt_vocab_eot(trained) == 0 && sgt_vocab_eot(o200k) == 0 &&
              sgt_vocab_eot(ranks) == 699);
    cr_assert_str_eq(sgt_vocab_name(trained), "trained");
    cr_assert_str_eq(sgt_vocab_name(o200k), "tokenizer.json");
    cr_assert(!memcmp(sgt_vocab_token(trained, 0, &n), "<|endoftext|>", 13) && n == 13);
    cr_assert(!memcmp(sgt_vocab_token(trained, 1, &n), "!", 1) && n == 1);
    cr_assert_null(sgt_vocab_token(trained, 700, &n));
    cr_assert_null(sgt_vocab_token(trained, UINT32_MAX, &n));
    /* the two vocabularies have different ids */
    cr_assert_neq(sgt_vocab_fingerprint(trained), sgt_vocab_fingerprint(ranks));
}

/* The headers of all shards contain this fingerprint. If it changed, old shards would seem to have
 * another vocabulary. */
Test(vocab_load, gpt2_by_any_name_is_gpt2)
{
    sgt_error err;
    scoped(sgt_vocab) *built_in = gpt2(), *named = load_vocab("gpt2", NULL), *file, *by_ranks,
                      *other;
    size_t n;
    char *merges = whole_file(GPT2_MERGES, &n);
    file = vocab_of_merges(merges, &err);
    cr_assert(file, "%s", err.text);
    free(merges);
    cr_assert_eq(sgt_vocab_fingerprint(file), SGT_GPT2_FINGERPRINT);
    cr_assert_eq(sgt_vocab_fingerprint(named), SGT_GPT2_FINGERPRINT);
    cr_assert_eq(sgt_vocab_fingerprint(built_in), SGT_GPT2_FINGERPRINT);
    cr_assert_str_eq(sgt_vocab_name(file), "gpt2");
    cr_assert(!file->ids, "ids in merge order need no table");
    sgt_vocab_parts ranks = {.path = "ranks", .ranks = 1};
    add_tokens(&ranks, named);
    must(sgt_vocab_from_parts(&by_ranks, &ranks, why));
    sgt_vocab_parts_free(&ranks);
    cr_assert_eq(sgt_vocab_fingerprint(by_ranks), SGT_GPT2_FINGERPRINT);
    other = load_vocab("gpt2", "\\p{L}+");
    cr_assert_neq(sgt_vocab_fingerprint(other), SGT_GPT2_FINGERPRINT);
    cr_assert(sgt_vocab_size(other) == 50257 && sgt_vocab_eot(other) == 50256);
}

/* ---- the built-in vocabulary ---- */

/* gpt2.tables was computed from the merges: both ids of each merge, and the factors of the hash
 * table of their pairs. Programs use it unchecked when they start. If it is wrong, this test writes
 * the right content to build/gpt2.tables. */
Test(vocab, the_embedded_tables_are_those_of_the_merges)
{
    scoped(sgt_vocab) *v = gpt2(), *lines = load_vocab(GPT2_MERGES, NULL);
    const size_t merges = 50000 * 2 * sizeof(uint16_t), all = merges + SGT_PAIR_GROUPS * 2;
    size_t n;
    scoped_memory char *file = whole_file("tokenize/vocab/gpt2.tables", &n), *want = malloc(all);
    for (uint32_t i = 0; i < 100000; i++)
        ((uint16_t *)want)[i] = (uint16_t)lines->halves[256 + i / 2][i % 2];
    memcpy(want + merges, lines->pairs.factors, all - merges);
    if (n != all || memcmp(file, want, all) != 0)
        must(sgt_file_put("build/gpt2.tables", want, all, why));
    cr_assert(n == all && !memcmp(file, want, all));
    cr_assert_arr_eq(v->halves, lines->halves, v->made * sizeof *v->halves);
    cr_assert_arr_eq(v->joins, lines->joins, 1024 * sizeof *v->joins);
    uint32_t pairs = 0;
    for (uint32_t id = 256; id < v->eot; id++)
        cr_assert_eq(sgt_pair(&v->pairs, v->halves[id][0], v->halves[id][1]), id);
    for (uint32_t key = 0; key < 1u << 17; key++) pairs += v->pairs.slots[key] != UINT64_MAX;
    cr_assert_eq(pairs, 50000, "no other pair is in the table");
}

Test(vocab, a_short_list_of_merges_will_do)
{
    sgt_error err;
    uint16_t ids[8];
    scoped(sgt_vocab) *v =
        vocab_of_merges("#version: 0.2\na b\nab c", &err); /* no newline at the end */
    cr_assert(v, "%s", err.text);
    cr_assert_eq(sgt_vocab_size(v), 259);
    scoped(sgt_encoder) *e = new_encoder(v);
    cr_assert_eq(encode(e, "abcab!", 6, ids), 3);
    cr_assert(ids[0] == 257 && ids[1] == 256 && ids[2] == 0);
}

/* The tokenizer.json of a set has all tokens and merges: reading it gives the same vocabulary. (Of
 * Hugging Face's settings in it, the reader refuses others.) */
Test(vocab, tokenizer_json_says_it_all)
{
    char folder[SCRATCH_SIZE], path[SCRATCH_SIZE + 16];
    scoped(sgt_vocab) *v = gpt2();
    scoped_memory char *text = NULL;
    size_t n = 0;
    must(sgt_vocab_tokenizer_json(v, &text, &n, why));
    cr_assert(scratch_folder(folder, "/tmp", "vocab"), "%s", folder);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    must(sgt_file_put(path, text, n, why));
    scoped(sgt_vocab) *again = load_vocab(path, NULL);
    cr_assert_eq(sgt_vocab_fingerprint(again), SGT_GPT2_FINGERPRINT);
    must(sgt_remove_tree(folder, why));
}

/* Together, tokens may have 16 bytes for each of the most ids, 16 MiB, less two nodes of the
 * trie. */
Test(vocab_load, tokens_have_16_mib)
{
    sgt_vocab_parts p = {.path = "long"};
    const size_t half = ((size_t)1 << 23) - 1;
    scoped_memory char *s = calloc(half, 1);
    must(sgt_vocab_parts_token(&p, 0, s, half, 0, why));
    s[0] = 1;
    must(sgt_vocab_parts_token(&p, 1, s, half, 0, why));
    expect_failure(sgt_vocab_parts_token(&p, 2, "a", 1, 0, why), SGT_EFORMAT,
                   "long: its tokens have more than 16777214 bytes together");
    sgt_vocab_parts_free(&p);
}

/* ---- ranks ---- */

/* Load the ranks, and compare the ids of random pre-tokens. Return 0 if sgt does not support such
 * ranks. */
static int ranks_agree(rng *r, const sgt_vocab_parts *p, unsigned letters)
{
    scoped(sgt_vocab) *v = NULL;
    sgt_error err;
    if (sgt_vocab_from_parts(&v, p, &err) < 0) {
        cr_assert(strstr(err.text, "its place in the order of merges is ambiguous"), "%s",
                  err.text);
        return 0;
    }
    scoped(sgt_encoder) *e = new_encoder(v);
    for (int i = 0; i < 200; i++) {
        uint8_t s[64];
        uint32_t want[64];
        uint16_t scan[64], got[64];
        const size_t n = 1 + below(r, i % 4 ? 8 : sizeof s);
        for (size_t j = 0; j < n; j++) s[j] = (uint8_t)('a' + below(r, letters));
        const size_t count = encode_by_ranks(p, s, n, want);
        cr_assert_eq(encode(e, s, n, got), count);
        for (size_t j = 0; j < count; j++)
            cr_assert_eq(got[j], want[j], "seed %llu: %.*s", (unsigned long long)r->key, (int)n, s);
        const size_t scanned = bpe_scan(v, s, n, scan);
        cr_assert(bpe_steps(e, s, n, got) == scanned && !memcmp(got, scan, 2 * scanned));
    }
    return 1;
}

/* Vocabularies that are trained on text of few letters, so that their tokens overlap and nest in
 * every way. Only the tokens are loaded, with their ids as ranks. */
Test(vocab_load, ranks_of_trained_merges)
{
    rng r = {test_seed(), 0};
    for (int round = 0; round < 60; round++) {
        const unsigned letters = 1 + below(&r, 4);
        sgt_pieces pieces = {0};
        sgt_vocab_parts trained = {.path = "trained"}, parts = {.path = "random", .ranks = 1};
        for (int i = 0; i < 400; i++) {
            uint8_t s[64];
            const size_t n = 1 + below(&r, sizeof s - 1);
            for (size_t j = 0; j < n; j++) s[j] = (uint8_t)('a' + below(&r, letters));
            must(sgt_pieces_add(&pieces, s, n, 1 + below(&r, 4), why));
        }
        must(sgt_merges_train(&trained, &pieces, 260 + below(&r, 400), NULL, why));
        for (uint32_t id = 0; id < trained.size; id++)
            must(sgt_vocab_parts_token(&parts, id, trained.tokens[id].s, trained.tokens[id].n, !id,
                                       why));
        cr_assert(ranks_agree(&r, &parts, letters));
        sgt_pieces_free(&pieces);
        sgt_vocab_parts_free(&parts);
        sgt_vocab_parts_free(&trained);
    }
}

/* If ranks do not come from training, a token may have a lower rank than its halves, or no two
 * tokens may merge into it. */
Test(vocab_load, ranks_in_any_order)
{
    rng r = {test_seed(), 0};
    int supported = 0;
    for (int round = 0; round < 2000; round++) {
        const unsigned letters = 2 + below(&r, 3);
        const uint32_t size = 257 + below(&r, 12);
        sgt_vocab_parts p = {.path = "ranks", .ranks = 1};
        for (uint32_t i = 0; i < 256; i++) {
            const uint8_t byte = sgt_alphabet_byte(i);
            must(sgt_vocab_parts_token(&p, i, &byte, 1, 0, why));
        }
        while (p.size < size) {
            uint8_t s[6];
            const size_t n = 2 + below(&r, 2 + below(&r, 4));
            for (size_t j = 0; j < n; j++) s[j] = (uint8_t)('a' + below(&r, letters));
            if (sgt_vocab_parts_find(&p, s, n) == SGT_NO_TOKEN)
                must(sgt_vocab_parts_token(&p, p.size, s, n, 0, why));
        }
        must(sgt_vocab_parts_token(&p, p.size, "</s>", 4, 1, why));
        supported += ranks_agree(&r, &p, letters);
        sgt_vocab_parts_free(&p);
    }
    cr_assert(supported > 200 && supported < 2000, "%d supported", supported);
}

/* ---- merges against the definition ---- */

/* Train merges by the definition: before each merge, count all pairs in all words again. */
static uint32_t train_plainly(uint16_t words[][16], size_t *lengths, const uint64_t *counts,
                              size_t n, uint32_t size, uint16_t (*pairs)[2])
{
    static uint64_t met[400][400];
    uint32_t made = 257;
    for (; made < size; made++) {
        uint64_t best = 0;
        uint32_t l = 0, right = 0;
        memset(met, 0, sizeof met);
        for (size_t w = 0; w < n; w++)
            for (size_t i = 1; i < lengths[w]; i++) met[words[w][i - 1]][words[w][i]] += counts[w];
        for (uint32_t i = 0; i < 400; i++)
            for (uint32_t j = 0; j < 400; j++)
                if (met[i][j] > best) best = met[l = i][right = j];
        if (!best) break;
        pairs[made - 257][0] = (uint16_t)l;
        pairs[made - 257][1] = (uint16_t)right;
        for (size_t w = 0; w < n; w++) {
            size_t to = 0;
            for (size_t i = 0; i < lengths[w]; i++) {
                int here = words[w][i] == l && i + 1 < lengths[w] && words[w][i + 1] == right;
                words[w][to++] = here ? (uint16_t)made : words[w][i];
                i += (size_t)here;
            }
            lengths[w] = to;
        }
    }
    return made - 257;
}

Test(merges, are_those_of_the_definition)
{
    rng r = {test_seed(), 0};
    for (int round = 0; round < 30; round++) {
        uint16_t words[60][16], pairs[400][2];
        size_t lengths[60];
        uint64_t counts[60];
        sgt_pieces pieces = {0};
        sgt_vocab_parts m = {.path = "trained"};
        unsigned letters = 1 + below(&r, 4);
        for (size_t w = 0; w < 60; w++) {
            uint8_t s[16];
            lengths[w] = 1 + below(&r, 15);
            /* a count that needs more than 32 bits */
            counts[w] = below(&r, 6) ? 1 + below(&r, 5) : 5000000000u;
            for (size_t i = 0; i < lengths[w]; i++)
                words[w][i] = (uint16_t)(1 + (s[i] = (uint8_t)below(&r, letters)));
            for (size_t i = 0; i < lengths[w]; i++) s[i] = sgt_alphabet_byte(s[i]);
            must(sgt_pieces_add(&pieces, s, lengths[w], counts[w], why));
        }
        must(sgt_merges_train(&m, &pieces, 380, NULL, why));
        uint32_t count = train_plainly(words, lengths, counts, 60, 380, pairs);
        cr_assert_eq(m.merge_count, count, "seed %llu, round %d: %zu merges, %u",
                     (unsigned long long)r.key, round, m.merge_count, count);
        for (uint32_t i = 0; i < count; i++)
            cr_assert(m.merges[i].left == pairs[i][0] && m.merges[i].right == pairs[i][1],
                      "seed %llu, round %d: merge %u", (unsigned long long)r.key, round, i);
        sgt_vocab_parts_free(&m);
        sgt_pieces_free(&pieces);
    }
}
