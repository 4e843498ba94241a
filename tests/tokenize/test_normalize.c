/* test_normalize.c: Unicode normal forms, compared with results recorded from Python's unicodedata,
 * and with utf8proc on the whole text. Also texts that are cut at allowed cuts. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tokenize/text/normalize.h"
#include "tokenize/text/unicode.h"
#include "tokenize/text/utf8.h"
#include "tokenize/vocab/vocab.h"

SCOPED_STRUCT(sgt_normalizer, sgt_normalizer_free)

static const sgt_normalize forms[] = {SGT_NORMALIZE_NFC, SGT_NORMALIZE_NFKC};

/* Normalize s[0..n). The result is z's memory, valid until the next call. */
static const uint8_t *normal(sgt_normalizer *z, sgt_normalize form, const void *s, size_t n,
                             size_t *out_n)
{
    const uint8_t *out;
    must(sgt_normalize_text(z, form, s, n, &out, out_n, why));
    return out;
}

static void becomes(const char *from, const char *to)
{
    scoped(sgt_normalizer) z = {0};
    size_t n;
    const uint8_t *out = normal(&z, SGT_NORMALIZE_NFC, from, strlen(from), &n);
    cr_assert(n == strlen(to) && !memcmp(out, to, n), "%s: %.*s", from, (int)n, (const char *)out);
}

/* Bytes that are not UTF-8 stay, and nothing combines across them. */
Test(normalize, ill_formed_text)
{
    becomes("", "");
    becomes("e\xFF\u0301\xC3", "e\xFF\u0301\xC3");
    becomes("\xE2\x82"
            "e\u0301\xF0\x9F",
            "\xE2\x82\u00E9\xF0\x9F");
}

static const char *const contexts[] = {
    "@",       "a@", "@\u0301", "\u1100@", "@\u1161\u11A8", "e\u0323@\u0302", "\u4e2d@\u0345",
    "\uFF76@", "@@"};

Test(normalize, every_code_point_as_python_has_it)
{
    size_t size, n;
    char *text = whole_file("tests/data/vocab/normalize.txt", &size), *line = text;
    scoped(sgt_normalizer) z = {0};
    unsigned from, to, want[2];
    uint32_t checked = 0;
    for (; sscanf(line, "%x %x %x %x", &from, &to, &want[0], &want[1]) == 4;
         line = strchr(line, '\n') + 1)
        for (int f = 0; f < 2; f++) {
            uint32_t crc = 0;
            for (uint32_t cp = from; cp <= to; cp++, checked++)
                for (size_t c = 0; c < sizeof contexts / sizeof *contexts; c++) {
                    uint8_t s[64];
                    const uint8_t *out =
                        normal(&z, forms[f], s, put_context(s, contexts[c], cp), &n);
                    crc = crc32_of(crc32_of(crc, out, n), "\n", 1);
                }
            cr_assert_eq(crc, want[f], "U+%04X to U+%04X, form %d: %08x, not %08x", from, to, f,
                         crc, want[f]);
        }
    /* 282,230 characters of Unicode 14.0.0, in both forms; no surrogates */
    cr_assert_eq(checked, 2 * 282230);
    free(text);
}

/* Mark the characters that may combine with the character before them: all but the first character
 * of every decomposition. */
static void mark_seconds(uint8_t *second)
{
    for (int32_t cp = 0; cp < 0x110000; cp++) {
        int32_t parts[32];
        int state = 0;
        utf8proc_ssize_t n = utf8proc_decompose_char(cp, parts, 32, UTF8PROC_DECOMPOSE, &state);
        for (utf8proc_ssize_t i = 1; i < n; i++) second[parts[i]] = 1;
    }
}

Test(normalize, boundaries_are)
{
    scoped_memory uint8_t *second = calloc(0x110000, 1);
    mark_seconds(second);
    for (int32_t cp = 0; cp < 0x110000; cp++)
        for (int compat = 0; compat < 2 && sgt_normalize_boundary((uint32_t)cp); compat++) {
            int32_t parts[32];
            int state = 0;
            cr_assert_geq(
                utf8proc_decompose_char(
                    cp, parts, 32, UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0), &state),
                1);
            cr_assert_eq(utf8proc_get_property(parts[0])->combining_class, 0, "U+%04X", cp);
            cr_assert_eq(second[parts[0]], 0, "U+%04X begins with what may combine", cp);
        }
}

/* sgt_rule_cut_normalized relies on this: a character's normal form ends in white space only if the
 * character is white space, and ASCII characters never change. */
Test(normalize, makes_no_white_space_at_an_end)
{
    scoped(sgt_normalizer) z = {0};
    uint8_t s[8];
    size_t n;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        if (cp >= 0xD800 && cp < 0xE000) continue;
        size_t len = put_utf8(s, cp);
        const uint8_t *out = normal(&z, SGT_NORMALIZE_NFKC, s, len, &n);
        uint32_t last = 0;
        for (size_t at = 0; at < n;) at += sgt_utf8_unit(out + at, n - at, &last);
        if (sgt_unicode_class(cp) != SGT_CLASS_SPACE)
            cr_assert_neq(sgt_unicode_class(last), SGT_CLASS_SPACE, "U+%04X", cp);
        if (cp < 0x80) cr_assert(n == 1 && out[0] == cp);
    }
}

