/* tokenizer.h: tokenizer_config.json, which Hugging Face's transformers reads beside tokenizer.json.
 * Without it, AutoTokenizer goes by the model's type: it may replace the split pattern and the
 * normal form by GPT-2's, add another end of text, and drop blanks before punctuation in decoded
 * text. */
#ifndef SGT_TOKENIZER_H
#define SGT_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_TOKENIZER_CONFIG "tokenizer_config.json"
#define SGT_TOKENIZER_MOST \
    ((size_t)64 << 20) /* most bytes of tokenizer.json, as in sgt_vocab_load */

#ifdef __cplusplus
extern "C" {
#endif

/* Find the name of token `id` in a tokenizer.json, `n` bytes of text. The caller frees *name; it is
 * NULL if the text does not tell. Return 0 or SGT_ENOMEM. */
int sgt_tokenizer_name(char **name, const char *tokenizer, size_t n, int64_t id, sgt_error *err);

/* Write DIR/tokenizer_config.json. eot: name of the end-of-text token, which also begins a text;
 * NULL: unknown. positions: longest text in tokens; 0: no limit. */
int sgt_tokenizer_config_write(const char *dir, const char *eot, uint32_t positions,
                               sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
