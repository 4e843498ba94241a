/* texts.c: implements texts.h. */
#include "tools/train/texts.h"

#include "loader/base/memory.h"
#include "tokenize/vocab/vocab.h"
#include "tools/sample/sample.h"

#define MOST_BYTES ((size_t)1 << 34) /* most bytes of a file */

typedef struct reading {
    sample_lines file;
    sgt_examples *e;
    size_t room, learnt_room; /* of the examples' starts and of what they learn */
} reading;

static int add_example(reading *r, const json_t *prompt, const json_t *completion)
{
    sgt_examples *e = r->e;
    sample_lines *f = &r->file;
    size_t start = f->count;
    int rc = sgt_reserve(&e->starts, &r->room, e->count + 2, sizeof *e->starts, f->path, f->err);
    if (rc == SGT_OK)
        rc = sgt_reserve(&e->learnt, &r->learnt_room, e->count + 1, sizeof *e->learnt, f->path,
                         f->err);
    if (rc == SGT_OK)
        rc = sample_lines_encode(f, json_string_value(prompt), json_string_length(prompt));
    if (rc < 0) return rc;
    if (f->count - start > UINT32_MAX)
        return sample_lines_fail(f, "a prompt of %zu tokens", f->count - start);
    if (f->count == start) f->tokens[f->count++] = (uint16_t)e->eot;
    e->learnt[e->count] = (uint32_t)(f->count - start);
    rc = sample_lines_encode(f, json_string_value(completion), json_string_length(completion));
    if (rc < 0) return rc;
    f->tokens[f->count++] = (uint16_t)e->eot;
    e->starts[e->count++] = start;
    e->starts[e->count] = f->count;
    return SGT_OK;
}

static int read_example(void *ctx, const json_t *o)
{
    reading *r = ctx;
    const json_t *prompt = json_object_get(o, "prompt"),
                 *completion = json_object_get(o, "completion");
    if (json_is_string(prompt) && json_is_string(completion))
        return add_example(r, prompt, completion);
    return sample_lines_fail(&r->file, "expected {\"prompt\": TEXT, \"completion\": TEXT}: %s",
                             !json_is_object(o)       ? "it is no object"
                             : json_is_string(prompt) ? "no text \"completion\""
                                                      : "no text \"prompt\"");
}

/* Open the vocabulary beside the model, or GPT-2's if there is no model. */
static int open_model_vocabulary(sgt_vocab **out, const char *model, uint32_t vocab, sgt_error *err)
{
    if (!model) return sgt_vocab_gpt2(out, err);
    int rc = sample_vocab_beside(out, model, vocab, "copy its tokenizer.json there", err);
    return rc == SGT_EUSAGE ? sgt_fail(err, SGT_EUNSUPPORTED, "%s", err->text) : rc;
}

int finetune_read(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                  sgt_error *err)
{
    size_t n;
    sgt_vocab *v = NULL;
    reading r = {.file = {.path = path, .err = err}, .e = e};
    int rc = open_model_vocabulary(&v, model, vocab, err);
    if (rc == SGT_OK) {
        r.file.vocab = v;
        e->eot = sgt_vocab_eot(v);
        e->vocab = sgt_vocab_size(v);
        rc = sample_lines_read(&r.file, MOST_BYTES, read_example, &r);
    }
    if (rc == SGT_OK && !e->count)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: no line in it: expected {\"prompt\": TEXT, \"completion\": TEXT} a line",
                      path);
    if (rc == SGT_OK) rc = sgt_vocab_tokenizer_json(v, &e->tokenizer, &n, err);
    e->tokens = r.file.tokens;
    e->hash = r.file.hash;
    sample_lines_free(&r.file);
    sgt_vocab_free(v);
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