/* Write random text with many combining marks. Its normal form must equal utf8proc's. Cut where
 * sgt_rule_cut_normalized says, the parts must give the same text and tokens. */
static size_t marked_text(rng *r, uint8_t *out, size_t max)
{
    static const uint32_t starters[] = {
        'a',    'e',    ' ',    '\n',   'q',    0x1100, 0x1161, 0x11A8, 0xAC00, 0xD558,  0x304B,
        0x4E2D, 0x0915, 0x212B, 0xFB01, 0x3000, 0x00A0, 0x09C7, 0x09BE, 0xFF76, 0x1F600, 0x0344};
    static const uint32_t marks[] = {0x0301, 0x0323, 0x0307, 0x0345, 0x3099,
                                     0x093C, 0x0327, 0xFF9E, 0x05B0, 0x0F71};
    size_t n = 0;
    while (n + 8 < max) {
        n += put_utf8(out + n, starters[below(r, sizeof starters / sizeof *starters)]);
        for (uint32_t k = below(r, 8) ? below(r, 3) : below(r, 40); k-- > 0 && n + 8 < max;)
            n += put_utf8(out + n, marks[below(r, sizeof marks / sizeof *marks)]);
    }
    return n;
}

Test(normalize, any_text_as_a_whole_and_in_parts)
{
    rng r = {test_seed(), 0};
    scoped(sgt_normalizer) z = {0}, parts = {0};
    sgt_vocab *all[MOST_RULES];
    sgt_encoder *encoders[MOST_RULES];
    uint8_t s[600];
    uint16_t whole[8000], cut[8000];
    const int rules = every_rule(all, encoders);
    for (int i = 0; i < 3000; i++) {
        sgt_encoder *e = encoders[i / 2 % rules];
        size_t n = marked_text(&r, s, 16 + below(&r, sizeof s - 16)), got, count = 0;
        for (int f = 0; f < 2; f++) {
            scoped_memory uint8_t *want = NULL;
            const int options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | (f ? UTF8PROC_COMPAT : 0);
            utf8proc_ssize_t want_n = utf8proc_map(s, (utf8proc_ssize_t)n, &want, options);
            const uint8_t *out = normal(&z, forms[f], s, n, &got);
            cr_assert(want_n == (utf8proc_ssize_t)got && !memcmp(want, out, got),
                      "seed %llu, text %d, form %d", (unsigned long long)r.key, i, f);
        }
        const uint8_t *out = normal(&z, forms[i & 1], s, n, &got);
        size_t ids = encode(e, out, got, whole), from = 0;
        while (from < n) {
            size_t len = 1 + below(&r, 60),
                   to = from + len < n
                            ? sgt_rule_cut_normalized(&all[i / 2 % rules]->rule, s + from, len)
                            : n - from;
            if (!to) to = n - from;
            const uint8_t *part = normal(&parts, forms[i & 1], s + from, to, &got);
            count += encode(e, part, got, cut + count);
            from += to;
        }
        cr_assert(ids == count && !memcmp(whole, cut, ids * sizeof *cut),
                  "seed %llu, text %d in parts", (unsigned long long)r.key, i);
    }
    free_rules(all, encoders, rules);
}

/* Half a million marks follow one letter, in the worst order for a sort that swaps neighbours,
 * which would take hours. */
Test(normalize, many_marks_take_linear_time, .timeout = 10)
{
    const size_t marks = 500000;
    scoped(sgt_normalizer) z = {0};
    scoped_memory uint8_t *s = malloc(1 + 4 * marks);
    size_t n = 0, got;
    s[n++] = 'a';
    for (size_t i = 0; i < marks; i++) n += put_utf8(s + n, 0x0301);
    for (size_t i = 0; i < marks; i++) n += put_utf8(s + n, 0x0323);
    const uint8_t *out = normal(&z, SGT_NORMALIZE_NFC, s, n, &got);
    /* U+1EA1, then all other marks: first those of the lower class */
    cr_assert_eq(got, 3 + 2 * (2 * marks - 1));
    cr_assert(!memcmp(out, "\u1EA1\u0323", 5) && !memcmp(out + got - 2, "\u0301", 2));
}

Test(normalize, cuts_are_before_white_space_alone)
{
    cr_assert_eq(sgt_rule_cut_normalized(NULL, (const uint8_t *)"ab cd ef", 8), 5);
    cr_assert_eq(sgt_rule_cut_normalized(NULL, (const uint8_t *)"ab  ", 4), 2);
    cr_assert_eq(sgt_rule_cut_normalized(NULL, (const uint8_t *)"\u3000\n", 4),
                 0); /* the character before it is white space too */
    cr_assert_eq(sgt_rule_cut_normalized(NULL, (const uint8_t *)"\u4E2D\n\u4E2D", 7), 3);
    cr_assert_eq(sgt_rule_cut_normalized(NULL, (const uint8_t *)"\xFF\n", 2), 1);
    cr_assert_eq(sgt_rule_cut_normalized(NULL, (const uint8_t *)" abc", 4), 0);
    cr_assert_eq(sgt_rule_cut_normalized(NULL, (const uint8_t *)"", 0), 0);
    /* in rules other than GPT-2's, newlines may end a pre-token of other characters */
    const sgt_rule other = sgt_rule_of("cl100k");
    cr_assert_eq(sgt_rule_cut_normalized(&other, (const uint8_t *)"ab cd!\nef", 9), 2);
}
