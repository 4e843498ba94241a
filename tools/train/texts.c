/* texts.c: implements texts.h. A file of examples is read into memory as a whole, because examples
 * for fine-tuning are small. */
#include "tools/train/texts.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tokenize/text/normalize.h"
#include "tokenize/vocab/vocab.h"
#include "tools/sample/sample.h"

#define MOST_BYTES ((size_t)1 << 34)  /* most bytes of a file */
#define MOST_VALUES ((size_t)1 << 16) /* most JSON values in a line, which needs three */

typedef struct reading {
    const char *path;
    size_t line;
    sgt_vocab *vocab;
    sgt_encoder *encoder;
    sgt_normalizer normal;
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

/* Append the ids of a text, in the normal form of the vocabulary, and leave room for two more. */
static int encode(reading *r, const json_t *string)
{
    size_t n = json_string_length(string);
    const uint8_t *text = (const uint8_t *)json_string_value(string);
    int rc = sgt_normalize_text(&r->normal, r->vocab->normalize, text, n, &text, &n, r->err);
    /* room for as many ids as bytes is enough */
    if (rc < 0 || (rc = make_room(r, n + 2)) < 0) return rc;
    size_t ids = sgt_encode(r->encoder, text, n, r->e->tokens + r->tokens);
    if (ids == SGT_ENCODE_FAILED)
        return sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: %s", r->path, r->line,
                        sgt_encoder_failure(r->encoder)->text);
    r->tokens += ids;
    return SGT_OK;
}

static int add_example(reading *r, const json_t *prompt, const json_t *completion)
{
    sgt_examples *e = r->e;
    uint64_t start = r->tokens;
    int rc = encode(r, prompt);
    if (rc < 0) return rc;
    if (r->tokens - start > UINT32_MAX)
        return sgt_fail(r->err, SGT_EFORMAT, "%s: line %zu: a prompt of %" PRIu64 " tokens",
                        r->path, r->line, r->tokens - start);
    if (r->tokens == start) e->tokens[r->tokens++] = (uint16_t)e->eot;
    e->learnt[e->count] = (uint32_t)(r->tokens - start);
    if ((rc = encode(r, completion)) < 0) return rc;
    e->tokens[r->tokens++] = (uint16_t)e->eot;
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

/* Open the vocabulary beside the model, or GPT-2's if there is no model. */
static int open_model_vocabulary(reading *r, const char *model, uint32_t vocab)
{
    if (!model) return sgt_vocab_gpt2(&r->vocab, r->err);
    int rc = sample_vocab_beside(&r->vocab, model, vocab, "copy its tokenizer.json there", r->err);
    return rc == SGT_EUSAGE ? sgt_fail(r->err, SGT_EUNSUPPORTED, "%s", r->err->text) : rc;
}

int finetune_read(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                  sgt_error *err)
{
    char *text = NULL;
    size_t n, m;
    reading r = {.path = path, .e = e, .err = err};
    int rc = sgt_file_get(&text, &n, path, MOST_BYTES, err);
    if (rc == SGT_OK) rc = open_model_vocabulary(&r, model, vocab);
    if (rc == SGT_OK) rc = sgt_encoder_new(&r.encoder, r.vocab, err);
    if (rc == SGT_OK) {
        e->eot = sgt_vocab_eot(r.vocab);
        e->vocab = sgt_vocab_size(r.vocab);
        e->hash = XXH3_64bits(text, n);
        rc = read_lines(&r, text, n);
    }
    if (rc == SGT_OK) rc = sgt_vocab_tokenizer_json(r.vocab, &e->tokenizer, &m, err);
    sgt_normalizer_free(&r.normal);
    sgt_encoder_free(r.encoder);
    sgt_vocab_free(r.vocab);
    free(text);
    return rc;
}

/* ---- the vocabularies of data and model ---- */

/* Open the vocabulary of data: GPT-2's, by its fingerprint or (if that is 0) its size n, or else
 * the one in the file `tokenizer`. */
static int open_data_vocabulary(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint,
                                uint32_t n, sgt_error *err)
{
    sgt_vocab *v;
    int rc = sgt_vocab_gpt2(&v, err);
    if (rc < 0) return rc;
    int known = fingerprint ? sgt_vocab_fingerprint(v) == fingerprint
                            : !tokenizer && n == sgt_vocab_size(v);
    if (!known) {
        sgt_vocab_free(v);
        if (!tokenizer) return sgt_fail(err, SGT_EUNSUPPORTED, "the data's vocabulary is unknown");
        return sgt_vocab_load(out, tokenizer, NULL, err);
    }
    *out = v;
    return SGT_OK;
}

int vocabulary_text_bytes(const char *tokenizer, uint64_t fingerprint, uint32_t *bytes, uint32_t n,
                          sgt_error *err)
{
    sgt_vocab *v;
    int rc = open_data_vocabulary(&v, tokenizer, fingerprint, n, err);
    if (rc < 0) return rc;
    sgt_vocab_text_bytes(v, bytes, n);
    sgt_vocab_free(v);
    return SGT_OK;
}

int vocabulary_same_ids(const char *path, const char *tokenizer, uint64_t fingerprint,
                        sgt_error *err)
{
    sgt_vocab *model = NULL, *data = NULL;
    int rc = sample_vocab_beside(&model, path, 0, "", err);
    if (rc == SGT_EUSAGE) return 1; /* the model has no vocabulary beside it */
    if (rc < 0) return rc;
    int same = sgt_vocab_fingerprint(model) == fingerprint;
    if (!same) rc = open_data_vocabulary(&data, tokenizer, fingerprint, 0, err);
    if (data) same = sgt_vocab_fingerprint(data) == fingerprint && sample_vocab_agrees(data, model);
    sgt_vocab_free(model);
    sgt_vocab_free(data);
    return rc == SGT_ENOMEM ? rc : same;
}
