/* test_rules.c: split rules. GPT-2's rule and the other rules of split.h give the same pre-tokens
 * ("pieces") as PCRE2. The other rules also give the ids of tiktoken and the pre-tokens of Hugging
 * Face's library (tests/data/vocab/rules.json). Cutting a text at safe cuts changes no
 * pre-token. */
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tests/tokenize/splits.h"
#include "tokenize/bpe/bpe.h"
#include "tokenize/text/split.h"
#include "tokenize/text/split_blocks.h"
#include "tokenize/text/utf8.h"
#include "tokenize/vocab/vocab.h"

static void hold_to_pattern(const sgt_rule *r, sgt_pattern *p, const uint8_t *s, size_t n,
                            size_t most, const char *what)
{
    size_t want[2050], count = pieces_by_pattern(p, s, n, want);
    cr_assert(n == 0 || want[count - 1] == n);
    hold_levels(r, s, n, most, want, count, what);
}

/* Check that with `cuts` all CPU levels give the same parts. */
static void hold_parts(const sgt_rule *r, const sgt_cuts *cuts, const uint8_t *s, size_t n,
                       size_t most, const char *what)
{
    const char *const *level = split_levels();
    size_t want[2048], have[2048], count = pieces_by(r, r ? "ref" : *level, cuts, s, n, most, want);
    for (; *level; level++) {
        size_t got = pieces_by(r, *level, cuts, s, n, most, have);
        cr_assert(got == count && !memcmp(have, want, count * sizeof *want), "%s, %s, %s",
                  r ? r->text : "gpt2", what, *level);
    }
}

/* Return rule i: GPT-2's (NULL) for 0, then those of split.h's table. */
static const sgt_rule *rule_at(size_t i) { return i ? sgt_rule_at(i - 1) : NULL; }

Test(rules, random_text_as_pcre2_has_it)
{
    uint64_t seed = test_seed();
    scoped(sgt_vocab) *v = gpt2();
    char what[64];
    for (size_t k = 0; !k || rule_at(k); k++) {
        const sgt_rule *r = rule_at(k);
        scoped(sgt_pattern) *p = pattern_of(r);
        rng random = {seed, 0};
        uint8_t text[600];
        for (int i = 0; i < (r ? 12000 : 30000); i++) {
            size_t n = hard_text(&random, text, i % 10 ? 60 : sizeof text, i & 1);
            sprintf(what, "SEED=%llu, text %d", (unsigned long long)seed, i);
            hold_to_pattern(r, p, text, n, 1 + (size_t)i % 100, what);
            hold_parts(r, &v->cuts, text, n, i % 4 ? 200 : 1 + (size_t)i % 64, what);
        }
    }
}

/* Each text has 16 code points in many contexts, so that they occur at every offset in a block of
 * 64 bytes. Each code point is also tested at the end of a text. */
Test(rules, every_code_point_in_many_places_as_pcre2_has_it)
{
    static const char *const contexts[] = {"@ @a@b1@1'@@'s\n@@ @'@@ @\n@ a.@-@ ",
                                           "@ @a@b1@1'@@A@B'@\n@ @/@@ @\nx@'s@ a.@-@ 12@34@ "};
    for (size_t k = 0; !k || rule_at(k); k++) {
        const sgt_rule *r = rule_at(k);
        scoped(sgt_pattern) *p = pattern_of(r);
        for (uint32_t cp = 0; cp < 0x110000; cp += 16) {
            uint8_t text[2048];
            char what[32];
            size_t n = 0;
            /* PCRE2 is slow. So only GPT-2's rule checks all characters above U+3000; each other
             * rule checks one in 32 of them. Of planes 4 to 13, which have no characters, only an
             * eighth is checked. */
            if (r && cp >= 0x3000 && (cp / 16 + k) % 32) continue;
            if (cp >= 0x40000 && cp < 0xE0000 && (cp / 16 + cp / 4096) % 8) continue;
            sprintf(what, "U+%04X and on", cp);
            for (uint32_t i = 0; i < 16; i++) {
                n += put_context(text + n, contexts[r != NULL], cp + i);
                uint8_t end[8] = "x ";
                hold_to_pattern(r, p, end, 2 + put_utf8(end + 2, cp + i), 8, what);
            }
            hold_to_pattern(r, p, text, n, 5, what);
        }
    }
}

/* ---- compared with other programs ---- */

static void expect_ids(const sgt_encoder *encoder, const char *text, const json_t *want,
                       const char *rule)
{
    uint16_t ids[600];
    size_t n = strlen(text), count;
    cr_assert_lt(n, 600);
    count = encode((sgt_encoder *)encoder, text, n, ids);
    cr_assert_eq(count, json_array_size(want), "%s: %s", rule, text);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(ids[i], json_integer_value(json_array_get(want, i)), "%s: id %zu: %s", rule, i,
                     text);
}

