/* text_bytes.c: GPT-2's vocabulary is built in; another one is read from its file. */
#include "tools/train/text_bytes.h"

#include "tokenize/vocab/vocab.h"

int text_bytes_of(const char *tokenizer, uint64_t fingerprint, uint32_t *bytes, uint32_t n,
                  sgt_error *err)
{
    sgt_vocab *v;
    int rc = sgt_vocab_gpt2(&v, err);
    if (rc < 0) return rc;
    int known =
        fingerprint ? sgt_vocab_reads(v, fingerprint) : !tokenizer && n == sgt_vocab_size(v);
    if (!known) {
        sgt_vocab_free(v);
        if (!tokenizer) return sgt_fail(err, SGT_EUNSUPPORTED, "the data's vocabulary is unknown");
        if ((rc = sgt_vocab_load(&v, tokenizer, NULL, err)) < 0) return rc;
    }
    sgt_vocab_text_bytes(v, bytes, n);
    sgt_vocab_free(v);
    return SGT_OK;
}
