/* oniguruma.c: one pass over a pattern that copies what means the same in both dialects and
 * replaces the rest.
 *
 * Oniguruma means the library as Hugging Face's tokenizers build it: its own syntax (doc/RE,
 * "ONIG_SYNTAX_ONIGURUMA"), UTF-8, no options. tests/data/compare_huggingface.py compares this file
 * with that library. */
#include "tokenize/text/oniguruma.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define GROWTH 8      /* largest factor by which translating a construct makes it longer */
#define MAX_DEPTH 250 /* nesting of groups, PCRE2's own limit */

typedef struct translator {
    const char *begin, *p; /* the pattern; the next byte to read */
    char *out;
    size_t n;  /* bytes in `out` */
    int to;    /* 1: translate to Oniguruma; 0: from it */
    int depth; /* current nesting of groups */
    /* the character before, in lower case, if it is a letter whose case is ignored; else 0 */
    char last;
    const char *what; /* failure: start of the construct, of `length` bytes */
    size_t length;
    const char *why;
} translator;

/* One element of a pattern. */
typedef struct atom {
    enum { ATOM_CHAR, ATOM_SET, ATOM_GROUP, ATOM_ANCHOR } kind; /* an anchor cannot be repeated */
    int empty;                                                  /* can match the empty string */
} atom;

static const char not_ascii[] = "case is ignored, and sgt knows how for ASCII letters alone";
static const char differs[] = "Hugging Face's regex library and sgt's do not agree on it";

static int refuse(translator *t, size_t length, const char *why)
{
    t->what = t->p;
    t->length = strnlen(t->p, length);
    t->why = why;
    return -1;
}

static void put(translator *t, const char *s)
{
    size_t n = strlen(s);
    memcpy(t->out + t->n, s, n);
    t->n += n;
}

static void copy(translator *t, size_t n)
{
    memcpy(t->out + t->n, t->p, n);
    t->n += n;
    t->p += n;
}

/* Write `s` in place of the next n bytes of the pattern, and move past these. */
static int replace(translator *t, size_t n, const char *s)
{
    put(t, s);
    t->p += n;
    return 0;
}

static void insert(translator *t, size_t at, const char *s)
{
    size_t n = strlen(s);
    memmove(t->out + at + n, t->out + at, t->n - at);
    memcpy(t->out + at, s, n);
    t->n += n;
}

/* ---- escapes ---- */

/* Translate \p{Lu}, \P{^N}: the general categories, which have the same names in both libraries. */
static int read_property(translator *t)
{
    static const char *const kinds[] = {"Lultmo", "Mnce", "Ndlo",  "Pcdseifo",
                                        "Smcko",  "Zslp", "Ccfosn"};
    const char *name = t->p + 3 + (t->p[2] == '{' && t->p[3] == '^'),
               *end = t->p[2] == '{' ? strchr(t->p, '}') : NULL;
    /* spell out \pL, which Oniguruma would read as the letters p and L */
    if (t->to && t->p[2] && strchr("LMNPSZC", t->p[2])) {
        const char whole[] = {'\\', t->p[1], '{', t->p[2], '}', 0};
        return replace(t, 3, whole);
    }
    for (size_t i = 0; end && i < sizeof kinds / sizeof *kinds; i++)
        if (*name == kinds[i][0] &&
            (name + 1 == end || (name + 2 == end && strchr(kinds[i] + 1, name[1])))) {
            copy(t, (size_t)(end + 1 - t->p));
            return 0;
        }
    return refuse(t, end ? (size_t)(end + 1 - t->p) : 3, differs);
}

/* Translate \x41, \x{1F600}, and Oniguruma's \u00E9. */
static int read_code(translator *t, int caseless)
{
    const int braced = t->p[1] == 'x' && t->p[2] == '{';
    const char *digits = t->p + 2 + braced;
    size_t n = strspn(digits, "0123456789abcdefABCDEF"), want = t->p[1] == 'u' ? 4 : 2;
    if (!braced && n > want) n = want;
    size_t length = 2 + n + (braced ? 2u : 0u);
    if (braced ? !n || n > 6 || digits[n] != '}' : n != want) return refuse(t, length, differs);
    const unsigned long code = strtoul(memcpy((char[8]){0}, digits, n), NULL, 16);
    if (caseless && (code >= 0x80 || isalpha((int)code))) return refuse(t, length, not_ascii);
    if (braced || (want == 2 && code < 0x80)) {
        copy(t, length);
        return 0;
    }
    if (want == 2 && !t->to) return refuse(t, length, "it is a byte, not a character");
    put(t, "\\x{");
    memcpy(t->out + t->n, digits, n);
    t->n += n;
    put(t, "}");
    t->p += length;
    return 0;
}

