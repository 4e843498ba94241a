/* finetune.h: reads prompts and completions from JSONL as GPT-2's tokens, for sgt-train --data
 * FILE.jsonl. */
#ifndef SGT_TOOLS_TRAIN_FINETUNE_H
#define SGT_TOOLS_TRAIN_FINETUNE_H

#include "train/data/examples.h"

/* Read a file whose lines are {"prompt": TEXT, "completion": TEXT}; other keys are ignored, and
 * blank lines are skipped. An example is the prompt's tokens, the completion's and the end-of-text
 * id, which also stands for an empty prompt. The signature is that of sgt_train_options.examples;
 * SGT_EFORMAT names file and line. */
int finetune_read(const char *path, sgt_examples *e, sgt_error *err);

#endif
