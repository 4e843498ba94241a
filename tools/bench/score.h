/* score.h: the parts of sgt-bench score: score_items.c reads questions and makes rows of tokens of their answers,
 * score.c runs a model over them. */
#ifndef SGT_TOOLS_BENCH_SCORE_H
#define SGT_TOOLS_BENCH_SCORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum score_kind {
    SCORE_NONE,
    SCORE_CHOICE, /* {"ctx", "endings", "label"}: which ending is likeliest */
    SCORE_WORD    /* {"text"}: its last word */
} score_kind;

/* A context and one answer to it, and what a model says to that. */
typedef struct score_row {
    uint64_t start;        /* in score_items.tokens */
    uint32_t count, asked; /* tokens; those of the answer, the last ones */
    double loss;           /* summed over the answer's */
    int greedy;            /* each of them is what the model would have said */
} score_row;

typedef struct score_item {
    size_t line, row; /* in the file, from 1; its first row */
    uint32_t choices; /* rows, one an answer */
    uint32_t label;   /* the right one */
} score_item;

typedef struct score_items {
    score_kind kind;
    uint16_t *tokens;
    score_row *rows;
    score_item *items;
    size_t token_count, row_count, count;
    size_t token_room, row_room, room;
    size_t cut;       /* rows whose context lost its beginning */
    uint32_t longest; /* row, in tokens */
} score_items;

/* All lines of the file, of one kind, in GPT-2's tokens: a context (an end-of-text id where it is empty), then a space
 * and an answer. A row keeps its last `positions` + 1 tokens. SGT_EFORMAT names file and line. */
int score_items_read(score_items *s, const char *path, uint32_t positions, sgt_error *err);
void score_items_free(score_items *s);

#endif
