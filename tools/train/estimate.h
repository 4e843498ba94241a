/* estimate.h: prints what sgt-train can tell without training: --estimate-memory and --lr-table. */
#ifndef TOOLS_TRAIN_ESTIMATE_H
#define TOOLS_TRAIN_ESTIMATE_H

#include "tools/cli/options.h"
#include "train/sgt_train.h"

enum { ESTIMATE_BATCHES = 32 };

/* Batch sizes to estimate, from --batch-size N,N,... */
typedef struct estimate_batches {
    uint64_t sizes[ESTIMATE_BATCHES];
    size_t count; /* 0: --batch-size has no list */
} estimate_batches;

/* If --estimate-memory is among the arguments and the value of --batch-size is a list, store the
 * list and shorten the argument to its first number. If the list cannot be parsed, end the program
 * as for wrong usage. */
void estimate_take_batches(estimate_batches *list, const sgt_program *program, int argc,
                           char **argv);

/* Print the memory of a step by kind, or if `list` has batch sizes, one line for each; with `json`,
 * print one document. All ranks must call this together; rank 0 prints. Returns SGT_OK, or a
 * negative SGT_E* with *err filled in. */
int estimate_print(sgt_config *s, const sgt_train_options *o, const estimate_batches *list,
                   int json, sgt_error *err);

/* Print the learning rates of models of several sizes, as --lr auto chooses them. */
void estimate_print_rates(int json);

#endif
