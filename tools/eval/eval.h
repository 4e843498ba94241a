/* eval.h: the parts of sgt-eval. questions.c reads questions and counts how many the model answers
 * correctly. set.c runs the model on batches of rows, and computes the loss on a set of shards. */
#ifndef SGT_TOOLS_EVAL_H
#define SGT_TOOLS_EVAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "train/backend.h"
#include "loader/base/error.h"
#include "tools/sample/sample.h"

/* Options and state that all evaluations share. */
typedef struct eval {
    const char *device; /* "cpu" or "cuda" */
    sgt_precision precision;
    uint64_t batch, seq; /* batch: rows per batch; seq: tokens per window of a set */
    int threads, quiet;
    const char *split; /* split of a set, such as "val" */
    sample_model model;
    sgt_notice notice;
    const sgt_stop *stop;
    int shown; /* number of tables printed so far */
    /* if the output is JSON: array to which each evaluation appends its results; NULL: print
     * tables */
    json_t *results;
} eval;

/* ---- batches of rows: set.c ---- */

/* An open model, with the buffers of one batch of rows. */
typedef struct eval_batch {
    sgt_backend *b;
    size_t rows, seq; /* B and T */
    /* (B, T) each. inputs: token ids; targets: the id of the token that follows each input, or a
     * negative number for an input that does not count */
    int32_t *inputs, *targets;
    float *losses; /* (B, T): loss of each target, set by eval_batch_run */
    /* (B, T): 1 if no token is likelier than the target, set by eval_batch_run on request */
    uint8_t *greedy;
} eval_batch;

/* Open the model for batches of `rows` rows with `seq` tokens each. The caller must call
 * eval_batch_close, even after a failure. */
int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err);
int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err);
void eval_batch_close(eval_batch *x);

/* Append a result to e->results. If e->results is NULL, print the result with sgt_print_facts
 * instead; the first printed result is preceded by a line about the model. Takes ownership of the
 * result. */
void eval_show(eval *e, const char *name, const char *what, json_t *result);

/* ---- one evaluation each ---- */

/* Compute the accuracy on the questions in a file, and show it (eval_show). */
int eval_questions(eval *e, const char *path, sgt_error *err);
/* Compute loss, perplexity and bits per byte on a folder of shards or one shard, and show them. */
int eval_set(eval *e, const char *path, sgt_error *err);

#endif
