/* text_bytes.h: finds how many bytes of text each id stands for, for validation in bits per
 * byte. */
#ifndef SGT_TOOLS_TRAIN_TEXT_BYTES_H
#define SGT_TOOLS_TRAIN_TEXT_BYTES_H

#include <stdint.h>

#include "loader/base/error.h"

/* Fill in bytes[n] from the vocabulary that has this fingerprint (0: unknown), or that the file
 * `tokenizer` holds (NULL: there is none). Without either, 50,257 ids are GPT-2's. Returns
 * SGT_EUNSUPPORTED if the vocabulary is unknown. The function can serve as
 * sgt_train_options.text_bytes. */
int text_bytes_of(const char *tokenizer, uint64_t fingerprint, uint32_t *bytes, uint32_t n,
                  sgt_error *err);

#endif