static int read_escape(translator *t, int in_class, int caseless, atom *a)
{
    const char c = t->p[1];
    *a = (atom){ATOM_CHAR, 0};
    if (!c) {
        copy(t, 1); /* copied, because PCRE2 reports the mistake */
        return 0;
    }
    if (strchr("tnrfae", c) || (ispunct((unsigned char)c) && c != '`')) {
        copy(t, 2);
        return 0;
    }
    if (c == 'x' || (c == 'u' && !t->to)) return read_code(t, caseless);
    if (c == 'v' && !t->to) return replace(t, 2, "\\x0b");
    a->kind = ATOM_SET;
    if (c == 'h' && !t->to) return replace(t, 2, in_class ? "0-9A-Fa-f" : "[0-9A-Fa-f]");
    if (caseless && strchr("SDHpP", c)) return refuse(t, 2, not_ascii);
    if (c == 'H' && !t->to && !in_class) return replace(t, 2, "[^0-9A-Fa-f]");
    if (strchr("sSdD", c)) {
        copy(t, 2);
        return 0;
    }
    if (c == 'p' || c == 'P') return read_property(t);
    if (in_class || !strchr("AzZ", c)) return refuse(t, 2, differs);
    *a = (atom){ATOM_ANCHOR, 1};
    copy(t, 2);
    return 0;
}

/* Copy one literal character of one or more bytes. */
static int read_char(translator *t, int caseless)
{
    size_t n = 1;
    while ((t->p[n] & 0xC0) == 0x80 && (unsigned char)*t->p >= 0xC0) n++;
    if (caseless && (unsigned char)*t->p >= 0x80) return refuse(t, n, not_ascii);
    copy(t, n);
    return 0;
}

/* ---- classes ---- */

static int read_member(translator *t, int caseless, atom *a)
{
    *a = (atom){ATOM_CHAR, 0};
    if (*t->p == '\\') return read_escape(t, 1, caseless, a);
    if (!strncmp(t->p, "&&", 2)) return refuse(t, 2, differs);
    if (*t->p != '[') return read_char(t, caseless);
    if (!t->to) return refuse(t, 2, "a set within a set");
    return t->p[1] && strchr(":.=", t->p[1]) ? refuse(t, 2, differs) : replace(t, 1, "\\[");
}

/* Translate a class. A hyphen is an ordinary character at either end; elsewhere it must stand
 * between two characters. */
static int read_class(translator *t, int caseless)
{
    atom a;
    int first = 1;
    copy(t, 1);
    if (*t->p == '^' && caseless) return refuse(t, 1, not_ascii);
    if (*t->p == '^') copy(t, 1);
    if (*t->p == ']') return refuse(t, 1, "a set that begins with ]");
    for (; *t->p && *t->p != ']'; first = 0) {
        const int hyphen = *t->p == '-';
        if (hyphen && !first && t->p[1] != ']') return refuse(t, 2, differs);
        if (read_member(t, caseless, &a) < 0) return -1;
        if (*t->p != '-' || !t->p[1] || t->p[1] == ']') continue;
        if (hyphen || a.kind != ATOM_CHAR) return refuse(t, 2, differs);
        copy(t, 1);
        if (*t->p == '-' || read_member(t, caseless, &a) < 0 || a.kind != ATOM_CHAR)
            return t->why ? -1 : refuse(t, 2, differs);
    }
    if (*t->p) copy(t, 1);
    return 0;
}

/* ---- groups ---- */

static int read_alternatives(translator *t, int caseless, int *empty);

/* Translate flags such as (?i) or (?m-i: up to their last character, which remains to be read.
 * Oniguruma's m is PCRE2's s. Returns the number of bytes read, or 0 if there are other letters. */
