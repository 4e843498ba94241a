/* pattern.c: splits text by a regular expression with PCRE2. Because PCRE2 needs well-formed UTF-8,
 * text that has ill-formed sequences is matched in the form of a copy, called the twin, in which
 * U+FFFD replaces each of them. Offsets in the twin are converted back to offsets in the text. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenize/text/pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/text/unicode.h"
#include "tokenize/text/utf8.h"

/* maximum size in bytes of the stack for PCRE2's JIT; the default of 32 KiB is too small for
 * patterns that backtrack over many characters */
#define JIT_STACK_MAX (8u << 20)

struct sgt_pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    /* copy of the text in which U+FFFD replaces ill-formed UTF-8; NULL if the text is well
     * formed */
    uint8_t *twin;
    /* Length of, and offsets in, the subject that PCRE2 matches: the twin if there is one, else the
     * text itself. n: length of the subject. at: end of the last piece that was returned. from, to:
     * start and end of the next match; both equal n if there is no further match. */
    size_t n, at, from, to;
    sgt_error *why;
};

void sgt_pattern_free(sgt_pattern *p)
{
    if (!p) return;
    pcre2_code_free(p->code);
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->context);
    pcre2_jit_stack_free(p->stack);
    free(p->twin);
    free(p);
}

/* Compile a pattern. The option makes $ match only at the end of the text, as in Rust's regex
 * library, which tiktoken uses. */
static int compile(sgt_pattern **out, const char *pattern, sgt_error *err)
{
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY;
    int code;
    PCRE2_SIZE where;
    PCRE2_UCHAR why[160];
    sgt_pattern *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, "pattern");
    p->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &code, &where, NULL);
    if (!p->code) {
        sgt_pattern_free(p);
        if (code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY)
            return sgt_fail_memory(err, "pattern");
        pcre2_get_error_message(code, why, sizeof why);
        return sgt_fail(err, SGT_EUSAGE, "pattern: at byte %zu: %s", (size_t)where,
                        (const char *)why);
    }
    /* Ignore an error here: if the system forbids the JIT, PCRE2's interpreter gives the same
     * result more slowly. */
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    p->match = pcre2_match_data_create(1, NULL);
    p->context = pcre2_match_context_create(NULL);
    p->stack = pcre2_jit_stack_create(32768, JIT_STACK_MAX, NULL);
    if (!p->match || !p->context) {
        sgt_pattern_free(p);
        return sgt_fail_memory(err, "pattern");
    }
    if (p->stack) pcre2_jit_stack_assign(p->context, NULL, p->stack);
    *out = p;
    return SGT_OK;
}

/* ---- character classes ---- */

/* set of character kinds that contains only SGT_KIND_k; such sets are bit masks, combined with
 * OR */
#define KIND(k) (1u << SGT_KIND_##k)
#define LETTERS (KIND(LU) | KIND(LT) | KIND(LL) | KIND(LM) | KIND(LO))

static int is_in(uint32_t cp, unsigned kinds) { return (int)(kinds >> sgt_unicode_kind(cp) & 1); }

/* Write the ranges of all code points whose kinds are in the set `kinds`, in the syntax used
 * between [ and ]. If `negated` is 1, write the ranges of all other code points instead. */
static void put_ranges(FILE *f, unsigned kinds, int negated)
{
    for (uint32_t from = 0; from <= 0x10FFFF; from++) {
        if (is_in(from, kinds) == negated) continue;
        uint32_t to = from;
        while (to < 0x10FFFF && is_in(to + 1, kinds) != negated) to++;
        fprintf(f, "\\x{%x}-\\x{%x}", from, to);
        from = to;
    }
}

/* Return the set of character kinds that have a Unicode property, such as Lu. The property's name
 * is the n bytes at `name`. Return 0 if unicode.h has no table for this property. */
static unsigned property(const char *name, size_t n)
{
    static const char names[SGT_KINDS][3] = {
        [SGT_KIND_NUMBER] = "N", "M", "Lu", "Lt", "Ll", "Lm", "Lo", "P", "S"};
    for (unsigned kind = SGT_KIND_NUMBER; kind < SGT_KINDS; kind++)
        if (strlen(names[kind]) == n && !memcmp(names[kind], name, n)) return 1u << kind;
    return n == 1 && *name == 'L' ? LETTERS : 0;
}

