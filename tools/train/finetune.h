/* finetune.h: reads prompts and completions from JSONL as tokens of the model's vocabulary, for
 * sgt-train --data FILE.jsonl. */
#ifndef SGT_TOOLS_TRAIN_FINETUNE_H
#define SGT_TOOLS_TRAIN_FINETUNE_H

#include "train/data/examples.h"

/* Read a file whose lines are {"prompt": TEXT, "completion": TEXT}; other keys are ignored, and
 * blank lines are skipped. The vocabulary is the one beside the model at `model`, which has `vocab`
 * ids; model NULL: GPT-2's. Texts are normalized as that vocabulary says. An example has the
 * prompt's tokens, the completion's and the end-of-text id; an empty prompt becomes that id too.
 * Returns SGT_EFORMAT, with file and line, if a line is wrong. The function can serve as sgt_train_options.examples. */
int finetune_read(const char *path, const char *model, uint32_t vocab, sgt_examples *e,
                  sgt_error *err);

#endif
