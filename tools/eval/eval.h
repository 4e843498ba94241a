/* eval.h: functions and types that the source files of sgt-eval share. questions.c reads questions
 * and counts how many of them the model answers correctly. set.c runs the model on batches of rows,
 * and computes the loss on a set of shards. */
#ifndef SGT_TOOLS_EVAL_H
#define SGT_TOOLS_EVAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "train/backend.h"
#include "loader/base/error.h"
#include "tools/sample/sample.h"

/* Options and state that all evaluations have in common. */
typedef struct eval {
    const char *device; /* "cpu" or "cuda" */
    sgt_precision precision;
    /* `batch` is the number of rows per batch, and `seq` the number of tokens per window of a data
     * set */
    uint64_t batch, seq;
    int threads, quiet;
    const char *split; /* split of a data set, such as "val" */
    sample_model model;
    sgt_notice notice;
    const sgt_stop *stop;
    int shown; /* number of tables printed so far */
    /* with --json, the array to which each evaluation appends its result; NULL if results are
     * printed as tables */
    json_t *results;
} eval;

/* ---- batches of rows: set.c ---- */

/* An open model with the buffers for one batch of rows. */
typedef struct eval_batch {
    sgt_backend *b;
    size_t rows, seq; /* B and T */
    /* Arrays of shape (B, T). `inputs` holds token ids. `targets` holds the id of the token that
     * follows each input, or a negative number for an input whose loss does not count. */
    int32_t *inputs, *targets;
    float *losses; /* loss of each target, of shape (B, T); set by eval_batch_run */
    /* array of shape (B, T), set by eval_batch_run if its argument `greedy` is 1: 1 for each target
     * that is the likeliest token, otherwise 0 */
    uint8_t *greedy;
} eval_batch;

/* Open the model for batches of `rows` rows of `seq` tokens each. The caller must call
 * eval_batch_close even if this function fails. */
int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err);
int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err);
void eval_batch_close(eval_batch *x);

/* Append a result to e->results. If e->results is NULL, print the result with sgt_print_facts
 * instead, and print a line about the model before the first result. Takes ownership of the
 * result. */
void eval_show(eval *e, const char *name, const char *what, json_t *result);

/* ---- one evaluation each ---- */

/* Compute the accuracy on the questions in the file at `path`, and pass it to eval_show. */
int eval_questions(eval *e, const char *path, sgt_error *err);
/* Compute loss, perplexity and bits per byte on the shard or the folder of shards at `path`, and
 * pass them to eval_show. */
int eval_set(eval *e, const char *path, sgt_error *err);

#endif
