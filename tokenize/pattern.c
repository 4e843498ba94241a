/* pattern.c: PCRE2 over text that may be ill-formed. PCRE2 wants well-formed UTF-8, so ill-formed text is matched as
 * its replaced twin (U+FFFD for each ill-formed unit), and places in the twin are counted back into the text unit by
 * unit. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "pattern.h"

#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unicode.h"
#include "utf8.h"

#define JIT_STACK_MAX (8u << 20) /* bytes; PCRE2's own 32 KiB are too few for patterns that backtrack over long runs */

struct sgt_pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    const uint8_t *text;    /* as given */
    size_t n, at;           /* at: the end of the last piece */
    uint8_t *twin;          /* NULL: the text itself is matched */
    size_t twin_n, twin_at;
    size_t pending;         /* > 0: a match that ends here (in what is matched) waits behind the gap before it */
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

int sgt_pattern_new(sgt_pattern **out, const char *pattern, sgt_error *err)
{
    int code;
    PCRE2_SIZE where;
    PCRE2_UCHAR why[160];
    sgt_pattern *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail(err, SGT_ENOMEM, "pattern: out of memory");
    p->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &where, NULL);
    if (!p->code) {
        sgt_pattern_free(p);
        if (code == PCRE2_ERROR_HEAP_FAILED || code == PCRE2_ERROR_NOMEMORY)
            return sgt_fail(err, SGT_ENOMEM, "pattern: out of memory");
        pcre2_get_error_message(code, why, sizeof why);
        return sgt_fail(err, SGT_EUSAGE, "pattern: at byte %zu: %s", (size_t)where, (const char *)why);
    }
    /* Where JIT cannot be had (hardened systems forbid it), the interpreter gives the same pieces, slower. */
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    p->match = pcre2_match_data_create(1, NULL);
    p->context = pcre2_match_context_create(NULL);
    p->stack = pcre2_jit_stack_create(32768, JIT_STACK_MAX, NULL);
    if (!p->match || !p->context) {
        sgt_pattern_free(p);
        return sgt_fail(err, SGT_ENOMEM, "pattern: out of memory");
    }
    if (p->stack) pcre2_jit_stack_assign(p->context, NULL, p->stack);
    *out = p;
    return SGT_OK;
}

/* ---- GPT-2's ---- */

/* Appends the ranges of `class` as they stand between [ and ]. */
static void put_class(FILE *f, sgt_class class)
{
    for (uint32_t from = 0; from <= 0x10FFFF; from++) {
        if (sgt_unicode_class(from) != class) continue;
        uint32_t to = from;
        while (to < 0x10FFFF && sgt_unicode_class(to + 1) == class) to++;
        fprintf(f, "\\x{%x}-\\x{%x}", from, to);
        from = to;
    }
}

static void put_gpt2(FILE *f)
{
    fputs("'(?:[sdmt]|ll|ve|re)| ?[", f);
    put_class(f, SGT_CLASS_LETTER);
    fputs("]+| ?[", f);
    put_class(f, SGT_CLASS_NUMBER);
    fputs("]+| ?[^", f);
    put_class(f, SGT_CLASS_SPACE);
    put_class(f, SGT_CLASS_LETTER);
    put_class(f, SGT_CLASS_NUMBER);
    fputs("]+|[", f);
    put_class(f, SGT_CLASS_SPACE);
    fputs("]+(?![^", f); /* \S is what is not \s */
    put_class(f, SGT_CLASS_SPACE);
    fputs("])|[", f);
    put_class(f, SGT_CLASS_SPACE);
    fputs("]+", f);
}

int sgt_pattern_gpt2(sgt_pattern **out, sgt_error *err)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f) return sgt_fail(err, SGT_ENOMEM, "pattern: out of memory");
    put_gpt2(f);
    int bad = ferror(f);
    if (fclose(f) || bad) {
        free(text);
        return sgt_fail(err, SGT_ENOMEM, "pattern: out of memory");
    }
    int rc = sgt_pattern_new(out, text, err);
    free(text);
    return rc;
}

/* ---- matching ---- */

int sgt_pattern_start(sgt_pattern *p, const void *text, size_t n, sgt_error *err)
{
    free(p->twin);
    p->twin = NULL;
    p->text = text;
    p->n = p->twin_n = n;
    p->at = p->twin_at = p->pending = 0;
    if (sgt_utf8_valid(text, n) == n) return SGT_OK;
    if (n > SIZE_MAX / 3 || !(p->twin = malloc(3 * n))) return sgt_fail(err, SGT_ENOMEM, "pattern: out of memory");
    p->twin_n = sgt_utf8_replace(p->twin, text, n);
    return SGT_OK;
}

/* The next piece ends at `to` in what is matched: at which place of the text? */
static size_t end_piece(sgt_pattern *p, size_t to)
{
    if (!p->twin) return p->at = p->twin_at = to;
    while (p->twin_at < to) {
        uint32_t cp;
        size_t len = sgt_utf8_unit(p->text + p->at, p->n - p->at, &cp);
        p->at += len;
        p->twin_at += cp == SGT_UTF8_ILL_FORMED ? 3 : len;
    }
    return p->at;
}

int sgt_pattern_split(sgt_pattern *p, size_t *ends, int max, sgt_error *err)
{
    PCRE2_UCHAR why[160];
    const uint8_t *subject = p->twin ? p->twin : p->text;
    int count = 0;
    while (count < max && p->twin_at < p->twin_n) {
        size_t to = p->pending;
        p->pending = 0;
        if (!to) {
            int rc = pcre2_match(p->code, subject, p->twin_n, p->twin_at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, p->match,
                                 p->context);
            if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
                pcre2_get_error_message(rc, why, sizeof why);
                return sgt_fail(err, SGT_EUNSUPPORTED, "pattern: at byte %zu of the text: %s", p->at,
                                (const char *)why);
            }
            const PCRE2_SIZE *match = pcre2_get_ovector_pointer(p->match);
            size_t from = rc < 0 ? p->twin_n : match[0];
            to = from > p->twin_at ? from : match[1];
            if (from > p->twin_at && from < p->twin_n) p->pending = match[1];
        }
        ends[count++] = end_piece(p, to);
    }
    return count;
}
