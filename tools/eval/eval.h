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

/* Options and objects that every evaluation needs. */
typedef struct eval {
    const char *device; /* "cpu" or "cuda" */
    sgt_precision precision;
    uint64_t batch, seq; /* batch: rows at a time; seq: tokens per window of a set */
    int threads, quiet;
    const char *split; /* split of a set, such as "val" */
    sample_model model;
    sgt_notice notice;
    const sgt_stop *stop;
    int shown;       /* number of tables printed so far */
    json_t *results; /* array to which each evaluation appends an object; NULL: it prints a table */
} eval;

/* ---- batch.c ---- */

/* The model, opened, and one batch of rows for it. */
typedef struct eval_batch {
    sgt_backend *b;
    size_t rows, seq; /* B and T */
    uint16_t *tokens; /* (B, T + 1) */
    int32_t *targets; /* (B, T); a negative target has no loss */
    float *losses;    /* (B, T): losses of the targets, from eval_batch_run */
    /* (B, T), from eval_batch_run: 1 if no token is likelier than the target */
    uint8_t *greedy;
} eval_batch;

/* Open the model for batches of `rows` rows of `seq` tokens. Call eval_batch_close even after a
 * failure. */
int eval_batch_open(eval_batch *x, const eval *e, uint64_t rows, uint64_t seq, sgt_error *err);
int eval_batch_run(eval_batch *x, const eval *e, const char *name, int greedy, sgt_error *err);
void eval_batch_close(eval_batch *x);

/* Begin a table, whose title is the name of the file or set. Before the first table, print a line
 * about the model. */
void eval_show_name(eval *e, const char *name);

/* ---- items.c ---- */

typedef enum eval_kind {
    EVAL_NONE,
    EVAL_CHOICE, /* {"ctx", "endings", "label"}: which ending is the likeliest? */
    EVAL_WORD    /* {"text"}: what is its last word? */
} eval_kind;

/* A row: a context and one answer to it, and the model's results for the answer. */
typedef struct eval_row {
    uint64_t start; /* index of the row's first token in eval_items.tokens */
    /* count: tokens of the row; asked: tokens of the answer, which are the last ones */
    uint32_t count, asked;
    double loss; /* sum of the losses of the answer's tokens */
    int greedy;  /* 1: greedy decoding gives this answer */
} eval_row;

typedef struct eval_item {
    /* line: number of the question's line in the file, from 1; row: index of its first row */
    size_t line, row;
    uint32_t choices; /* number of answers, each of which is a row */
    uint32_t label;   /* index of the right answer */
} eval_item;

typedef struct eval_items {
    eval_kind kind;
    uint16_t *tokens;
    eval_row *rows;
    eval_item *items;
    size_t token_count, row_count, count;
    size_t token_room, row_room, room;
    /* number of rows that were too long, so that the beginning of their context was cut off */
    size_t cut;
    uint32_t longest; /* tokens of the longest row */
} eval_items;

/* Read all lines of the file, which must be of one kind. A row is a context (the end-of-text id, if
 * it is empty), then a space and an answer; only its last `positions` + 1 tokens are kept. Returns
 * SGT_EFORMAT, with file and line, if a line is wrong. */
int eval_items_read(eval_items *s, const char *path, uint32_t positions, const sgt_vocab *v,
                    sgt_error *err);
void eval_items_free(eval_items *s);

/* ---- questions.c, set.c: one evaluation each ---- */

/* Compute and print the accuracy on the questions in a file. */
int eval_questions(eval *e, const char *path, sgt_error *err);
/* Compute and print loss, perplexity and bits per byte of a folder of shards, or of one shard. */
int eval_set(eval *e, const char *path, sgt_error *err);

#endif
