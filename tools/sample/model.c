/* model.c: finds the model at a path, and opens its vocabulary. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/vocab/vocab.h"
#include "train/run/checkpoint.h"
#include "train/run/run.h"
#include "tools/cli/process.h"
#include "tools/sample/sample.h"

/* number of rows in GPT-2's token embedding if its 50,257 rows are padded to a multiple of 128 */
#define GPT2_PADDED 50304

/* Return 1 if the folder `path` contains a vocabulary file that sgt_vocab_load reads, otherwise
 * 0. */
static int has_vocabulary(const char *path)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "encoder.json",
                                        "merges.txt", "vocab.bpe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sgt_folder_has(path, names[i])) return 1;
    return 0;
}

int sample_vocab_beside(sgt_vocab **out, const char *path, uint32_t n, const char *hint,
                        sgt_error *err)
{
    int has = has_vocabulary(path);
    if (!has && (n < SGT_GPT2_IDS || n > GPT2_PADDED))
        return sgt_fail(err, SGT_EUSAGE,
                        "%s: the model has %u ids, not GPT-2's vocabulary, and no tokenizer.json "
                        "next to it (%s)",
                        path, n, hint);
    return sgt_vocab_load(out, has ? path : "gpt2", NULL, err);
}

int sample_vocab_of_data(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint, uint32_t n,
                         sgt_error *err)
{
    const int gpt2 =
        fingerprint ? fingerprint == SGT_GPT2_FINGERPRINT : !tokenizer && n == SGT_GPT2_IDS;
    *out = NULL;
    if (!gpt2 && !tokenizer)
        return sgt_fail(err, SGT_EUNSUPPORTED, "the data's folder has no tokenizer.json");
    int rc = sgt_vocab_load(out, gpt2 ? "gpt2" : tokenizer, NULL, err);
    if (rc < 0 || !fingerprint || fingerprint == sgt_vocab_fingerprint(*out)) return rc;
    sgt_vocab_free(*out);
    *out = NULL;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s: not the vocabulary of the data", tokenizer);
}

int sample_has_meta(const char *file)
{
    char folder[SGT_PATH];
    const char *slash = strrchr(file, '/');
    snprintf(folder, sizeof folder, "%.*s.", slash ? (int)(slash + 1 - file) : 0, file);
    return sgt_folder_has(folder, "meta.pkl");
}

int sample_vocab_agrees(const sgt_vocab *a, const sgt_vocab *b)
{
    int same = sgt_vocab_size(a) <= sgt_vocab_size(b);
    for (uint32_t id = 0; same && id < sgt_vocab_size(a); id++) {
        size_t n, m;
        const uint8_t *s = sgt_vocab_token(a, id, &n), *t = sgt_vocab_token(b, id, &m);
        same = s && t && n == m && !memcmp(s, t, n);
    }
    return same;
}

/* Return SGT_EUSAGE if the vocabulary given with --vocab has other tokens than the vocabulary in
 * the model's folder. Return SGT_OK if they agree, or if that folder has no vocabulary that can be
 * read. */
static int check_given(const sample_model *m, const char *given, sgt_error *err)
{
    sgt_vocab *own = NULL;
    if (!has_vocabulary(m->path) || sgt_vocab_load(&own, m->path, NULL, NULL) < 0) return SGT_OK;
    int same = sample_vocab_agrees(m->vocab, own);
    sgt_vocab_free(own);
    if (same) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE,
                    "--vocab %s: not the vocabulary in the model's folder, %s (omit --vocab)",
                    given, m->path);
}

static int find_vocab(sample_model *m, const char *given, sgt_error *err)
{
    uint32_t n = m->shape.vocab;
    int rc = given ? sgt_vocab_load(&m->vocab, given, NULL, err)
                   : sample_vocab_beside(&m->vocab, m->path, n, "pass it with --vocab FILE", err);
    if (rc == SGT_OK && sgt_vocab_size(m->vocab) > n)
        rc = sgt_fail(err, SGT_EUSAGE,
                      "%s has %u ids, but the model %s only %u: it was trained with a different "
                      "vocabulary (pass it with --vocab FILE)",
                      given ? given : "the vocabulary in its folder", sgt_vocab_size(m->vocab),
                      m->path, n);
    return rc == SGT_OK && given ? check_given(m, given, err) : rc;
}

int sample_model_find(sample_model *m, const char *path, const char *vocab,
                      const sgt_notice *notice, sgt_error *err)
{
    *m = (sample_model){0};
    int rc = sgt_run_find(&m->path, path, notice, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_shape(&m->shape, m->path, err);
    if (rc == SGT_OK) rc = find_vocab(m, vocab, err);
    return rc;
}

void sample_model_free(sample_model *m)
{
    free(m->path);
    sgt_vocab_free(m->vocab);
}
