/* texts.c: reads and tokenizes the strings in JSONL files, and prompts from the command line, from
 * files and from standard input. An entire JSONL file is read into memory, because files of
 * questions and examples are small. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/memory.h"
#include "loader/base/file.h"
#include "loader/base/ids.h"
#include "loader/base/json.h"
#include "tokenize/input/json_line.h"
#include "tokenize/vocab/vocab.h"
#include "tools/sample/sample.h"

/* maximum number of JSON values in a line; typical lines have only a few */
#define MOST_VALUES ((size_t)1 << 16)
/* maximum size in bytes of a prompt, far more than fits into the context of any GPT-2 model */
#define MOST_PROMPT ((size_t)64 << 20)

int sample_lines_fail(const sample_lines *r, const char *fmt, ...)
{
    char why[sizeof r->err->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return r->line ? sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: %s", r->path, r->line, why)
                   : sgt_fail(r->err, SGT_EFORMAT, "%s: %s", r->path, why);
}

static int read_line(const sample_lines *r, char *text, size_t n,
                     int (*add)(void *ctx, const json_t *value), void *ctx)
{
    char name[PATH_MAX + 32];
    json_error_t why;
    const char *bad;
    if (strspn(text, " \t\r") >= n) return SGT_OK;
    snprintf(name, sizeof name, "%s: line %zu", r->path, r->line);
    int rc = sgt_json_fits(text, n, MOST_VALUES, name, r->err);
    if (rc < 0) return rc;
    if ((bad = sgt_json_mend(text, n))) return sample_lines_fail(r, "%s", bad);
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
    if (rc < 0) return rc;
    /* reserve room for n + 2 ids, because a text of n bytes has at most n ids, and the caller can
     * append two more */
    rc = sgt_reserve(&r->tokens, &r->room, r->count + n + 2, sizeof *r->tokens, r->path, r->err);
    if (rc < 0) return rc;
    int32_t *to = r->tokens + r->count;
    const size_t bytes = (r->room - r->count) * sizeof *to, width = sgt_vocab_width(r->vocab);
    size_t ids;
    sgt_error why;
    if (sgt_encode(r->encoder, text, n, to, bytes, &ids, &why) < 0)
        return sample_lines_fail(r, "%s", why.text);
    /* Convert the ids from `width` bytes to 4 bytes in the same buffer. Begin with the last id, so
     * that no id is overwritten before it is read. */
    for (size_t i = ids; i--;) to[i] = (int32_t)sgt_id_at(to, width, i);
    r->count += ids;
    return SGT_OK;
}

void sample_lines_free(sample_lines *r)
{
    sgt_normalizer_free(&r->normal);
    sgt_encoder_free(r->encoder);
    r->encoder = NULL;
}

/* ---- prompts ---- */

/* Append a prompt with the text of `bytes` bytes at `text`, which was allocated with malloc. From
 * now on, the prompt owns this memory; on an error, it is freed. If `text` is NULL, because its
 * allocation has failed, return SGT_ENOMEM. */
static int add(sample_prompts *p, char *text, size_t bytes, sgt_error *err)
{
    int rc = text ? sgt_reserve(&p->items, &p->room, p->count + 1, sizeof *p->items, "prompts", err)
                  : sgt_fail_memory(err, "prompts");
    if (rc < 0) free(text);
    else p->items[p->count++] = (sample_prompt){.text = text, .bytes = bytes};
    return rc;
}

static int add_file(sample_prompts *p, const char *path, sgt_error *err)
{
    char *text;
    size_t n;
    int standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : fopen(path, "re");
    if (!f) return sgt_fail_errno(err, "%s", path);
    int rc = sgt_stream_get(&text, &n, f, standard ? "standard input" : path, MOST_PROMPT, err);
    if (!standard) fclose(f);
    if (rc == SGT_OK && n && text[n - 1] == '\n') n--;
    return rc == SGT_OK ? add(p, text, n, err) : rc;
}

int sample_prompts_read(sample_prompts *p, const sgt_option_list *texts,
                        const sgt_option_list *files, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < texts->count && rc == SGT_OK; i++) {
        const char *text = texts->items[i];
        rc = strcmp(text, "-") ? add(p, strdup(text), strlen(text), err) : add_file(p, text, err);
    }
    for (size_t i = 0; i < files->count && rc == SGT_OK; i++)
        rc = add_file(p, files->items[i], err);
    return rc == SGT_OK && !p->count ? add(p, strdup(""), 0, err) : rc;
}

int sample_prompts_encode(sample_prompts *p, const sgt_vocab *v, sgt_error *err)
{
    char name[32];
    sample_lines r = {.path = name, .vocab = v, .err = err};
    int rc = sgt_encoder_new(&r.encoder, v, err);
    for (size_t i = 0; i < p->count && rc == SGT_OK; i++) {
        snprintf(name, sizeof name, "prompt %zu", i + 1);
        rc = sample_lines_encode(&r, p->items[i].text, p->items[i].bytes);
        if (rc == SGT_OK && !r.count) r.tokens[r.count++] = (int32_t)sgt_vocab_eot(v);
        p->items[i].ids = r.tokens; /* the prompt takes ownership of the ids */
        p->items[i].count = r.count;
        r.tokens = NULL;
        r.count = r.room = 0;
    }
    sample_lines_free(&r);
    return rc;
}

void sample_prompts_free(sample_prompts *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free(p->items[i].text);
        free(p->items[i].ids);
    }
    free(p->items);
}
