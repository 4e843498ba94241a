/* text.c: fuzz targets for texts, ids and names. */
#include "tests/fuzz/fuzz.h"

#include "tokenize/bpe/bpe.h"
#include "tokenize/text/pattern.h"
#include "tokenize/text/split.h"
#include "tokenize/text/utf8.h"
#include "tokenize/vocab/vocab.h"

/* ---- encode ---- */

static sgt_vocab *vocab;
static sgt_encoder *encoder;

static size_t encode(const uint8_t *text, size_t n, uint16_t *ids)
{
    sgt_error err;
    size_t count = 0;
    must(sgt_encode(encoder, text, n, ids, n * sizeof *ids, &count, &err) == 0, "any text has ids");
    return count;
}

/* Encode one pre-token by the definition: apply the merge with the lowest rank wherever it occurs,
 * until no merge occurs. */
static size_t merge(const uint8_t *s, size_t n, uint16_t *ids)
{
    for (size_t i = 0; i < n; i++) ids[i] = vocab->byte_id[s[i]];
    for (;;) {
        uint32_t least = SGT_NO_TOKEN;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t merged = sgt_pair(&vocab->pairs, ids[i], ids[i + 1]);
            if (merged < least) least = merged, at = i;
        }
        if (least == SGT_NO_TOKEN) return n;
        ids[at] = (uint16_t)least;
        memmove(ids + at + 1, ids + at + 2, (--n - at - 1) * sizeof *ids);
    }
}

static size_t by_definition(const uint8_t *text, size_t n, uint16_t *ids)
{
    static sgt_pattern *p;
    sgt_error err;
    uint32_t end;
    size_t count = 0;
    must(p || sgt_pattern_new(&p, SGT_PIECE_RULE, &err) == 0, "there is memory");
    sgt_splitter sp = sgt_pattern_splitter(p, text, n, &err);
    for (size_t from; (from = sp.at, sgt_split(&sp, &end, 1)) > 0;)
        count += merge(text + from, end, ids + count);
    must(sp.at == n, "the expression takes any text, and comes to its end");
    return count;
}

/* Repeat the text to 3,000 bytes or more, and let sgt_extent_cut choose a cut in them. Append half
 * of the text again, which sgt_extent_cut has not seen. The ids of the two parts must be those of
 * the whole. */
static void check_extent(const uint8_t *text, size_t n)
{
    size_t times = n ? 3000 / n + 1 : 0, seen = times * n, size = seen + n - n / 2;
    scoped_memory uint8_t *s = malloc(size + 1);
    scoped_memory uint16_t *want = malloc((size + 1) * sizeof *want),
                           *got = malloc((size + 1) * sizeof *got);
    must(s && want && got, "there is memory");
    for (size_t i = 0; i < times; i++) memcpy(s + i * n, text, n);
    memcpy(s + seen, text + n / 2, size - seen);
    size_t cut = sgt_extent_cut(encoder, s, seen), wanted = encode(s, size, want);
    must(cut <= seen, "a cut is in sight");
    size_t left = encode(s, cut, got);
    must(left + encode(s + cut, size - cut, got + left) == wanted, "a cut leaves as many ids");
    must(!memcmp(got, want, wanted * sizeof *want),
         "a cut in a long piece leaves the ids as they are");
}

/* sgt_encode gives the ids of the definition, which splits the text by the regular expression and
 * then applies merges to each pre-token one by one. Encoding the parts of a text that is cut at
 * safe cuts gives the same ids. The ids decode to the text's bytes. Long pre-tokens, which repeat
 * the text, are cut too (bpe.h). */
void fuzz_encode(const uint8_t *data, size_t size)
{
    sgt_error err;
    if (!vocab)
        must(sgt_vocab_gpt2(&vocab, &err) == 0 && sgt_encoder_new(&encoder, vocab, &err) == 0,
             "it begins");
    /* allocate exactly the bytes needed, so that the sanitizer finds reads and writes beyond
     * them */
    scoped_memory uint8_t *text = malloc(size ? size : 1);
    scoped_memory uint16_t *want = malloc((size + 1) * sizeof *want),
                           *got = malloc(size ? size * sizeof *got : 1);
    must(text && want && got, "there is memory");
    if (size) memcpy(text, data, size);
    size_t wanted = by_definition(text, size, want);
    /* encode twice: the first time, the encoder's tables hold words of earlier texts, the second
     * time also those of this text */
    for (int again = 0; again < 2; again++)
        must(encode(text, size, got) == wanted && !memcmp(got, want, wanted * sizeof *want),
             "the ids are those of the definition");
    size_t cut = sgt_rule_cut(NULL, text, size, vocab->joins);
    must(cut <= size, "a cut is within the text");
    size_t left = encode(text, cut, got);
    size_t right = encode(text + cut, size - cut, got + left);
    must(left + right == wanted && !memcmp(got, want, wanted * sizeof *want),
         "a cut leaves the ids as they are");

    if (size) check_extent(text, size);

    scoped_memory char *back = NULL;
    size_t n;
    must(sgt_decode(vocab, got, wanted, &back, &n, &err) == 0, "ids can be decoded");
    must(n == size && !memcmp(back, text, n), "what was encoded decodes to itself");
}

/* ---- rules ---- */

enum { RULES = 16 };
enum { SOME = 7 }; /* maximum pieces per call; few, so that calls begin at many offsets */

