/* pack.h: sampling `packed`: rows that begin with a document and hold further documents behind it,
 * chosen by best fit. Documents that do not fit are cropped, and no row is padded. Like sampler.h
 * it is arithmetic: a plan is made once, from the lengths of the documents, and then gives any row
 * of any epoch at once.
 *
 *     sgt_pack p;
 *     if (sgt_pack_init(&p, T, &documents, "out", &err) < 0) ...;
 *     p.seed = seed;
 *     n = sgt_pack_row(&p, NULL, row, pieces, T + 1);     // the row's documents, in order
 *     sgt_pack_free(&p);
 *
 * The definition. Like sampler.h's it may never change silently; tests/loader/test_pack.c compares
 * it with a slow one. draw, below and permute are those of sampler.h.
 *
 * A row has C = T+1 tokens: T inputs, and their T targets, which are the same tokens one place
 * further on. The size of a document is its number of tokens, its end-of-text id included, but at
 * most C. The sizes of all documents add up to at least C.
 *
 * The pattern says which sizes a row holds; it is the same in every epoch. Rows are made one after
 * the other from all documents. A row takes the largest document left that fits into its free
 * tokens, again and again. If none fits, it takes the smallest document left, of which it keeps as
 * many tokens as are free, and the rest is dropped. So a row is full and begins with its largest
 * document. (nanochat fits by this rule, among the next 1,000 documents.) If the documents end
 * within a row, that row is unfinished. Then its documents are the remainder, behind those of the
 * last full row, which joins it; otherwise there is no remainder. F is the number of full rows that
 * are not in the remainder.
 *
 * The documents of one size are numbered in the order of the set. In epoch e, the j-th of m
 * documents of size s that the pattern takes is number permute(draw(SIZE, e, s), m, j).
 *
 * Epoch e begins with F rows: row i is row permute(draw(PATTERN, e, 0), F, i) of the pattern. Rows
 * of the remainders follow. The remainders of epochs 0, 1, 2, ... are one list of documents; a row
 * takes documents from it in order until it is full and keeps of the last one what fits. A row
 * belongs to the epoch of its first document. The last row of an epoch may so take documents from
 * the next epoch, which then are in no other row of that epoch.
 *
 * Each document so begins in one row for each epoch. The number of rows of an epoch depends on how
 * many documents the epoch before has taken. It comes round again after at most C epochs, so that
 * the epoch of a row is found without making the epochs before it.
 *
 * Memory: 8 bytes a document, and what depends on the sizes alone: 8 bytes for each size that there
 * could be and, for the pattern, some dozens for each that there is. While the plan is made, 12
 * more for each size that there could be, and 8 T. */
#ifndef SGT_PACK_H
#define SGT_PACK_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/sample/sampler.h"

/* The documents of a set, numbered from `first`. `at` is called for all of them in order, twice: it
 * sets the place of document n, any number that finds it again, and its tokens, at least 1. */
typedef struct sgt_pack_source {
    uint64_t count;
    void (*at)(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens);
    void *ctx;
    uint64_t first;
} sgt_pack_source;

/* A document in a row: its first `tokens` tokens are kept. */
typedef struct sgt_pack_piece {
    uint64_t place;
    uint32_t tokens;
} sgt_pack_piece;

/* Equal rows of the pattern: their items are those from `item` to the next run's. */
typedef struct sgt_pack_run {
    uint64_t row, item;
} sgt_pack_run;

/* In row k of a run: `count` documents of one size, the (before + k * count)-th and following. */
typedef struct sgt_pack_item {
    uint64_t before;
    uint32_t size, count;
} sgt_pack_item;

/* An epoch: the rows of the epochs before it, and how many tokens of the last row of these are not
 * taken from them (0: it is full). */
typedef struct sgt_pack_epoch {
    uint64_t rows;
    uint32_t open;
} sgt_pack_epoch;

typedef struct sgt_pack {
    uint64_t seed;
    uint32_t width;  /* C */
    uint32_t most;   /* largest size */
    uint64_t count;  /* documents */
    uint64_t tokens; /* of all documents, uncut */
    uint64_t kept;   /* of those, the ones that an epoch's rows keep: the first epoch's */
    uint64_t *first; /* (width + 2): first place of each size in places */
    uint64_t *places;
    uint64_t rows; /* F */
    sgt_pack_run *runs;
    sgt_pack_item *items;
    uint64_t run_count, item_count;
    uint64_t *rest;        /* (rest_count): the remainder's documents: the rest[i]-th of its size */
    uint64_t *rest_before; /* (rest_count + 1): sizes of the documents before each */
    uint64_t rest_count;
    /* (epoch_count + 1): the epochs until one begins like epoch number `again`, and that one */
    sgt_pack_epoch *epochs;
    uint64_t epoch_count, again;
} sgt_pack;

/* Make the plan. SGT_EFORMAT, which names the set, if the documents do not fill a row. */
int sgt_pack_init(sgt_pack *p, uint32_t seq, const sgt_pack_source *from, const char *name,
                  sgt_error *err);
void sgt_pack_free(sgt_pack *p);

/* Return the number of rows of the first epoch. Later ones may have one more or less. */
uint64_t sgt_pack_epoch_rows(const sgt_pack *p);

/* A permutation that rows of an epoch share. A thread keeps SGT_PACK_KEPT of them, zeroed at first,
 * so that they are not made for every document; each is used for all sizes that fall on its place. */
#define SGT_PACK_KEPT 1024u
typedef struct sgt_pack_memo {
    const sgt_pack *of; /* NULL: none */
    uint64_t epoch;
    uint32_t size;
    sgt_permutation order;
} sgt_pack_memo;

/* Set the first `room` pieces of row `row`. Returns how many were set: all of the row's if room is
 * T+1. memo may be NULL. */
uint32_t sgt_pack_row(const sgt_pack *p, sgt_pack_memo *memo, uint64_t row, sgt_pack_piece *pieces,
                      uint32_t room);

#endif
