/* finetune.h: reads prompts and completions from JSONL as GPT-2's tokens, for sgt-train --data
 * FILE.jsonl. */
#ifndef SGT_TOOLS_TRAIN_FINETUNE_H
#define SGT_TOOLS_TRAIN_FINETUNE_H

#include "train/data/examples.h"

/* Read a file whose lines are {"prompt": TEXT, "completion": TEXT}; other keys are ignored, and
 * blank lines are skipped. An example has the prompt's tokens, the completion's and the end-of-text
 * id; an empty prompt becomes that id too. Returns SGT_EFORMAT, with file and line, if a line is
 * wrong. The function can serve as sgt_train_options.examples. */
int finetune_read(const char *path, sgt_examples *e, sgt_error *err);

#endif
