/* eval.h: the parts of sgt-eval. questions.c reads questions and counts the model's right answers.
 * set.c runs the model on batches of rows, and computes the loss on a set of shards. */
#ifndef SGT_TOOLS_EVAL_H
#define SGT_TOOLS_EVAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "train/backend.h"
#include "loader/base/error.h"
#include "tools/sample/sample.h"

/* Options and objects that all evaluations share. */
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
    /* array to which each evaluation appends an object; NULL: it prints a table instead */
    json_t *results;
} eval;

/* ---- batches of rows: set.c ---- */

/* An open model, and one batch of rows for it. */
typedef struct eval_batch {
    sgt_backend *b;
    size_t rows, seq; /* B and T */
    /* (B, T) each: the tokens, and the token that follows each of them; a negative target has no
     * loss */
    int32_t *inputs, *targets;
    float *losses; /* (B, T): losses of the targets, from eval_batch_run */
    /* (B, T): 1 if no token is likelier than the target, from eval_batch_run */
    uint8_t *greedy;
} eval_batch;

/* Open the model for batches of `rows` rows of `seq` tokens. Call eval_batch_close even after a
 * failure. */
int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err);
int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err);
void eval_batch_close(eval_batch *x);

/* Append a result to e->results. If that is NULL, print the result with sgt_print_facts; a line
 * about the model comes before the first one. Takes ownership of the result. */
void eval_show(eval *e, const char *name, const char *what, json_t *result);

/* ---- one evaluation each ---- */

/* Compute and print the accuracy on the questions in a file. */
int eval_questions(eval *e, const char *path, sgt_error *err);
/* Compute and print loss, perplexity and bits per byte of a folder of shards, or of one shard. */
int eval_set(eval *e, const char *path, sgt_error *err);

#endif
