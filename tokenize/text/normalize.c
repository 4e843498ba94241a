/* normalize.c: converts text to the Unicode normal forms NFC and NFKC, using utf8proc. The function
 * utf8proc_map, which converts an entire text, is not used for two reasons: it sorts combining
 * marks by swapping neighbours, which takes quadratic time for a long run of marks, and it needs
 * four bytes of memory per byte of text. */
#include "tokenize/text/normalize.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "loader/base/memory.h"
#include "tokenize/text/utf8.h"

typedef struct range {
    uint32_t from, to;
} range;

/* Ranges of characters before which text can be cut, so that the text before the cut and the text
 * after it can be normalized separately. The decomposition of each of these characters begins with
 * a starter (a character of combining class 0) that never composes with a preceding character. The
 * ranges include most non-ASCII scripts, and emoji. (A test compares them with utf8proc's
 * tables.) */
static const range boundaries[] = {
    {0x00C0, 0x017F}, {0x0391, 0x03A1}, {0x03A3, 0x03CE}, {0x0400, 0x0481}, {0x0531, 0x0556},
    {0x0561, 0x0586}, {0x05D0, 0x05EA}, {0x0621, 0x064A}, {0x0904, 0x0939}, {0x0E01, 0x0E2E},
    {0x10D0, 0x10FA}, {0x2010, 0x2027}, {0x3001, 0x3002}, {0x3041, 0x3096}, {0x30A1, 0x30FA},
    {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}, {0xFF01, 0xFF5E}, {0x1F300, 0x1FAFF}};

/* Ranges within `boundaries` whose characters NFC and NFKC leave unchanged. (A test compares them
 * with utf8proc's tables.) */
static const range unchanged[] = {{0x0400, 0x0481}, {0x05D0, 0x05EA}, {0x0E01, 0x0E2E},
                                  {0x3041, 0x3094}, {0x30A1, 0x30FA}, {0x3400, 0x4DBF},
                                  {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3}};

/* description, in out-of-memory messages, of the memory that this file allocates */
static const char what[] = "normalized text";

static int within(const range *r, size_t count, uint32_t cp)
{
    for (size_t i = 0; i < count && cp >= r[i].from; i++)
        if (cp <= r[i].to) return 1;
    return 0;
}

int sgt_normalize_boundary(uint32_t cp)
{
    return cp < 0x80 || within(boundaries, sizeof boundaries / sizeof *boundaries, cp);
}

void sgt_normalizer_free(sgt_normalizer *z)
{
    free(z->text);
    free(z->points);
    *z = (sgt_normalizer){0};
}

static int append(sgt_normalizer *z, const uint8_t *s, size_t n, sgt_error *err)
{
    if (!n) return SGT_OK;
    const int rc = sgt_reserve(&z->text, &z->room, z->used + n, 1, what, err);
    if (rc < 0) return rc;
    memcpy(z->text + z->used, s, n);
    z->used += n;
    return SGT_OK;
}

/* ---- one extent ---- */

static int decompose(sgt_normalizer *z, uint32_t cp, sgt_normalize form, sgt_error *err)
{
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    if (form == SGT_NORMALIZE_NFKC) options |= UTF8PROC_COMPAT;
    for (;;) {
        int state = 0;
        size_t left = z->point_room - z->count;
        utf8proc_ssize_t got = utf8proc_decompose_char((utf8proc_int32_t)cp, z->points + z->count,
                                                       (utf8proc_ssize_t)left, options, &state);
        if (got >= 0 && (size_t)got <= left) {
            z->count += (size_t)got;
            return SGT_OK;
        }
        int rc = sgt_reserve(&z->points, &z->point_room, 2 * z->point_room + 64,
                             2 * sizeof *z->points, what, err);
        if (rc < 0) return rc;
    }
}

static unsigned combining_class(int32_t cp)
{
    return (unsigned)utf8proc_get_property(cp)->combining_class;
}

/* Sort the n combining marks at p by combining class, without changing the order of marks of equal
 * class. `other` is scratch memory for n code points. */