static size_t read_flags(translator *t, int *caseless)
{
    size_t n = 2;
    int off = 0, ignored = *caseless;
    char text[16] = "(?";
    for (; n < sizeof text - 1 && t->p[n] && strchr(t->to ? "is-" : "im-", t->p[n]); n++) {
        text[n] = t->p[n];
        if (t->p[n] == 'm') text[n] = 's';
        if (t->p[n] == 's') text[n] = 'm';
        if (t->p[n] == 'i') ignored = !off;
        if (t->p[n] == '-' && off++) return 0;
    }
    text[n] = 0;
    if (n == 2 || (t->p[n] != ':' && t->p[n] != ')')) return 0;
    *caseless = ignored;
    put(t, text);
    t->p += n;
    return n;
}

/* Translate the rest of a group whose opening has been read. */
static int read_group_end(translator *t, int caseless, atom *a)
{
    if (++t->depth > MAX_DEPTH) return refuse(t, 1, "groups within groups, too many");
    if (read_alternatives(t, caseless, &a->empty) < 0) return -1;
    t->depth--;
    if (*t->p) copy(t, 1);
    return 0;
}

static int read_group(translator *t, int caseless, atom *a)
{
    static const char *const openings[] = {"(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!"};
    *a = (atom){ATOM_GROUP, 0};
    if (t->p[1] == '*') return refuse(t, 2, differs);
    if (t->p[1] != '?') {
        copy(t, 1);
        return read_group_end(t, caseless, a);
    }
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++) {
        size_t n = strlen(openings[i]);
        if (strncmp(t->p, openings[i], n)) continue;
        copy(t, n);
        if (read_group_end(t, caseless, a) < 0) return -1;
        if (i > 1) *a = (atom){ATOM_ANCHOR, 1}; /* a look-around matches no text itself */
        return 0;
    }
    for (int i = 0; i < 2 && t->to; i++)
        if (!strncmp(t->p, i ? "(?m:$)" : "(?m:^)", 6)) {
            *a = (atom){ATOM_ANCHOR, 1};
            return replace(t, 6, i ? "$" : "^");
        }
    const char *start = t->p;
    if (!read_flags(t, &caseless)) return refuse(t, 3, differs);
    /* refused: flags for the rest of a group or alternative have different scopes in the two
     * libraries */
    if (*t->p == ')') {
        t->p = start;
        return refuse(t, strcspn(start, ")") + 1, "it is not at the beginning of the pattern");
    }
    copy(t, 1);
    return read_group_end(t, caseless, a);
}

/* ---- repeats ---- */

/* Return the length of a repeat at p: {2}, {2,}, {2,5} or Oniguruma's {,5}. Return 0 if the brace
 * is an ordinary character. *exact: it has one number; *none: zero repeats are allowed. */
static size_t read_bounds(const char *p, int *exact, int *none)
{
    size_t low = strspn(p + 1, "0123456789"), n = 1 + low;
    *exact = p[n] == '}';
    *none = strspn(p + 1, "0") == low;
    if (*exact) return low ? n + 1 : 0;
    if (p[n] != ',') return 0;
    size_t high = strspn(p + n + 1, "0123456789");
    n += 1 + high;
    return p[n] == '}' && (low || high) ? n + 1 : 0;
}

static int repeats(const char *p)
{
    int exact, none;
    return *p && (strchr("*+?", *p) || (*p == '{' && read_bounds(p, &exact, &none)));
}

/* Translate a repeat in braces. A{1,3}+ is possessive in PCRE2; in Oniguruma it repeats A{1,3}.
 * `from`: offset in t->out at which A begins. */
static int read_braces(translator *t, size_t from, int caseless, atom *a)
{
    int exact, none;
    size_t n = read_bounds(t->p, &exact, &none);
    if (t->p[1] == ',' && t->to) return refuse(t, n, differs);
    /* Oniguruma expands short repeats: s{2} becomes "ss", which then also matches one letter
     * (check_pair) */
    if (caseless && a->kind != ATOM_SET)
        return refuse(t, n, "it repeats a letter whose case is ignored");
    if (t->p[1] == ',') {
        put(t, "{0");
        t->p++;
        n--;
    }
    copy(t, n);
    if (none) a->empty = 1;
    if (*t->p == '?' && exact) return t->to ? replace(t, 1, "") : refuse(t, 1, differs);
    if (*t->p == '?') copy(t, 1);
    else if (*t->p == '+') {
        insert(t, from, t->to ? "(?>" : "(?:");
        replace(t, 1, t->to ? ")" : ")+");
    }
    return 0;
}

