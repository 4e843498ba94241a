/* finetune.c: implements finetune.h. The file is read into memory as a whole, because examples for
 * fine-tuning are small. */
#include "tools/train/finetune.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tokenize/sgt_tokenize.h"

#define MOST_BYTES ((size_t)1 << 34)  /* most bytes of a file */
#define MOST_VALUES ((size_t)1 << 16) /* most JSON values in a line, which needs three */

typedef struct reading {
    const char *path;
    size_t line;
    sgt_encoder *encoder;
    uint32_t eot;
    sgt_examples *e;
    uint64_t tokens, room, examples_room;
    sgt_error *err;
} reading;

/* Make room for `bytes` more tokens and one more example. */
static int make_room(reading *r, size_t bytes)
{
    sgt_examples *e = r->e;
    if (r->tokens + bytes > r->room) {
        uint64_t room = 2 * (r->tokens + bytes);
        uint16_t *more = reallocarray(e->tokens, room, sizeof *more);
        if (!more) return sgt_fail_memory(r->err, r->path);
        e->tokens = more;
        r->room = room;
    }
    if (e->count == r->examples_room) {
        uint64_t room = r->examples_room ? 2 * r->examples_room : 256;
        uint64_t *starts = reallocarray(e->starts, room + 1, sizeof *starts);
        if (starts) e->starts = starts;
        uint32_t *learnt = reallocarray(e->learnt, room, sizeof *learnt);
        if (learnt) e->learnt = learnt;
        if (!starts || !learnt) return sgt_fail_memory(r->err, r->path);
        r->examples_room = room;
    }
    return SGT_OK;
}

static int add_example(reading *r, const json_t *prompt, const json_t *completion)
{
    sgt_examples *e = r->e;
    size_t p = json_string_length(prompt), c = json_string_length(completion);
    /* room for as many ids as bytes is enough */
    int rc = p < UINT32_MAX ? make_room(r, p + c + 2) : SGT_EFORMAT;
    if (rc == SGT_EFORMAT)
        return sgt_fail(r->err, rc, "%s: line %zu: a prompt of %zu bytes, more than 4 GiB", r->path,
                        r->line, p);
    if (rc < 0) return rc;
    uint64_t start = r->tokens;
    if (p) r->tokens += sgt_encode(r->encoder, json_string_value(prompt), p, e->tokens + start);
    else e->tokens[r->tokens++] = (uint16_t)r->eot;
    e->learnt[e->count] = (uint32_t)(r->tokens - start);
    r->tokens += sgt_encode(r->encoder, json_string_value(completion), c, e->tokens + r->tokens);
    e->tokens[r->tokens++] = (uint16_t)r->eot;
    e->starts[e->count++] = start;
    e->starts[e->count] = r->tokens;
    return SGT_OK;
}

static int read_line(reading *r, const char *text, size_t n)
{
    json_error_t why;
    int rc;
    if (strspn(text, " \t\r") >= n) return SGT_OK;
    char name[PATH_MAX + 32];
    snprintf(name, sizeof name, "%s: line %zu", r->path, r->line);
    if ((rc = sgt_json_fits(text, n, MOST_VALUES, name, r->err)) < 0) return rc;
    json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    const json_t *prompt = json_object_get(o, "prompt"),
                 *completion = json_object_get(o, "completion");
    if (!o)
        rc =
            sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: not JSON: %s", r->path, r->line, why.text);
    else if (!json_is_string(prompt) || !json_is_string(completion))
        rc = sgt_fail(r->err, SGT_EFORMAT,
                      "%s: line %zu: expected {\"prompt\": TEXT, \"completion\": TEXT}: %s",
                      r->path, r->line,
                      !json_is_object(o)       ? "it is no object"
                      : json_is_string(prompt) ? "no text \"completion\""
                                               : "no text \"prompt\"");
    else rc = add_example(r, prompt, completion);
    json_decref(o);
    return rc;
}

/* Read all lines of `text`, which has n bytes and then a NUL; the last line may lack its
 * newline. */
static int read_lines(reading *r, const char *text, size_t n)
{
    int rc = SGT_OK;
    for (size_t at = sgt_utf8_mark(text, n), end; at < n && rc == SGT_OK; at = end + 1) {
        const char *newline = memchr(text + at, '\n', n - at);
        end = newline ? (size_t)(newline - text) : n;
        r->line++;
        rc = read_line(r, text + at, end - at);
    }
    if (rc == SGT_OK && !r->e->count)
        rc = sgt_fail(r->err, SGT_EFORMAT,
                      "%s: no line in it: expected {\"prompt\": TEXT, \"completion\": TEXT} a line",
                      r->path);
    return rc;
}

int finetune_read(const char *path, sgt_examples *e, sgt_error *err)
{
    sgt_vocab *v = NULL;
    char *text = NULL;
    size_t n, m;
    reading r = {.path = path, .e = e, .err = err};
    int rc = sgt_file_get(&text, &n, path, MOST_BYTES, err);
    if (rc == SGT_OK) rc = sgt_vocab_gpt2(&v, err);
    if (rc == SGT_OK) rc = sgt_encoder_new(&r.encoder, v, err);
    if (rc == SGT_OK) {
        r.eot = e->eot = sgt_vocab_eot(v);
        e->vocab = sgt_vocab_size(v);
        e->hash = XXH3_64bits(text, n);
        rc = read_lines(&r, text, n);
    }
    if (rc == SGT_OK) rc = sgt_vocab_tokenizer_json(v, &e->tokenizer, &m, err);
    sgt_encoder_free(r.encoder);
    sgt_vocab_free(v);
    free(text);
    return rc;
}