/* Split text[from .. n) by the expression p, or by the rule r if p is NULL. Store the ends of the
 * pieces, as offsets in `text`, and return their number. */
static size_t split_ends(const sgt_rule *r, sgt_pattern *p, const uint8_t *text, size_t from,
                         size_t n, size_t *ends)
{
    sgt_error err;
    sgt_splitter sp = p ? sgt_pattern_splitter(p, text + from, n - from, &err)
                        : sgt_splitter_by(r, text + from, n - from);
    uint32_t some[SOME];
    size_t count = 0, got;
    for (size_t at = from; (got = sgt_split(&sp, some, SOME)) > 0; at = ends[count - 1])
        for (size_t i = 0; i < got; i++) ends[count++] = at + some[i];
    must(sp.at == n - from, "it comes to the end of the text");
    return count;
}

/* Check that the pieces on both sides of a cut at p are those of the whole text. If `divides` is
 * set, the cut may divide a piece. */
static void check_cut(const sgt_rule *r, const uint8_t *text, size_t n, size_t p,
                      const size_t *whole, size_t count, size_t *ends, int divides)
{
    size_t left = split_ends(r, NULL, text, 0, p, ends), ended = 0;
    while (ended < count && whole[ended] < p) ended++;
    must(divides || (ended < count && whole[ended] == p), "a piece ends at a cut");
    must(left == ended + 1 && !memcmp(ends, whole, ended * sizeof *ends),
         "pieces before a cut are those of the whole");
    ended += whole[ended] == p;
    size_t right = split_ends(r, NULL, text, p, n, ends);
    must(ended + right == count && !memcmp(ends, whole + ended, right * sizeof *ends),
         "and those after it");
}

/* For each cut that sgt_rule_within allows inside a piece of text[0 .. seen), 64 at most, check
 * that it is safe in the whole text. */
static void check_within(const sgt_rule *r, const uint8_t *text, size_t n, size_t seen,
                         const size_t *whole, size_t count, size_t *ends)
{
    size_t *view = malloc((seen + 1) * sizeof *view), tries = 0;
    must(view != NULL, "there is memory");
    size_t pieces = split_ends(r, NULL, text, 0, seen, view);
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
        must(sgt_pattern_new(&p[rule], r ? r->text : SGT_PIECE_RULE, NULL) == 0,
             "the expression compiles");
    scoped_memory size_t *pattern = malloc((n + 1) * sizeof *pattern);
    must(pattern != NULL, "there is memory");
    want = split_ends(r, p[rule], text, 0, n, pattern);
    must(split_ends(r, NULL, text, 0, n, ends) == want, "there are as many pieces");
    must(!memcmp(ends, pattern, want * sizeof *ends), "the pieces are the same");
    for (size_t seen = n; seen > n / 2; seen -= 1 + seen / 8) {
        size_t cut = sgt_rule_cut(r, text, seen, NULL);
        must(cut <= seen, "a cut is within the text");
        if (cut) check_cut(r, text, n, cut, pattern, want, ends, 0);
    }
    if (r && n > 8) check_within(r, text, n, n - n / 4, pattern, want, ends);
    free(ends);
}

/* For GPT-2's rule and the other rules of split.h, the pieces of a text are those of the regular
 * expression. A cut that split.h allows is safe whatever text follows it. */
void fuzz_rules(const uint8_t *data, size_t size)
{
    /* allocate exactly the text's bytes, so that the sanitizer finds reads beyond them */
    scoped_memory uint8_t *text = malloc(size ? size : 1);
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
}

/* ---- printable ---- */

static void check_shown(const char *s)
{
    size_t n = strlen(s);
    must(sgt_utf8_valid((const uint8_t *)s, n) == n, "it is UTF-8");
    for (size_t i = 0; i < n; i++) {
        must((unsigned char)s[i] >= 0x20 && s[i] != 0x7f, "there is no control character in it");
        must((unsigned char)s[i] != 0xc2 || (unsigned char)s[i + 1] >= 0xa0,
             "nor one of C1, which terminals obey");
    }
}

/* sgt_printable turns any bytes into well-formed text without control characters that fits in its
 * buffer, and leaves printable names unchanged. A message with such a name is one line, and fits in
 * its buffer. */
void fuzz_printable(const uint8_t *data, size_t size)
{
    scoped_memory char *name = strndup((const char *)data, size);
    must(name != NULL, "there is memory");
    size_t n = strlen(name), sizes[] = {0, 1, 2, 5, n, n + 1, 4 * n + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        scoped_memory char *out = malloc(sizes[i] + 1);
        must(out != NULL, "there is memory");
        memset(out, 0x55, sizes[i] + 1);
        sgt_printable(out, sizes[i], name);
        must(out[sizes[i]] == 0x55, "it keeps to its room");
        if (sizes[i]) must(strlen(out) < sizes[i], "it ends there"), check_shown(out);
        if (sizes[i] == 4 * n + 1 && strlen(out) == n)
            must(!strcmp(out, name), "text stays as it is");
    }
    sgt_error err;
    must(sgt_fail(&err, SGT_EIO, "%s: it is %s", name, name) == SGT_EIO, "the code is returned");
    must(strlen(err.text) < sizeof err.text, "it fits");
    check_shown(err.text);
}