/* Parse a character class, such as \s, \S, \pL, \p{Lu} or \P{^N}, at p. Set *kinds to the set of
 * the kinds that it names, and *negated to 1 if the class is the complement of this set, else to 0.
 * Return the length of the class, or 0 if there is no class at p or unicode.h has no table for
 * it. */
static size_t read_class(const char *p, unsigned *kinds, int *negated)
{
    *kinds = KIND(SPACE);
    *negated = p[1] == 'S' || p[1] == 'P';
    if (p[1] == 's' || p[1] == 'S') return 2;
    if (p[1] != 'p' && p[1] != 'P') return 0;
    if (p[2] != '{') return p[2] && (*kinds = property(p + 2, 1)) ? 3 : 0;
    const char *name = p + 3 + (p[3] == '^');
    if (p[3] == '^') *negated = !*negated;
    size_t n = strcspn(name, "}");
    *kinds = name[n] ? property(name, n) : 0;
    return *kinds ? (size_t)(name - p) + n + 1 : 0;
}

/* Return 1 if a group of flags in the pattern at p, such as (?i), contains this flag, else 0. */
static int has_flag(const char *p, char flag)
{
    while ((p = strstr(p, "(?"))) {
        size_t n = strspn(p += 2, "^-imsxnJU");
        if ((p[n] == ')' || p[n] == ':') && memchr(p, flag, n)) return 1;
    }
    return 0;
}

/* Return the length of the element of a pattern at p, which spell_out copies unchanged: \Q...\E,
 * (?#...), [:alpha:], an escape sequence, or one character. in_class is 1 if p is inside [...],
 * else 0. */
static size_t read_plain(const char *p, int in_class)
{
    const char *end = NULL;
    char posix[3] = {p[1], ']', 0};
    if (p[0] == '\\' && p[1] == 'Q') end = strstr(p, "\\E");
    else if (p[0] == '\\') return p[1] ? 2 : 1;
    else if (in_class && p[0] == '[' && p[1] && strchr(":.=", p[1])) end = strstr(p + 2, posix);
    else if (!in_class && !strncmp(p, "(?#", 3))
        return (end = strchr(p, ')')) ? (size_t)(end - p) : strlen(p);
    else return 1;
    return end ? (size_t)(end - p) + 2 : p[0] == '[' ? 1 : strlen(p);
}

/* Write the pattern at p, with each class that unicode.h has a table for replaced by ranges of code
 * points. If the pattern ignores case anywhere, enclose each such class outside [...] in (?-i:...),
 * because a class such as \p{Lu} would otherwise also match letters of the other case. */
static void spell_out(FILE *f, const char *p)
{
    const int caseless = has_flag(p, 'i');
    unsigned kinds;
    int in_class = 0, negated;
    for (size_t n; *p; p += n) {
        if (*p == '\\' && (n = read_class(p, &kinds, &negated)) > 0) {
            if (!in_class) fputs(caseless ? "(?-i:[" : "[", f);
            put_ranges(f, kinds, negated);
            if (!in_class) fputs(caseless ? "])" : "]", f);
            continue;
        }
        n = read_plain(p, in_class);
        if (n == 1 && *p == '[' && !in_class) {
            in_class = 1;
            n += p[n] == '^';
            n += p[n] == ']'; /* a ] directly after [ or [^ does not end the class */
        } else if (n == 1 && *p == ']') {
            in_class = 0;
        }
        fwrite(p, 1, n, f);
    }
}

int sgt_pattern_new(sgt_pattern **out, const char *pattern, sgt_error *err)
{
    char *text = NULL;
    size_t n;
    /* Compile the original pattern first, so that error messages refer to offsets in it. If the
     * pattern has the flag x, use the compiled original, because spell_out cannot parse the white
     * space and comments that this flag allows. */
    int rc = compile(out, pattern, err);
    if (rc < 0 || has_flag(pattern, 'x')) return rc;
    sgt_pattern_free(*out);
    *out = NULL;
    FILE *f = open_memstream(&text, &n);
    if (!f) return sgt_fail_memory(err, "pattern");
    spell_out(f, pattern);
    int bad = ferror(f);
    rc = fclose(f) || bad ? sgt_fail_memory(err, "pattern") : compile(out, text, err);
    free(text);
    return rc;
}