static void expect_ends(const size_t *ends, size_t count, const json_t *want, const char *rule)
{
    cr_assert_eq(count, json_array_size(want), "%s: %zu pieces", rule, count);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(ends[i], (size_t)json_integer_value(json_array_get(want, i)),
                     "%s: piece %zu ends at %zu", rule, i, ends[i]);
}

Test(rules, ids_are_tiktokens_and_pieces_hugging_faces)
{
    json_t *all = json_load_file("tests/data/vocab/rules.json", 0, NULL),
           *rules = json_object_get(all, "rules"), *texts = json_object_get(all, "texts");
    cr_assert(json_array_size(rules) == 6 && json_array_size(texts) == 63);
    for (size_t k = 0; k < json_array_size(rules); k++) {
        const char *regex = json_string_value(json_object_get(json_array_get(rules, k), "regex"));
        const sgt_rule r = sgt_rule_of(regex);
        cr_assert_eq(r.by, SGT_RULE_OTHER, "%s", regex);
        scoped(sgt_vocab) *v = load_vocab("tests/data/vocab/ranks.tiktoken", regex);
        scoped(sgt_encoder) *e = new_encoder(v);
        for (size_t i = 0; i < json_array_size(texts); i++) {
            const json_t *row = json_array_get(texts, i),
                         *ends = json_array_get(json_object_get(row, "ends"), k);
            const char *text = json_string_value(json_object_get(row, "text"));
            size_t pieces[600];
            expect_ids(e, text, json_array_get(json_object_get(row, "ids"), k), regex);
            if (!json_array_size(ends)) continue;
            size_t n = strlen(text),
                   count = pieces_by(&r, "auto", NULL, (const uint8_t *)text, n, 200, pieces);
            expect_ends(pieces, count, ends, text);
        }
        /* The rule is recognized in a tokenizer.json, except cl100k's: for Oniguruma, which reads
         * that file, its {1,3}+ matches any number of digits. */
        const char *rule = sgt_rule_from_regex(NULL, regex);
        cr_assert(k ? rule == r.text : !rule, "%s", regex);
        cr_assert_eq(sgt_rule_from_regex(NULL, r.regex), r.text, "%s", regex);
    }
    json_decref(all);
}

/* Patterns that occur in two spellings, or that only PCRE2 can split. */
Test(rules, of_a_tokenizer_json_split_as_hugging_faces_library)
{
    scoped(json_t) *all = json_load_file("tests/data/vocab/regex.json", 0, NULL);
    const char *text = json_string_value(json_object_get(json_array_get(all, 0), "text"));
    cr_assert(text && strlen(text) < 254 && json_array_size(all) == 5);
    for (size_t i = 1; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        const json_t *steps = json_object_get(one, "regex");
        const char *regex = json_string_value(steps), *rule = NULL;
        if (regex) rule = sgt_rule_from_regex(NULL, regex);
        for (size_t k = 0; k < json_array_size(steps); k++) {
            regex = json_string_value(json_array_get(steps, k));
            rule = sgt_rule_from_regex(rule, regex);
            cr_assert_null(sgt_rule_from_regex(rule, regex));
        }
        scoped(sgt_pattern) *p = NULL;
        size_t ends[256], count;
        cr_assert_not_null(rule, "%s", regex);
        must(sgt_pattern_new(&p, rule, why));
        count = pieces_by_pattern(p, (const uint8_t *)text, strlen(text), ends);
        expect_ends(ends, count, json_object_get(one, "ends"), regex);
        if (sgt_rule_of(rule).by != SGT_RULE_GPT2)
            cr_assert_str_eq(sgt_rule_of(rule).regex, json_is_string(steps) ? regex : rule);
    }
    cr_assert_str_eq(sgt_rule_from_regex(NULL, SGT_PIECE_RULE), SGT_PIECE_RULE);
    cr_assert_null(sgt_rule_from_regex(NULL, "\\w+"));
    cr_assert_null(sgt_rule_from_regex(NULL, "(?s).+"));
    cr_assert_null(sgt_rule_of("\\w+").regex);
}

/* ---- cuts ---- */

static void expect_same(sgt_encoder *e, const uint8_t *text, size_t cut, size_t n, const char *what)
{
    scoped_memory uint16_t *whole = malloc((n + 1) * sizeof *whole),
                           *parts = malloc((n + 1) * sizeof *parts);
    size_t want = encode(e, text, n, whole), left = encode(e, text, cut, parts);
    size_t got = left + encode(e, text + cut, n - cut, parts + left);
    cr_assert(got == want && !memcmp(parts, whole, want * sizeof *whole),
              "%s, cut at %zu of %zu: %zu ids, not %zu", what, cut, n, got, want);
}

