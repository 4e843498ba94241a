/* rules.c: for each rule of split.h, GPT-2's, which is NULL here, and the others, the pieces of a text
 * are those of the regular expression. The text may be cut where split.h says so, whatever follows
 * the cut. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "tokenize/text/pattern.h"
#include "tokenize/text/split.h"

enum { RULES = 16 };
enum { SOME = 7 }; /* most pieces per call, few so that calls begin at many places */

/* Return the ends of the n bytes' pieces by the expression, which the caller frees, and their
 * number. */
static size_t *pattern_ends(sgt_pattern *p, const uint8_t *text, size_t n, size_t *count)
{
    sgt_error err;
    size_t *ends = malloc((n + SOME) * sizeof *ends);
    int got;
    must(ends != NULL, "there is memory");
    must(sgt_pattern_start(p, text, n, &err) == 0, "the expression takes any text");
    *count = 0;
    while ((got = sgt_pattern_split(p, ends + *count, SOME, &err)) > 0) *count += (size_t)got;
    must(got == 0, "the expression comes to an end");
    return ends;
}

/* Store the ends of the pieces of text[from .. n), as offsets in `text`; return their number. */
static size_t split_ends(const sgt_rule *r, const uint8_t *text, size_t from, size_t n,
                         size_t *ends)
{
    sgt_splitter sp =
        r ? sgt_splitter_by(r, text + from, n - from) : sgt_splitter_start(text + from, n - from);
    uint32_t some[SOME];
    size_t count = 0, got;
    for (size_t at = from; (got = sgt_split(&sp, some, SOME)) > 0; at = ends[count - 1])
        for (size_t i = 0; i < got; i++) ends[count++] = at + some[i];
    return count;
}

/* Check that the pieces on both sides of a cut at p are those of the whole text. If `divides` is
 * set, the cut may divide a piece. */
static void check_cut(const sgt_rule *r, const uint8_t *text, size_t n, size_t p,
                      const size_t *whole, size_t count, size_t *ends, int divides)
{
    size_t left = split_ends(r, text, 0, p, ends), ended = 0;
    while (ended < count && whole[ended] < p) ended++;
    must(divides || (ended < count && whole[ended] == p), "a piece ends at a cut");
    must(left == ended + 1 && !memcmp(ends, whole, ended * sizeof *ends),
         "pieces before a cut are those of the whole");
    ended += whole[ended] == p;
    size_t right = split_ends(r, text, p, n, ends);
    must(ended + right == count && !memcmp(ends, whole + ended, right * sizeof *ends),
         "and those after it");
}

/* Where sgt_rule_within allows a cut inside a piece of text[0 .. seen), check that the cut is safe
 * in the whole text. */
static void check_within(const sgt_rule *r, const uint8_t *text, size_t n, size_t seen,
                         const size_t *whole, size_t count, size_t *ends)
{
    size_t *view = malloc((seen + 1) * sizeof *view), tries = 0;
    must(view != NULL, "there is memory");
    size_t pieces = split_ends(r, text, 0, seen, view);
    for (size_t i = 0; i < pieces; i++) {
        size_t from = i ? view[i - 1] : 0;
        for (size_t p = from + 1; p < view[i] && tries < 64; p++)
            if (sgt_rule_within(r, text + from, view[i] - from, p - from, from))
                check_cut(r, text, n, p, whole, count, ends, 1), tries++;
    }
    free(view);
}

/* Check rule number `rule` of split.h, or GPT-2's if it is RULES. */
static void check(size_t rule, const uint8_t *text, size_t n)
{
    static sgt_pattern *p[RULES + 1];
    const sgt_rule *r = rule < RULES ? sgt_rule_at(rule) : NULL;
    size_t want, *ends = malloc((n + 1) * sizeof *ends);
    must(ends != NULL, "there is memory");
    if (!p[rule])
        must((r ? sgt_pattern_new(&p[rule], r->text, NULL) : sgt_pattern_gpt2(&p[rule], NULL)) == 0,
             "the expression compiles");
    size_t *pattern = pattern_ends(p[rule], text, n, &want);
    must(split_ends(r, text, 0, n, ends) == want, "there are as many pieces");
    must(!memcmp(ends, pattern, want * sizeof *ends), "the pieces are the same");
    for (size_t seen = n; seen > n / 2; seen -= 1 + seen / 8) {
        size_t cut = r ? sgt_rule_cut(r, text, seen, NULL) : sgt_split_cut(text, seen, NULL);
        must(cut <= seen, "a cut is within the text");
        if (cut) check_cut(r, text, n, cut, pattern, want, ends, 0);
    }
    if (r && n > 8) check_within(r, text, n, n - n / 4, pattern, want, ends);
    free(pattern);
    free(ends);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    take_level();
    /* allocate exactly the text's bytes, so that the sanitizer finds reads beyond them */
    uint8_t *text = malloc(size ? size : 1);
    must(text != NULL, "there is memory");
    if (size) memcpy(text, data, size);
    size_t rules = 0;
    while (sgt_rule_at(rules)) rules++;
    must(rules < RULES, "there is a place for each rule's expression");
    check(RULES, text, size);
    /* check a long text by one more rule only, because PCRE2 is slow */
    if (size > 300) check(size % rules, text, size);
    else
        for (size_t rule = 0; rule < rules; rule++) check(rule, text, size);
    free(text);
    return 0;
}
