/* finetune.h: prompts and completions, from JSONL to GPT-2's tokens, for sgt-train --data
 * FILE.jsonl. */
#ifndef SGT_TOOLS_TRAIN_FINETUNE_H
#define SGT_TOOLS_TRAIN_FINETUNE_H

#include "data/examples.h"

/* Each line of the file is {"prompt": TEXT, "completion": TEXT}, other names aside: an example of
 * the prompt's tokens, the completion's and the end-of-text id; the end-of-text id stands for an
 * empty prompt. Lines of white space are passed over. As sgt_train_options.examples wants it;
 * SGT_EFORMAT names file and line. */
int finetune_read(const char *path, sgt_examples *e, sgt_error *err);

#endif