/* ---- matching ---- */

/* Set p->from and p->to to the start and end of the next match after the last piece that was
 * returned (which ends at p->at). If the match found last ends after p->at, it is still the next
 * match. */
static int find_match(sgt_pattern *p, const sgt_splitter *s)
{
    PCRE2_UCHAR why[160];
    if (p->to > p->at) return SGT_OK;
    const int rc = pcre2_match(p->code, p->twin ? p->twin : s->text, p->n, p->at,
                               PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, p->match, p->context);
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
        pcre2_get_error_message(rc, why, sizeof why);
        return sgt_fail(p->why, SGT_EUNSUPPORTED, "pattern: at byte %zu of the text: %s", s->at,
                        (const char *)why);
    }
    const PCRE2_SIZE *match = pcre2_get_ovector_pointer(p->match);
    p->from = rc < 0 ? p->n : match[0];
    p->to = rc < 0 ? p->n : match[1];
    return SGT_OK;
}

/* Implement sgt_split with PCRE2. Each match is a piece; the text between two matches is also a
 * piece. */
static size_t split_by_pattern(sgt_splitter *s, uint32_t *ends, size_t max)
{
    sgt_pattern *p = s->pattern;
    const size_t begin = s->at;
    size_t count = 0;
    while (count < max && p->at < p->n && find_match(p, s) == SGT_OK) {
        const size_t to = p->at < p->from ? p->from : p->to, n = to - p->at;
        const size_t end =
            s->at + (p->twin ? sgt_utf8_replaced_at(s->text + s->at, s->n - s->at, n) : n);
        if (end - begin >= UINT32_MAX && count) break;
        ends[count++] = end - begin >= UINT32_MAX ? UINT32_MAX : (uint32_t)(end - begin);
        p->at = to;
        s->at = end;
    }
    return count;
}

sgt_splitter sgt_pattern_splitter(sgt_pattern *p, const void *text, size_t n, sgt_error *why)
{
    free(p->twin);
    p->twin = NULL;
    p->n = n;
    p->at = p->from = p->to = 0;
    p->why = why;
    if (sgt_utf8_valid(text, n) < n) {
        p->twin = n <= SIZE_MAX / 3 ? malloc(3 * n) : NULL;
        p->n = p->twin ? sgt_utf8_replace(p->twin, text, n) : 0;
        if (!p->twin) sgt_fail_memory(why, "pattern");
    }
    return (sgt_splitter){.text = text, .n = n, .pattern = p, .split = split_by_pattern};
}

/* ---- known patterns ----
 *
 * Patterns of the rules that have names, and other patterns that give the same pieces. */

#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
/* pattern in the Hugging Face tokenizer files of Llama 3, Qwen 2 and cl100k; `numbers` is the
 * alternative that matches numbers, which differs */
#define WRITTEN(numbers)                             \
    SUFFIX "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers \
           "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* pattern that gives the same pieces as WRITTEN(numbers), in the form that minbpe and nanochat
 * use */
#define SHORTER(numbers)                                            \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|" numbers \
    "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"

/* pattern of Mistral's Tekken: o200k's pattern without contractions, and with one digit per
 * piece */
#define TEKKEN                                                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]*[" LOWER "]+|[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]+[" LOWER \
    "]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* DeepSeek's tokenizer file splits text in three steps: by numbers; then the rest by Chinese and
 * Japanese letters; then the rest by a third pattern. DEEPSEEK is a single pattern with the same
 * result: its repetitions stop wherever one of the first two steps would have split the text. */
