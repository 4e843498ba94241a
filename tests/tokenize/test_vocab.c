/* test_vocab.c: the built-in vocabulary: it equals the published file, its tokens are right, and it
 * can be written for Hugging Face's library. */
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "loader/base/file.h"
#include "tokenize/vocab/vocab.h"

#define LINES "tokenize/vocab/gpt2.bpe" /* the published file of merges */

static void token_is(const sgt_vocab *v, uint32_t id, const char *want)
{
    size_t n;
    const uint8_t *s = sgt_vocab_token(v, id, &n);
    cr_assert(s && n == strlen(want) && !memcmp(s, want, n), "token %u", id);
}

Test(vocab, tokens)
{
    size_t n = 0;
    scoped(sgt_vocab) *v = gpt2();
    cr_assert_eq(sgt_vocab_size(v), 50257);
    cr_assert_eq(sgt_vocab_eot(v), 50256);
    cr_assert_str_eq(sgt_vocab_name(v), "gpt2");
    token_is(v, 0, "!");
    token_is(v, 187, "\xFF");
    token_is(v, 220, " ");
    token_is(v, 198, "\n");
    token_is(v, 256, " t");
    token_is(v, 262, " the");
    token_is(v, 15496, "Hello");
    token_is(v, 50255, " gazed");
    token_is(v, 50256, "<|endoftext|>");
    cr_assert_null(sgt_vocab_token(v, 50257, &n));
    cr_assert_null(sgt_vocab_token(v, UINT32_MAX, &n));
    sgt_vocab_free(NULL);
}

/* The headers of all shards contain this fingerprint. If it changed, old shards would seem to have
 * another vocabulary. */
Test(vocab, the_fingerprint_is_for_good)
{
    scoped(sgt_vocab) *v = gpt2(), *lines = load_vocab(LINES, NULL);
    cr_assert_eq(sgt_vocab_fingerprint(lines), SGT_GPT2_FINGERPRINT, "%llx",
                 (unsigned long long)sgt_vocab_fingerprint(lines));
    cr_assert_eq(sgt_vocab_fingerprint(v), SGT_GPT2_FINGERPRINT);
}

/* gpt2.tables was computed from the merges: both ids of each merge, and the factors of the hash
 * table of their pairs. Programs use it unchecked when they start. If it is wrong, this test writes
 * the right content to build/gpt2.tables. */
Test(vocab, the_embedded_tables_are_those_of_the_merges)
{
    scoped(sgt_vocab) *v = gpt2(), *lines = load_vocab(LINES, NULL);
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

static void refused(const char *text, const char *why)
{
    sgt_error err;
    cr_assert_null(vocab_of_merges(text, &err));
    cr_assert(strstr(err.text, why), "%s", err.text);
}

Test(vocab, merges_that_make_no_sense_are_refused)
{
#define WANTED "expected two tokens in GPT-2's byte alphabet, separated by a space"
    refused("#version: 0.2\nab\n", "m: line 2: " WANTED);
    refused("#version: 0.2\na b\na  b\n", "m: line 3: " WANTED);
    refused("#version: 0.2\n\n", "m: line 2: " WANTED);
    refused("#version: 0.2\na b c\n", "m: line 2: " WANTED);
    refused("#version: 0.2\na \xE4\xB8\xAD\n", "m: line 2: " WANTED);
#undef WANTED
    refused("#version: 0.2\na bc\n", "merge 1: its right token is not in the vocabulary");
    refused("#version: 0.2\na b\nb c\na bc\nab c\n", "tokens 258 and 259 are the same: abc");
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

Test(vocab, tokenizer_json_says_it_all)
{
    scoped(sgt_vocab) *v = gpt2();
    scoped_memory char *text = NULL;
    size_t n = 0;
    json_error_t fault;
    must(sgt_vocab_tokenizer_json(v, &text, &n, why));
    scoped(json_t) *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &fault);
    cr_assert(j, "%s", fault.text);
    json_t *model = json_object_get(j, "model");
    json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    cr_assert_eq(json_object_size(vocab), 50257);
    cr_assert_eq(json_array_size(merges), 50000);
    cr_assert_eq(json_integer_value(json_object_get(vocab, "\xC4\xA0the")), 262);
    cr_assert_eq(json_integer_value(json_object_get(vocab, "\\")), 59);
    json_t *added = json_array_get(json_object_get(j, "added_tokens"), 0);
    cr_assert_eq(json_integer_value(json_object_get(added, "id")), 50256);
    cr_assert(json_is_true(json_object_get(added, "special")));
    cr_assert(
        json_is_false(json_object_get(json_object_get(j, "pre_tokenizer"), "add_prefix_space")));

    /* line i of the file is merge i */
    size_t size, line = 0;
    scoped_memory char *file = whole_file(LINES, &size);
    const char *p = file, *end = p + size;
    for (p = strchr(p, '\n') + 1; p < end; p = strchr(p, '\n') + 1, line++) {
        const char *merge = json_string_value(json_array_get(merges, line));
        cr_assert(merge && !strncmp(merge, p, strlen(merge)) && p[strlen(merge)] == '\n',
                  "merge %zu", line);
    }
    cr_assert_eq(line, 50000);
}
