/* test_oniguruma.c: patterns from Hugging Face's tokenizers. They give the pieces that its library
 * gives (tests/data/vocab/regex.json), or an error that names the unsupported construct. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tokenize/common.h"
#include "tokenize/text/oniguruma.h"
#include "tokenize/text/pattern.h"

static void ends_are(const char *rule, const char *regex, const char *text, const json_t *want)
{
    sgt_pattern *p;
    sgt_error err;
    size_t ends[256], count = 0, limit = json_array_size(want);
    int got;
    cr_assert_eq(sgt_pattern_new(&p, rule, &err), SGT_OK, "%s as %s: %s", regex, rule, err.text);
    cr_assert_eq(sgt_pattern_start(p, text, strlen(text), &err), SGT_OK);
    while ((got = sgt_pattern_split(p, ends, 256, &err)) > 0)
        for (int i = 0; i < got; i++, count++)
            cr_assert(count < limit &&
                          (json_int_t)ends[i] == json_integer_value(json_array_get(want, count)),
                      "%s as %s: piece %zu ends at %zu", regex, rule, count, ends[i]);
    cr_assert_eq(got, 0, "%s: %s", regex, err.text);
    cr_assert_eq(count, limit, "%s as %s: %zu pieces, not %zu", regex, rule, count, limit);
    sgt_pattern_free(p);
}

Test(oniguruma, pieces_are_hugging_faces)
{
    json_t *all = json_load_file("tests/data/vocab/regex.json", 0, NULL);
    const char *text = json_string_value(json_object_get(json_array_get(all, 0), "text"));
    size_t split = 0, empty = 0;
    cr_assert_not_null(text);
    for (size_t i = 1; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        const char *regex = json_string_value(json_object_get(one, "regex"));
        char *rule, *back, *again;
        sgt_error err;
        int rc = sgt_pattern_translate(&rule, regex, SGT_FROM_ONIGURUMA, &err);
        if (rc == SGT_EUNSUPPORTED) {
            cr_assert(strstr(err.text, "it can match nothing"), "%s: %s", regex, err.text);
            empty++;
            continue;
        }
        cr_assert_eq(rc, SGT_OK, "%s: %s", regex, err.text);
        ends_are(rule, regex, text, json_object_get(one, "ends"));
        /* translated back for Hugging Face's library, the rule still means the same, and stays the
         * same when it is translated again */
        cr_assert_eq(sgt_pattern_translate(&back, rule, SGT_TO_ONIGURUMA, &err), SGT_OK,
                     "%s as %s: %s", regex, rule, err.text);
        cr_assert_eq(sgt_pattern_translate(&again, back, SGT_FROM_ONIGURUMA, &err), SGT_OK,
                     "%s: %s", back, err.text);
        ends_are(again, back, text, json_object_get(one, "ends"));
        split++;
        free(rule);
        free(back);
        free(again);
    }
    cr_assert(split == 36 && empty == 3, "%zu patterns split as Hugging Face's, %zu match nothing",
              split, empty);
    json_decref(all);
}

static const char differs[] = "Hugging Face's regex library and sgt's do not agree on it";
static const char ascii[] = "case is ignored, and sgt knows how for ASCII letters alone";
static const char pair[] = "case is ignored, and it makes one letter with the one before it";
static const char again[] = "it repeats a letter whose case is ignored";

Test(oniguruma, refused_by_name)
{
    static const struct {
        const char *regex, *what, *why;
    } of[] = {{"a|^", NULL, NULL},
              {"x*", NULL, NULL},
              {"(?:|b)c?", NULL, NULL},
              {"(?=a)", NULL, NULL},
              {"", NULL, NULL},
              {"a\\w+", "at byte 1: \\w", differs},
              {"[\\W]", "at byte 1: \\W", differs},
              {"\\ba", "at byte 0: \\b", differs},
              {"a\\K", "at byte 1: \\K", differs},
              {"\\Ga", "at byte 0: \\G", differs},
              {"\\R", "at byte 0: \\R", differs},
              {"\\X", "at byte 0: \\X", differs},
              {"\\N+", "at byte 0: \\N", differs},
              {"\\O", "at byte 0: \\O", differs},
              {"\\Qa\\E", "at byte 0: \\Q", differs},
              {"(a)\\1", "at byte 3: \\1", differs},
              {"\\pL", "at byte 0: \\pL", differs},
              {"\\p{Alpha}", "at byte 0: \\p{Alpha}", differs},
              {"\\p{Han}", "at byte 0: \\p{Han}", differs},
              {"\\xe9", "at byte 0: \\xe9", "it is a byte, not a character"},
              {"[[:alpha:]]", "at byte 1: [:", "a set within a set"},
              {"[a[b]]", "at byte 2: [b", "a set within a set"},
              {"[a&&b]", "at byte 2: &&", differs},
              {"[]a]", "at byte 1: ]", "a set that begins with ]"},
              {"[\\s-x]", "at byte 3: -x", differs},
              {"[a-\\d]", "at byte 5: ]", differs},
              {"(?s).", "at byte 0: (?s)", differs},
              {"(?s:.)", "at byte 0: (?s", differs},
              {"(?x)a", "at byte 0: (?x", differs},
              {"(?<n>a)", "at byte 0: (?<", differs},
              {"(?~a)", "at byte 0: (?~", differs},
              {"(?#a)b", "at byte 0: (?#", differs},
              {"(*FAIL)", "at byte 0: (*", differs},
              {"a(?i)b|c", "at byte 1: (?i)", "it is not at the beginning of the pattern"},
              {"a{2}?", "at byte 4: ?", differs},
              {"a{2}{3}", "at byte 4: {", "it repeats a repeat"},
              {"a++*", "at byte 3: *", "it repeats a repeat"},
              {"^*a", "at byte 1: *", "it repeats what takes no text"},
              {"(?i)\\p{L}", "at byte 4: \\p", ascii},
              {"(?i:[^a])", "at byte 5: ^", ascii},
              {"(?i:\xC3\xA9)", "at byte 4: \xC3\xA9", ascii},
              {"(?i:ss)", "at byte 5: s", pair},
              {"(?i:S(?:T))", "at byte 8: T", pair},
              {"(?i:s{2})", "at byte 5: {2}", again}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char *out, want[200], printable[300];
        sgt_error err;
        if (of[i].what) snprintf(want, sizeof want, "%s: %s", of[i].what, of[i].why);
        else
            snprintf(want, sizeof want,
                     "at byte 0: it can match nothing, where Hugging Face's library splits and "
                     "sgt's does not");
        cr_assert_eq(sgt_pattern_translate(&out, of[i].regex, SGT_FROM_ONIGURUMA, &err),
                     SGT_EUNSUPPORTED, "%s", of[i].regex);
        cr_assert_str_eq(err.text, sgt_printable(printable, sizeof printable, want), "%s: %s",
                         of[i].regex, err.text);
    }
}

