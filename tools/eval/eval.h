/* eval.h: the parts of sgt-eval. batch.c runs the model on one batch of rows, items.c reads
 * questions and turns their answers into rows, questions.c counts the right answers, set.c
 * computes the loss of a set of tokens. */
#ifndef SGT_TOOLS_EVAL_H
#define SGT_TOOLS_EVAL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "train/backend.h"
#include "loader/base/error.h"
#include "tools/sample/sample.h"

/* What every evaluation needs to know. */
typedef struct eval {
    const char *device; /* "cpu" or "cuda" */
    sgt_precision precision;
    uint64_t batch, seq; /* rows at a time; tokens per window of a set */
    int threads, quiet;
    const char *split; /* of a set: "val" */
    sample_model model;
    sgt_notice notice;
    const sgt_stop *stop;
    int shown;       /* tables printed so far */
    json_t *results; /* array to which each evaluation appends an object; NULL: it prints a table */
} eval;

/* ---- batch.c ---- */

/* The model, ready to run, and one batch of rows for it. */
typedef struct eval_batch {
    sgt_backend *b;
    size_t rows, seq; /* B and T */
    uint16_t *tokens; /* (B, T + 1) */
    int32_t *targets; /* (B, T); a target below 0 has no loss */
    float *losses;    /* (B, T), filled in by eval_batch_run */
    /* (B, T), filled in by eval_batch_run: no token is likelier than the target */
    uint8_t *greedy;
} eval_batch;

/* Open the model for `rows` rows of `seq` tokens. Call eval_batch_close in any case. */
int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err);
int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err);
void eval_batch_close(eval_batch *x);

/* Begin a table with the name of what was evaluated; before the first, a line about the model. */
void eval_show_name(eval *e, const char *name);

/* ---- items.c ---- */

typedef enum eval_kind {
    EVAL_NONE,
    EVAL_CHOICE, /* {"ctx", "endings", "label"}: which ending is likeliest */
    EVAL_WORD    /* {"text"}: its last word */
} eval_kind;

/* A context and one answer to it, and what the model says to that. */
typedef struct eval_row {
    uint64_t start;        /* in eval_items.tokens */
    uint32_t count, asked; /* tokens; those of the answer, which are the last ones */
    double loss;           /* summed over the answer's tokens */
    int greedy;            /* greedy decoding gives the answer */
} eval_row;

typedef struct eval_item {
    size_t line, row; /* in the file, from 1; its first row */
    uint32_t choices; /* rows, one per answer */
    uint32_t label;   /* the right one */
} eval_item;

typedef struct eval_items {
    eval_kind kind;
    uint16_t *tokens;
    eval_row *rows;
    eval_item *items;
    size_t token_count, row_count, count;
    size_t token_room, row_room, room;
    size_t cut;       /* rows that were too long, whose context was cut at its beginning */
    uint32_t longest; /* row, in tokens */
} eval_items;

/* Read all lines of the file, which must be of one kind. A row is a context (an end-of-text id if
 * it is empty), then a space and an answer; it keeps its last `positions` + 1 tokens. SGT_EFORMAT
 * names file and line. */
int eval_items_read(eval_items *s, const char *path, uint32_t positions, const sgt_vocab *v,
                    sgt_error *err);
void eval_items_free(eval_items *s);

/* ---- questions.c, set.c: one evaluation each ---- */

/* Accuracy on the questions of a file. */
int eval_questions(eval *e, const char *path, sgt_error *err);
/* Loss, perplexity and bits per byte of a folder of shards, or of one shard. */
int eval_set(eval *e, const char *path, sgt_error *err);

#endif
