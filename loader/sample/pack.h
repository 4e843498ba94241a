/* pack.h: the sampling `packed`: each row begins with a document and is filled with further
 * documents, chosen by best fit. If no document fits into the rest of a row, a document is cropped;
 * no row is padded. A plan is made once, from the lengths of the documents. From the plan, any row
 * of any epoch can be computed directly, as in sampler.h.
 *
 *     sgt_pack p;
 *     if (sgt_pack_init(&p, T, &documents, "out", &err) < 0) ...;
 *     p.seed = seed;
 *     n = sgt_pack_row(&p, NULL, row, pieces, T + 1);     // the row's documents, in order
 *     sgt_pack_free(&p);
 *
 * The following definition must never change silently, because a resumed run depends on it.
 * tests/loader/test_pack.c compares this implementation with a slow one. draw, below and permute
 * are defined in sampler.h.
 *
 * A row has C = T+1 tokens: T inputs, and their T targets, which are the same tokens shifted by
 * one. The size of a document is its number of tokens, including the end-of-text id, but at most C.
 * The sum of the sizes of all documents is at least C.
 *
 * The pattern determines the sizes of the documents in each row; it is the same in every epoch.
 * Rows are made one after another, from all documents. A row repeatedly takes the largest remaining
 * document that fits into its free tokens. If none fits, the row takes the smallest remaining
 * document and crops it: as many of its tokens as fit are kept, and the rest is dropped. As a
 * result, each row is full and begins with its largest document. (nanochat uses the same rule, but
 * considers only the next 1,000 documents.) If no documents remain before a row is full, that row
 * is unfinished. In this case, the documents of the last full row, followed by those of the
 * unfinished row, form the remainder. Otherwise there is no remainder. F is the number of full
 * rows, not counting the row in the remainder.
 *
 * The m documents of a size s are numbered in the order of the set. Where the pattern has its j-th
 * document of that size, epoch e has document number permute(draw(SIZE, e, s), m, j). As a result,
 * a row gets different documents in each epoch.
 *
 * Epoch e begins with the F rows of the pattern in random order: row i is row permute(draw(PATTERN,
 * e, 0), F, i) of the pattern. These rows are followed by rows made from remainders. For this, the
 * remainders of epochs 0, 1, 2, ... are concatenated to one list of documents. Each row takes
 * documents from this list, in order, until it is full, and crops the last of them. A row belongs
 * to the epoch of its first document. Therefore, the last row of an epoch may end with documents of
 * the next epoch, which do not appear again in the rows of that epoch.
 *
 * So the beginning of each document is in exactly one row for each epoch. The number of rows in an
 * epoch depends on how many tokens of its remainder are in the last row of the previous epoch. This
 * number is below C, so one of its values occurs a second time after at most C epochs, and
 * everything repeats from there. Therefore, the epoch of a row can be found without computing all
 * epochs before it.
 *
 * Memory: 8 bytes for each document, 8 bytes for each possible size, and for the pattern some
 * dozens of bytes for each size that occurs. While the plan is made, it takes 12 more bytes for
 * each possible size, and 8 T bytes. */
#ifndef SGT_PACK_H
#define SGT_PACK_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/sample/sampler.h"

/* The documents of a set, which are numbered first ... first + count - 1. at(ctx, n, ...) sets
 * *tokens to the length of document n, which is at least 1, and *place to a number that identifies
 * the document, which the caller chooses. sgt_pack_init calls `at` twice for each document, each
 * time in ascending order of n. */
typedef struct sgt_pack_source {
    uint64_t count;
    void (*at)(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens);
    void *ctx;
    uint64_t first;
} sgt_pack_source;

/* A document in a row. place: number that identifies the document (see sgt_pack_source); tokens:
 * number of its tokens in the row, counted from its first token. */
typedef struct sgt_pack_piece {
    uint64_t place;
    uint32_t tokens;
} sgt_pack_piece;

/* A run: consecutive rows of the pattern whose documents have the same sizes. row: index in the
 * pattern of the first row of the run; item: index in `items` of the first item of the run. Its
 * other items follow, up to the first item of the next run. */
typedef struct sgt_pack_run {
    uint64_t row, item;
} sgt_pack_run;

/* An item of a run: each row of the run has `count` documents of size `size`. The documents of this
 * size are numbered in the order in which the pattern takes them. Row k of the run has those with
 * numbers before + k * count ... before + (k + 1) * count - 1. */
typedef struct sgt_pack_item {
    uint64_t before;
    uint32_t size, count;
} sgt_pack_item;

/* An epoch. rows: number of rows in all earlier epochs; open: number of tokens at the beginning of
 * this epoch's remainder that are already in the last row of the previous epoch. */
typedef struct sgt_pack_epoch {
    uint64_t rows;
    uint32_t open;
} sgt_pack_epoch;

typedef struct sgt_pack {
    uint64_t seed;
    uint32_t width;  /* C */
    uint32_t most;   /* largest size */
    uint64_t count;  /* number of documents */
    uint64_t tokens; /* number of tokens in all documents, before cropping */
    /* number of tokens of the set that are in the rows of the first epoch; the other tokens of the
     * set are cropped */
    uint64_t kept;
    /* array of width + 2 elements: element s is the index in `places` of the first document of size
     * s */
    uint64_t *first;
    uint64_t *places;
    uint64_t rows; /* F */
    sgt_pack_run *runs;
    sgt_pack_item *items;
    uint64_t run_count, item_count;
    /* array of rest_count elements: for each document of the remainder (defined above), its number
     * among all documents of its size, which are numbered in the order in which the pattern takes
     * them (see sgt_pack_item) */
    uint64_t *rest;
    /* array of rest_count + 1 elements: element i is the sum of the sizes of documents 0 ... i-1 of
     * the remainder */
    uint64_t *rest_before;
    uint64_t rest_count;
    /* array of epochs 0 ... epoch_count. The last epoch of the array has the same `open` as the
     * earlier epoch with index `again`. Therefore, the rows from epoch epoch_count on have the same
     * document sizes as those from epoch `again` on */
    sgt_pack_epoch *epochs;
    uint64_t epoch_count, again;
} sgt_pack;

/* Make the plan of a set. Returns SGT_EFORMAT if all documents together do not fill one row. Error
 * messages begin with `name`, the name of the set. */
int sgt_pack_init(sgt_pack *p, uint32_t seq, const sgt_pack_source *from, const char *name,
                  sgt_error *err);
void sgt_pack_free(sgt_pack *p);

/* Return the number of rows in the first epoch. Later epochs may have one row more or less. */
uint64_t sgt_pack_epoch_rows(const sgt_pack *p);

/* A cache of permutations, so that they are not computed again for every document. Each thread has
 * its own array of SGT_PACK_KEPT elements, which must be zeroed before its first use. The
 * permutation for size s is kept in element s mod SGT_PACK_KEPT, where it replaces the permutation
 * for any other size. */
#define SGT_PACK_KEPT 1024u
typedef struct sgt_pack_memo {
    const sgt_pack *of; /* plan to which the permutation belongs; NULL: the element is empty */
    uint64_t epoch;
    uint32_t size;
    sgt_permutation order;
} sgt_pack_memo;

/* Store the documents of row `row` of the run in `pieces`, which has room for `room` elements, and
 * return their number. If `room` is T+1, all documents of the row fit; otherwise the rest is left
 * out. `memo` may be NULL. */
uint32_t sgt_pack_row(const sgt_pack *p, sgt_pack_memo *memo, uint64_t row, sgt_pack_piece *pieces,
                      uint32_t room);

#endif
