/* texts.h: what sgt-train does with texts and vocabularies, which train/ does not know: it reads
 * prompts and completions from JSONL as tokens, and compares vocabularies. */
#ifndef SGT_TOOLS_TRAIN_TEXTS_H
#define SGT_TOOLS_TRAIN_TEXTS_H

#include "train/data/feed.h"

/* Read a file whose lines are {"prompt": TEXT, "completion": TEXT}; other keys are ignored, and
 * blank lines are skipped. The vocabulary is the one beside the model at `model`, which has `vocab`
 * ids; model NULL: GPT-2's. Texts are normalized as that vocabulary says. An example has the
 * prompt's tokens, the completion's and the end-of-text id; an empty prompt becomes that id too.
 * Returns SGT_EFORMAT, with file and line, if a line is wrong. The function can serve as
 * sgt_train_options.examples. */
int finetune_read(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                  sgt_error *err);

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
