/* eval.h: functions and types that the source files of sgt-eval share. questions.c computes the
 * accuracy of the model on files of questions. set.c computes the loss of the model on sets of
 * shards, and contains the functions that run the model. */
#ifndef SGT_TOOLS_EVAL_H
#define SGT_TOOLS_EVAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "train/backend.h"
#include "loader/base/error.h"
#include "tools/sample/sample.h"

/* options and state that all evaluations share */
typedef struct eval {
    const char *device; /* "cpu" or "cuda" */
    sgt_precision precision;
    /* batch: number of rows per batch. seq: number of tokens per window of a data set. */
    uint64_t batch, seq;
    int threads, quiet;
    const char *split; /* split of the data sets to read, such as "val" */
    sample_model model;
    sgt_notice notice;
    const sgt_stop *stop;
    int shown; /* number of tables printed so far */
    /* with --json, array to which the result of each evaluation is appended; otherwise NULL */
    json_t *results;
} eval;

/* ---- batches of rows: set.c ---- */

/* an open model, with the buffers for one batch of rows */
typedef struct eval_batch {
    sgt_backend *b;
    size_t rows, seq; /* number of rows (B), and number of tokens per row (T) */
    /* Arrays of shape (B, T) with the ids of the input tokens (`inputs`), and with the id of the
     * token that follows each input (`targets`). A negative target has no loss. */
    int32_t *inputs, *targets;
    float *losses; /* loss of each target, of shape (B, T); set by eval_batch_run */
    /* array of shape (B, T), which eval_batch_run sets if its argument `greedy` is 1: 1 for each
     * target that is the likeliest token, otherwise 0 */
    uint8_t *greedy;
} eval_batch;

/* Open the model for batches of `rows` rows of `seq` tokens each. The caller must call
 * eval_batch_close even if this function fails. */
int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err);
/* Run the model on the rows in x->inputs and x->targets, and set x->losses and, if `greedy` is 1,
 * x->greedy. name: name of the data, for messages. */
int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err);
void eval_batch_close(eval_batch *x);

/* Append a result to e->results, or print it with sgt_print_facts if e->results is NULL. Before the
 * first printed result, print a line about the model. The result is released. */
void eval_show(eval *e, const char *name, const char *what, json_t *result);

/* ---- evaluations ---- */

/* Compute the accuracy on the questions in the file at `path`, and pass the result to eval_show. */
int eval_questions(eval *e, const char *path, sgt_error *err);
/* Compute the loss, the perplexity and the bits per byte on the shard or the folder of shards at
 * `path`, and pass the result to eval_show. */
int eval_set(eval *e, const char *path, sgt_error *err);

#endif