static void sort_marks(int32_t *p, int32_t *other, size_t n)
{
    size_t count[257] = {0};
    int sorted = 1;
    for (size_t i = 0; i < n; i++) {
        count[combining_class(p[i]) + 1]++;
        sorted &= i == 0 || combining_class(p[i - 1]) <= combining_class(p[i]);
    }
    if (sorted) return;
    for (size_t c = 1; c < 257; c++) count[c] += count[c - 1];
    for (size_t i = 0; i < n; i++) other[count[combining_class(p[i])]++] = p[i];
    memcpy(p, other, n * sizeof *p);
}

/* Finish the current extent (a section of text that is normalized by itself): put the z->count
 * decomposed code points in z->points into canonical order, compose them, and append the result to
 * z->text. */
static int end_extent(sgt_normalizer *z, sgt_error *err)
{
    int32_t *p = z->points;
    for (size_t i = 0, from; i < z->count; i++) {
        for (from = i; i < z->count && combining_class(p[i]); i++) continue;
        if (i > from + 1) sort_marks(p + from, p + z->point_room, i - from);
    }
    utf8proc_ssize_t n =
        utf8proc_normalize_utf32(p, (utf8proc_ssize_t)z->count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    int rc = sgt_reserve(&z->text, &z->room, z->used + 4 * z->count, 1, what, err);
    for (utf8proc_ssize_t i = 0; i < n && !rc; i++)
        z->used += (size_t)utf8proc_encode_char(p[i], z->text + z->used);
    z->count = 0;
    return rc;
}

/* Return 1 if an extent (a section of text that is normalized by itself) ends before character cp,
 * otherwise 0. */
static int ends_extent(uint32_t cp)
{
    return cp == SGT_UTF8_ILL_FORMED || sgt_normalize_boundary(cp);
}

/* Normalize the extent (a section of text that is normalized by itself) at the start of the n bytes
 * at s, append the result to z->text, and return the extent's length in bytes. The extent consists
 * of the first character and the characters after it up to, but not including, the first for which
 * ends_extent returns 1. Store 0 or a negative SGT_E* in *rc. */
static size_t append_extent(sgt_normalizer *z, sgt_normalize form, const uint8_t *s, size_t n,
                            int *rc, sgt_error *err)
{
    uint32_t cp, next = SGT_UTF8_ILL_FORMED;
    size_t at = sgt_utf8_unit(s, n, &cp), len = at < n ? sgt_utf8_unit(s + at, n - at, &next) : 0;
    const int same = cp < 0x80 || within(unchanged, sizeof unchanged / sizeof *unchanged, cp);
    if (cp == SGT_UTF8_ILL_FORMED || (same && ends_extent(next))) {
        *rc = append(z, s, at, err);
        return at;
    }
    *rc = decompose(z, cp, form, err);
    while (!*rc && at < n && !ends_extent(next)) {
        *rc = decompose(z, next, form, err);
        at += len;
        if (at < n) len = sgt_utf8_unit(s + at, n - at, &next);
    }
    if (!*rc) *rc = end_extent(z, err);
    return at;
}

/* ---- the text ---- */

int sgt_normalize_text(sgt_normalizer *z, sgt_normalize form, const uint8_t *s, size_t n,
                       const uint8_t **out, size_t *out_n, sgt_error *err)
{
    size_t at = sgt_utf8_ascii(s, n);
    int rc = SGT_OK;
    *out = s;
    *out_n = n;
    if (at == n || form == SGT_NORMALIZE_NONE || form == SGT_NORMALIZE_AS_VOCAB) return SGT_OK;
    z->used = z->count = 0;
    for (size_t from = 0; from < n && !rc; at = sgt_utf8_ascii(s + from, n - from) + from) {
        /* Copy ASCII characters unchanged, except the last one before a non-ASCII character. It may
         * combine with the non-ASCII character, so the two are normalized together. */
        size_t copy = at > from && at < n ? at - 1 : at;
        rc = append(z, s + from, copy - from, err);
        from = copy;
        if (from < n && !rc) from += append_extent(z, form, s + from, n - from, &rc, err);
    }
    *out = z->text;
    *out_n = z->used;
    return rc;
}