Test(rules, any_cutting_gives_the_same_ids)
{
    sgt_vocab *all[MOST_RULES];
    sgt_encoder *encoders[MOST_RULES];
    const int rules = every_rule(all, encoders);
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    char what[64];
    for (int i = 0; i < 60000; i++) {
        uint8_t text[160];
        uint16_t whole[160], parts[160];
        /* every second group of four with GPT-2's rule */
        const int k = i / 4 % 2 ? i / 8 % rules : 0;
        size_t n = hard_text(&r, text, 120, i & 1), from = 0, count = 0, ill = 0,
               want = encode(encoders[k], text, n, whole);
        const uint64_t *joins = i & 2 ? all[k]->joins : NULL;
        while (from < n) {
            size_t block = 1 + below(&r, (uint32_t)(n - from)),
                   cut = sgt_rule_cut(&all[k]->rule, text + from, block, joins);
            if (!cut) cut = block == n - from ? block : 0;
            count += encode(encoders[k], text + from, cut, parts + count);
            ill += sgt_utf8_count_ill_formed(text + from, cut, NULL, 0);
            from += cut;
        }
        sprintf(what, "SEED=%llu, text %d, rule %d", (unsigned long long)seed, i, k);
        cr_assert(count == want && !memcmp(whole, parts, want * sizeof *whole), "%s", what);
        cr_assert_eq(ill, sgt_utf8_count_ill_formed(text, n, NULL, 0), "%s", what);
    }
    free_rules(all, encoders, rules);
}

/* Long pre-tokens of one kind of character are cut between tokens. The ids of the parts are those
 * of the whole, whatever text follows. */
Test(rules, cutting_long_pieces_changes_nothing)
{
    char table[] =
        "a~=~ ~\n~A~a,b,th~-,=~\n, ~/~\xE4\xB8\xAD~\xE4\xB8\xAD,\xE6\x96\x87~\xC3\xA9~'~A,a~"
        "\xEF\xBF\xBD~ ,\t~0,1,2,9~A,C,G,T~','',=,|~ab,abc,b~e,r,t,in,on,the";
    enum { KINDS = 21, BYTES = 2600 };
    sgt_vocab *all[MOST_RULES];
    sgt_encoder *encoders[MOST_RULES];
    const int rules = every_rule(all, encoders);
    uint64_t seed = test_seed();
    rng r = {seed, 0};
    char what[64];
    uint8_t text[BYTES + 900];
    size_t found[MOST_RULES] = {0};
    char *kinds[KINDS], *of[KINDS][8];
    size_t counts[KINDS];
    cr_assert_eq(strings_of(kinds, KINDS, table, "~"), KINDS);
    for (int i = 0; i < KINDS; i++) counts[i] = strings_of(of[i], 8, kinds[i], ",");
    for (int i = 0; i < 40 * KINDS; i++) {
        const int kind = i % KINDS, k = i / KINDS % rules;
        size_t n = hard_text(&r, text, 40, 1), view;
        for (size_t until = 2200 + below(&r, 300); n < until;)
            for (const char *s = of[kind][below(&r, (uint32_t)counts[kind])]; *s;)
                text[n++] = (uint8_t)*s++;
        view = n - below(&r, 200);
        size_t cut = sgt_extent_cut(encoders[k], text, view);
        sprintf(what, "SEED=%llu, text %d, rule %d", (unsigned long long)seed, i, k);
        cr_assert_lt(cut, view, "%s", what);
        if (!cut) continue;
        found[k]++;
        expect_same(encoders[k], text, cut, view, what);
        expect_same(encoders[k], text, cut, n, what);
        for (int more = 0; more < 8; more++)
            expect_same(encoders[k], text, cut, n + hard_text(&r, text + n, 80, 1), what);
    }
    for (int k = 0; k < rules; k++)
        cr_assert_geq(found[k], 50, "SEED=%llu: rule %d: %zu", (unsigned long long)seed, k,
                      found[k]);
    free_rules(all, encoders, rules);
}

/* Splitting takes linear time, even on texts for which the regular expressions backtrack. */
Test(rules, long_runs_take_linear_time, .timeout = 20)
{
    char table[] = "a~A~A\xE4\xB8\xAD~aA~\xCC\x81~A\xCC\x81~ ~\n ~/\n~!~1~'~'s";
    char *runs[20];
    const size_t count = strings_of(runs, 20, table, "~");
    const size_t n = 2u << 20;
    scoped_memory uint8_t *text = malloc(n);
    uint32_t ends[200];
    for (size_t i = 0; i < count; i++) {
        const size_t len = strlen(runs[i]);
        for (size_t at = 0; at < n; at++) text[at] = (uint8_t)runs[i][at % len];
        for (size_t k = 0; sgt_rule_at(k); k++) {
            sgt_splitter sp = sgt_splitter_by(sgt_rule_at(k), text, n), ref = sp;
            ref.split = sgt_split_hard, ref.hard = n;
            while (sgt_split(&sp, ends, 200) > 0) continue;
            while (sgt_split(&ref, ends, 200) > 0) continue;
            cr_assert(sp.at == n && ref.at == n);
        }
    }
}
