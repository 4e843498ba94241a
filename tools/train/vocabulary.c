/* vocabulary.c: GPT-2's vocabulary is built in; another one is read from its file. */
#include "tools/train/vocabulary.h"

#include "tokenize/vocab/vocab.h"
#include "tools/sample/sample.h"

/* Open the vocabulary of data: GPT-2's, by its fingerprint or (if that is 0) its size n, or else
 * the one in the file `tokenizer`. */
static int open_vocabulary(sgt_vocab **out, const char *tokenizer, uint64_t fingerprint, uint32_t n,
                           sgt_error *err)
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
    int rc = open_vocabulary(&v, tokenizer, fingerprint, n, err);
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
    if (!same) rc = open_vocabulary(&data, tokenizer, fingerprint, 0, err);
    if (data) same = sgt_vocab_fingerprint(data) == fingerprint && sample_vocab_agrees(data, model);
    sgt_vocab_free(model);
    sgt_vocab_free(data);
    return rc == SGT_ENOMEM ? rc : same;
}