#define DIGITS "\\p{N}{1,3}"
#define HAN "一-龥぀-ゟ゠-ヿ"
#define IN "(?=[" HAN "])"
#define OUT "(?![" HAN "])"
#define SIGNS "\\p{P}\\p{S}"
#define ASCII "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
#define DEEPSEEK                                                                              \
    DIGITS "|" IN "(?:[^\\p{L}" SIGNS "]?(?:" IN "[\\p{L}\\p{M}])++|(?:" IN "[" SIGNS         \
           "])++)|" ASCII "|[^\r\n\\p{L}" SIGNS "\\p{N}" HAN "]?(?:" OUT "[\\p{L}\\p{M}])++|" \
           " ?(?:" OUT "[" SIGNS "])++[\r\n]*|\\s*[\r\n]+|\\s+(?![^\\s\\p{N}" HAN "])|\\s+"

/* Known rules. Those for which split.c has code of its own come first. If a rule has no `regex`,
 * its `text` gives the same pieces in Hugging Face's library as in PCRE2. */
static const sgt_rule rules[] = {
    {.name = "cl100k",
     .text = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+|"
             " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     /* `regex` must differ from `text`: in Oniguruma's syntax, {1,3}+ means that {1,3} is repeated,
      * and $ also matches at the end of each line */
     .regex = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|(?>\\p{N}{1,3})|"
              " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++\\z|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     .digits = 3,
     .whole_end = 1},
    {.name = "o200k",
     .text = "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]*[" LOWER "]+" SUFFIX "?|"
             "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]+[" LOWER "]*" SUFFIX "?|"
             "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     .digits = 3,
     .cased = 1},
    {.name = "llama3", .text = WRITTEN("\\p{N}{1,3}"), .digits = 3},
    {.name = "qwen2", .text = WRITTEN("\\p{N}"), .digits = 1},
    {.name = "nanochat", .text = SHORTER("\\p{N}{1,2}"), .digits = 2},
    {.text = SHORTER("\\p{N}{1,3}"), .digits = 3},
    {.name = "gpt2", .text = SGT_PIECE_RULE, .by = SGT_RULE_GPT2},
    {.text = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     .by = SGT_RULE_GPT2},
    {.text = "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|"
             "\\s+(?!\\S)|\\s",
     .by = SGT_RULE_GPT2},
    {.text = "(?s).+", .regex = "(?m).+", .by = SGT_RULE_PCRE2},
    {.text = TEKKEN, .by = SGT_RULE_PCRE2},
    {.text = DEEPSEEK, .by = SGT_RULE_PCRE2},
};
enum { RULES = sizeof rules / sizeof *rules };

sgt_rule sgt_rule_of(const char *name_or_pattern)
{
    const char *text = name_or_pattern ? name_or_pattern : SGT_PIECE_RULE;
    for (size_t i = 0; i < RULES; i++) {
        sgt_rule r = rules[i];
        if (strcmp(r.text, text) != 0 && (!r.name || strcmp(r.name, text) != 0)) continue;
        /* several patterns in the table are equivalent to GPT-2's rule; use the same text for all
         * of them */
        if (r.by == SGT_RULE_GPT2) r.text = SGT_PIECE_RULE;
        if (!r.regex) r.regex = r.text;
        return r;
    }
    return (sgt_rule){.text = text, .by = SGT_RULE_PCRE2};
}

/* Patterns for tokenizer files that split text in two steps: by `before`, and then each piece by
 * `regex`. `text` is a single pattern that gives the same pieces. */
static const struct {
    const char *before, *regex, *text;
} steps[] = {
    {"", DIGITS, DIGITS},
    {DIGITS, "[" HAN "]+", DIGITS "|[" HAN "]+"},
    {DIGITS "|[" HAN "]+",
     ASCII "|[^\r\n\\p{L}" SIGNS "]?[\\p{L}\\p{M}]+| ?[" SIGNS "]+[\r\n]*|\\s*[\r\n]+|"
           "\\s+(?!\\S)|\\s+",
     DEEPSEEK},
};

const char *sgt_rule_from_regex(const char *before, const char *regex)
{
    for (const sgt_rule *r = rules; !before && r < rules + RULES; r++)
        if (!strcmp(r->regex ? r->regex : r->text, regex)) return r->text;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (!strcmp(before ? before : "", steps[i].before) && !strcmp(steps[i].regex, regex))
            return steps[i].text;
    return NULL;
}

const sgt_rule *sgt_rule_at(size_t i)
{
    return i < RULES && rules[i].by == SGT_RULE_OTHER ? &rules[i] : NULL;
}
