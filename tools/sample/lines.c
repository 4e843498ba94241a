/* lines.c: reads JSONL files of texts. A file is read into memory as a whole, because questions and
 * examples are few. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/memory.h"
#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tokenize/vocab/vocab.h"
#include "tools/sample/sample.h"

#define MOST_VALUES ((size_t)1 << 16) /* most JSON values in a line, which needs few */

int sample_lines_fail(const sample_lines *r, const char *fmt, ...)
{
    char why[sizeof r->err->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: %s", r->path, r->line, why);
}

static int read_line(const sample_lines *r, const char *text, size_t n,
                     int (*add)(void *ctx, const json_t *value), void *ctx)
{
    char name[PATH_MAX + 32];
    json_error_t why;
    if (strspn(text, " \t\r") >= n) return SGT_OK;
    snprintf(name, sizeof name, "%s: line %zu", r->path, r->line);
    int rc = sgt_json_fits(text, n, MOST_VALUES, name, r->err);
    if (rc < 0) return rc;
    json_t *value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    rc = value ? add(ctx, value) : sample_lines_fail(r, "not JSON: %s", why.text);
    json_decref(value);
    return rc;
}

int sample_lines_read(sample_lines *r, size_t most, int (*add)(void *ctx, const json_t *value),
                      void *ctx)
{
    char *text = NULL;
    size_t n = 0;
    int rc = sgt_file_get(&text, &n, r->path, most, r->err);
    if (rc == SGT_OK) rc = sgt_encoder_new(&r->encoder, r->vocab, r->err);
    if (rc == SGT_OK) r->hash = XXH3_64bits(text, n);
    for (size_t at = sgt_utf8_mark(text, n), end; rc == SGT_OK && at < n; at = end + 1) {
        const char *newline = memchr(text + at, '\n', n - at);
        end = newline ? (size_t)(newline - text) : n;
        r->line++;
        rc = read_line(r, text + at, end - at, add, ctx);
    }
    free(text);
    return rc;
}

int sample_lines_encode(sample_lines *r, const char *string, size_t n)
{
    const uint8_t *text = (const uint8_t *)string;
    int rc = sgt_normalize_text(&r->normal, r->vocab->normalize, text, n, &text, &n, r->err);
    /* room for as many ids as bytes is enough */
    if (rc == SGT_OK)
        rc =
            sgt_reserve(&r->tokens, &r->room, r->count + n + 2, sizeof *r->tokens, r->path, r->err);
    if (rc < 0) return rc;
    size_t ids = sgt_encode(r->encoder, text, n, r->tokens + r->count);
    if (ids == SGT_ENCODE_FAILED)
        return sample_lines_fail(r, "%s", sgt_encoder_failure(r->encoder)->text);
    r->count += ids;
    return SGT_OK;
}

void sample_lines_free(sample_lines *r)
{
    sgt_normalizer_free(&r->normal);
    sgt_encoder_free(r->encoder);
    r->encoder = NULL;
}
