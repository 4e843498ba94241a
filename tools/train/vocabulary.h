/* vocabulary.h: what sgt-train asks about vocabularies, which train/ does not know. */
#ifndef SGT_TOOLS_TRAIN_VOCABULARY_H
#define SGT_TOOLS_TRAIN_VOCABULARY_H

#include <stdint.h>

#include "loader/base/error.h"

/* Fill in bytes[n] from the vocabulary that has this fingerprint (0: unknown), or that the file
 * `tokenizer` holds (NULL: there is none). Without either, 50,257 ids are GPT-2's. Returns
 * SGT_EUNSUPPORTED if the vocabulary is unknown. The function can serve as
 * sgt_train_options.text_bytes. */
int vocabulary_text_bytes(const char *tokenizer, uint64_t fingerprint, uint32_t *bytes, uint32_t n,
                          sgt_error *err);

/* Return whether the ids of data stand for the same tokens in the model at `path`; see
 * sgt_train_options.same_ids. */
int vocabulary_same_ids(const char *path, const char *tokenizer, uint64_t fingerprint,
                        sgt_error *err);

#endif
