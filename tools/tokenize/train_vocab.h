/* train_vocab.h: sgt-tokenize --train-vocab: makes a vocabulary instead of shards. */
#ifndef SGT_TOOLS_TOKENIZE_TRAIN_VOCAB_H
#define SGT_TOOLS_TOKENIZE_TRAIN_VOCAB_H

#include <stdint.h>

#include "tokenize/sgt_tokenize.h"
#include "tools/cli/options.h"

typedef struct train_vocab {
    const sgt_program *program;
    uint32_t size;
    int json, quiet;
} train_vocab;

/* Train a vocabulary on o's inputs, write its files to o->out, print the result, and return the
 * exit code. */
int run_train_vocab(const train_vocab *t, sgt_tokenize_options *o);

#endif
