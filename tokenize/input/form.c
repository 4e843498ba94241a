/* form.c: files that begin like no text, bytes that no text has, and the first object or two of JSON
 * Lines, which are parsed in a copy of the bytes. */
#include "tokenize/input/form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tokenize/input/json_line.h"
#include "tokenize/text/utf8.h"

/* Return whether p[n] has bytes that are not UTF-8. A character cut by the end of the prefix does
 * not count. */
static int is_ill_formed(const uint8_t *p, size_t n, int whole)
{
    size_t valid = sgt_utf8_valid(p, n);
    uint32_t cp;
    if (valid == n) return 0;
    if (whole || n - valid > 3) return 1;
    /* An ill-formed unit at the end of the prefix may be the beginning of a character that later
     * bytes complete. */
    return sgt_utf8_unit(p + valid, n - valid, &cp) < n - valid || p[valid] < 0xC2 ||
           p[valid] > 0xF4;
}

const sgt_magic *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines)
{
    static const sgt_magic other = {"binary data", "--binary keep takes its bytes",
                                    SGT_MAGIC_OTHER};
    const sgt_magic *known = sgt_magic_of(p, n);
    if (known || lines) return known;
    known = sgt_magic_wide(p, n, whole);
    return known ? known : memchr(p, 0, n) && is_ill_formed(p, n, whole) ? &other : NULL;
}

/* ---- JSON Lines ---- */

/* a parser that stops so near the end may lack the rest of an escape or a word */
#define CUT 8

typedef struct prefix {
    sgt_json_path path;
    uint8_t *text,
        *scratch; /* copy of the bytes, with SGT_JSON_PAD bytes after them; as much room */
    size_t n;
    int whole;
} prefix;

static int is_space(uint8_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Return the first byte from `at` on that is not white space, or n. */
static size_t skip_space(const uint8_t *p, size_t at, size_t n)
{
    while (at < n && is_space(p[at])) at++;
    return at;
}

/* Return what the object at text[at ... end) is: LINES, a whole object with the field; MORE, one
 * that may be whole with more bytes; BRACE, anything else. text[end] is a newline. */
static sgt_form classify_object(prefix *l, size_t at, size_t end, int alone)
{
    sgt_json_text t = {.at = SGT_JSON_NOWHERE};
    const char *why =
        (alone ? sgt_json_line : sgt_json_first)(&l->path, l->text + at, l->scratch, &t);
    if (!why) return SGT_FORM_LINES;
    return end == l->n && !l->whole && t.at != SGT_JSON_NOWHERE && at + t.at + CUT >= end
               ? SGT_FORM_MORE
               : SGT_FORM_BRACE;
}

static sgt_form classify_lines(prefix *l, size_t at)
{
    sgt_form form = SGT_FORM_MORE;
    for (int lines = 0; lines < 2 && at < l->n; lines++) {
        const size_t end =
            at + (size_t)((uint8_t *)memchr(l->text + at, '\n', l->n + 1 - at) - (l->text + at));
        form = classify_object(l, at, end, 1);
        /* a last line without a newline may go on */
        if (form == SGT_FORM_LINES && end == l->n && !l->whole) form = SGT_FORM_MORE;
        if (form == SGT_FORM_MORE && lines && l->n >= SGT_FORM_PREFIX) return SGT_FORM_LINES;
        if (form != SGT_FORM_LINES) return form;
        at = skip_space(l->text, end, l->n);
        if (at == l->n && !lines && !l->whole && l->n < SGT_FORM_PREFIX) return SGT_FORM_MORE;
    }
    return form;
}

static sgt_form classify_array(prefix *l, size_t at)
{
    for (size_t i = at; i < l->n; i++)
        if (l->text[i] == '\n') l->text[i] = ' '; /* an element may have several lines */
    at = skip_space(l->text, at + 1, l->n);
    if (at == l->n && !l->whole) return SGT_FORM_MORE;
    if (l->text[at] != '{') return SGT_FORM_TEXT;
    const sgt_form form = classify_object(l, at, l->n, 0);
    return form == SGT_FORM_LINES ? SGT_FORM_ARRAY : form == SGT_FORM_BRACE ? SGT_FORM_TEXT : form;
}

int sgt_form_of(sgt_form *form, const uint8_t *p, size_t n, int whole, const char *field,
                sgt_error *err)
{
    prefix l = {.n = n < SGT_FORM_PREFIX ? n : SGT_FORM_PREFIX, .whole = whole};
    const size_t at = skip_space(p, sgt_utf8_mark(p, l.n), l.n);
    *form = SGT_FORM_TEXT;
    if (at == l.n || (p[at] != '{' && p[at] != '[')) return SGT_OK;
    int rc = sgt_json_path_set(&l.path, field, err);
    if (rc < 0) return rc;
    l.text = malloc(l.n + 1 + SGT_JSON_PAD);
    l.scratch = malloc(l.n + 1 + SGT_JSON_PAD);
    if (!l.text || !l.scratch) rc = sgt_fail_memory(err, "the first bytes of an input");
    else {
        memcpy(l.text, p, l.n);
        memset(l.text + l.n, '\n', 1 + SGT_JSON_PAD);
        *form = p[at] == '{' ? classify_lines(&l, at) : classify_array(&l, at);
        /* no more bytes will be looked at */
        if (*form == SGT_FORM_MORE && (whole || n >= SGT_FORM_PREFIX))
            *form = p[at] == '{' ? SGT_FORM_BRACE : SGT_FORM_TEXT;
    }
    free(l.text);
    free(l.scratch);
    return rc;
}

void sgt_form_notice(const sgt_notice *to, sgt_form form, const char *name, size_t count,
                     const char *field, const char *text)
{
    char such[48] = "";
    if (count) snprintf(such, sizeof such, "%zu such file%s; ", count, count == 1 ? "" : "s");
    if (form == SGT_FORM_LINES)
        sgt_say(to,
                "%s: its lines are JSON objects with the field \"%s\": read as JSONL (%s%s reads "
                "them as text)",
                name, field, such, text);
    if (form == SGT_FORM_BRACE)
        sgt_say(to,
                "%s: begins with a brace, but its first lines are no objects with the field "
                "\"%s\": read as text (%s--field names the field of JSONL)",
                name, field, such);
    if (form == SGT_FORM_ARRAY)
        sgt_say(to, "%s: a JSON array, read as text (%sjq -c '.[]' makes lines of it)", name, such);
}