Test(oniguruma, our_patterns_in_its_words)
{
    static const struct {
        const char *rule, *regex; /* regex NULL: the rule has no equivalent */
    } of[] = {{"^a|b$", "\\Aa|b\\z"},
              {"(?m:^)a|b(?m:$)", "^a|b$"},
              {"(?s).+", "(?m).+"},
              {"(?s:.)(?i:k)", "(?m:.)(?i:k)"},
              {"\\p{N}{1,3}+", "(?>\\p{N}{1,3})"},
              {"(?:ab){2}+c", "(?>(?:ab){2})c"},
              {"\\pL\\PN", "\\p{L}\\P{N}"},
              {"[a[b]", "[a\\[b]"},
              {"\\xe9", "\\x{e9}"},
              {"a{2}?", "a{2}"},
              {"\\h", NULL},
              {"\\v", NULL},
              {"(?m)^a", NULL},
              {"(?s:a)(?-m:b)", NULL},
              {"(*UTF)a", NULL},
              {"\\w", NULL},
              {"a*", NULL},
              {"a{,2}", NULL},
              {"[[:alpha:]]", NULL},
              {"(?<n>a)", NULL}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char *out = NULL;
        int rc = sgt_pattern_translate(&out, of[i].rule, SGT_TO_ONIGURUMA, NULL);
        cr_assert_eq(rc, of[i].regex ? SGT_OK : SGT_EUNSUPPORTED, "%s: %d, %s", of[i].rule, rc,
                     out ? out : "");
        if (out) cr_assert_str_eq(out, of[i].regex);
        free(out);
    }
    /* these patterns of GPT-2, tiktoken and Hugging Face are the same in both dialects */
    static const char *const same[] = {SGT_PIECE_RULE, "\\s+(?!\\S)|\\s+",
                                       "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}]+(?i:'s|'t)?",
                                       "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*", "\\(\\?s\\)"};
    for (size_t i = 0; i < 2 * sizeof same / sizeof *same; i++) {
        const sgt_translation way = i % 2 ? SGT_TO_ONIGURUMA : SGT_FROM_ONIGURUMA;
        char *out;
        cr_assert_eq(sgt_pattern_translate(&out, same[i / 2], way, NULL), SGT_OK);
        cr_assert_str_eq(out, same[i / 2]);
        free(out);
    }
}

/* Translate random patterns. Translation ends, writes only into its own memory, and gives a pattern
 * that PCRE2 accepts or refuses. */
Test(oniguruma, patterns_at_random)
{
    static const char *const parts[] = {
        "a", "s",   "(",      ")",  "[",    "]",     "(?:", "(?i",  "(?m-i:",   "{",
        "}", "{2}", "{1,2}+", "*",  "+",    "?",     "\\",  "\\p{", "L",        "^",
        "$", "|",   "-",      "&",  "\\x",  "\\u00", "\\h", "\\v",  "\xC3\xA9", "\xE2",
        ",", "1",   "\\p{L}", "[^", "(?<=", "#",     " ",   "\n"};
    rng r = {17, 0};
    for (int i = 0; i < 20000; i++) {
        char pattern[200] = "", *out = NULL;
        for (int n = (int)below(&r, 12); n > 0; n--)
            strcat(pattern, parts[below(&r, sizeof parts / sizeof *parts)]);
        for (int way = 0; way < 2; way++) {
            sgt_error err;
            int rc = sgt_pattern_translate(&out, pattern,
                                           way ? SGT_TO_ONIGURUMA : SGT_FROM_ONIGURUMA, &err);
            cr_assert(rc == SGT_OK || rc == SGT_EUNSUPPORTED, "%s", pattern);
            if (rc == SGT_OK) free(out);
        }
    }
}