static int read_repeat(translator *t, size_t from, int caseless, atom *a)
{
    if (!repeats(t->p)) return 0;
    if (a->kind == ATOM_ANCHOR) return refuse(t, 1, "it repeats what takes no text");
    t->last = 0;
    if (*t->p == '{') {
        if (read_braces(t, from, caseless, a) < 0) return -1;
    } else {
        if (*t->p != '+') a->empty = 1;
        copy(t, t->p[1] == '?' || t->p[1] == '+' ? 2 : 1);
    }
    return repeats(t->p) ? refuse(t, 1, "it repeats a repeat") : 0;
}

/* ---- the whole ---- */

/* Refuse two letters that Oniguruma, ignoring case, also matches with a single letter: U+00DF,
 * U+FB00 to U+FB02, U+FB06. */
static int check_pair(translator *t, char before)
{
    static const char *const pairs[] = {"ss", "ff", "fi", "fl", "st"};
    const char now = (char)tolower((unsigned char)t->p[-1]);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (before == pairs[i][0] && now == pairs[i][1]) {
            t->p -= 1;
            return refuse(t, 1, "case is ignored, and it makes one letter with the one before it");
        }
    t->last = isalpha((unsigned char)now) ? now : 0;
    return 0;
}

static int read_atom(translator *t, int caseless, atom *a)
{
    const char c = *t->p, before = t->last;
    if (c != '(') t->last = 0;
    *a = (atom){ATOM_ANCHOR, 1};
    if (c == '^') return replace(t, 1, t->to ? "\\A" : "(?m:^)");
    if (c == '$') return replace(t, 1, t->to ? "\\z" : "(?m:$)");
    if (c == '(') return read_group(t, caseless, a);
    *a = (atom){ATOM_SET, 0};
    if (c == '[') return read_class(t, caseless);
    if (c == '\\') return read_escape(t, 0, caseless, a);
    if (c == '.') {
        copy(t, 1);
        return 0;
    }
    *a = (atom){ATOM_CHAR, 0};
    if (repeats(t->p)) return refuse(t, 1, "it repeats nothing");
    if (c == '{' && t->p[1] && strchr("0123456789, ", t->p[1])) return refuse(t, 2, differs);
    if (read_char(t, caseless) < 0) return -1;
    return caseless ? check_pair(t, before) : 0;
}

static int read_alternatives(translator *t, int caseless, int *empty)
{
    int all = 1; /* 1: all elements of the alternative so far can match the empty string */
    *empty = 0;
    while (*t->p && *t->p != ')') {
        atom a;
        size_t from = t->n;
        if (*t->p == '|') {
            copy(t, 1);
            t->last = 0;
            *empty |= all;
            all = 1;
            continue;
        }
        if (read_atom(t, caseless, &a) < 0 || read_repeat(t, from, caseless, &a) < 0) return -1;
        all &= a.empty;
    }
    *empty |= all;
    return 0;
}

static int translate(translator *t)
{
    int caseless = 0, empty = 0;
    while (!strncmp(t->p, "(?", 2) && t->p[2] && t->p[2 + strspn(t->p + 2, "ims-")] == ')') {
        if (!read_flags(t, &caseless)) return refuse(t, strcspn(t->p, ")") + 1, differs);
        copy(t, 1);
    }
    if (read_alternatives(t, caseless, &empty) < 0) return -1;
    if (*t->p) { /* a closing parenthesis too many, which PCRE2 reports */
        copy(t, strlen(t->p));
        return 0;
    }
    t->p = t->begin;
    return empty
               ? refuse(
                     t, 0,
                     "it can match nothing, where Hugging Face's library splits and sgt's does not")
               : 0;
}

int sgt_pattern_translate(char **out, const char *pattern, sgt_translation way, sgt_error *err)
{
    translator t = {.begin = pattern, .p = pattern, .to = way == SGT_TO_ONIGURUMA};
    char shown[64];
    if (!(t.out = malloc(GROWTH * strlen(pattern) + 64))) return sgt_fail_memory(err, "pattern");
    if (translate(&t) == 0) {
        t.out[t.n] = 0;
        *out = t.out;
        return SGT_OK;
    }
    free(t.out);
    if (t.length >= sizeof shown) t.length = sizeof shown - 1;
    memcpy(shown, t.what, t.length);
    shown[t.length] = 0;
    return sgt_fail(err, SGT_EUNSUPPORTED, "at byte %zu: %s%s%s", (size_t)(t.what - pattern), shown,
                    t.length ? ": " : "", t.why);
}
