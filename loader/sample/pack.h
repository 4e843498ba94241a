/* pack.h: sampling `packed`: rows that begin with a document and are filled with further documents,
 * chosen by best fit. Documents that do not fit are cropped, and no row is padded. A plan is made
 * once, from the lengths of the documents. After that any row of any epoch is computed directly, as
 * in sampler.h.
 *
 *     sgt_pack p;
 *     if (sgt_pack_init(&p, T, &documents, "out", &err) < 0) ...;
 *     p.seed = seed;
 *     n = sgt_pack_row(&p, NULL, row, pieces, T + 1);     // the row's documents, in order
 *     sgt_pack_free(&p);
 *
 * The following definition must never change silently, because a resumed run depends on it.
 * tests/loader/test_pack.c compares this implementation with a slow one. draw, below and permute
 * are those of sampler.h.
 *
 * A row has C = T+1 tokens: T inputs, and their T targets, which are the same tokens shifted by
 * one. The size of a document is its number of tokens, including its end-of-text id, but at most C.
 * The sizes of all documents add up to at least C.
 *
 * The pattern determines which sizes the documents in each row have; it is the same in every epoch.
 * Rows are made one after another, from all documents. A row repeatedly takes the largest document
 * left that fits into its free tokens. If none fits, it takes the smallest document left and crops
 * it: as many of its tokens as fit are kept, and the rest is dropped. So a row is full and begins
 * with its largest document. (nanochat fits by this rule, but only among the next 1,000 documents.)
 * If the documents run out before a row is full, that row is unfinished. In this case, the
 * documents of the last full row, followed by those of the unfinished row, form the remainder.
 * Otherwise there is no remainder. F is the number of full rows, without the one in the remainder.
 *
 * The m documents of a size s are numbered in the order of the set. In place of the pattern's j-th
 * document of that size, epoch e takes number permute(draw(SIZE, e, s), m, j). So a row gets
 * different documents in each epoch.
 *
 * Epoch e begins with the F rows of the pattern in random order: row i is row permute(draw(PATTERN,
 * e, 0), F, i) of the pattern. After them come rows made from remainders. The remainders of epochs
 * 0, 1, 2, ... are joined to one list of documents. Each of these rows takes documents from the
 * list in order until it is full, and crops the last one. A row belongs to the epoch of its first
 * document. So the last row of an epoch may end with documents of the next epoch, which are then in
 * no other row of the next epoch.
 *
 * So the beginning of each document is in exactly one row for each epoch. The number of rows in an
 * epoch depends on how many tokens of its remainder the last row of the previous epoch has taken.
 * That number is below C, so it occurs again after at most C epochs, and everything repeats from
 * there. Therefore the epoch of a row is found without computing the epochs before it.
 *
 * Memory: 8 bytes for each document, 8 bytes for each possible size, and for the pattern, some
 * dozens of bytes for each size that occurs. While the plan is made, 12 more bytes for each
 * possible size, and 8 T bytes. */
#ifndef SGT_PACK_H
#define SGT_PACK_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/sample/sampler.h"

/* The documents of a set, numbered first ... first + count - 1. at(ctx, n, ...) sets *tokens to the
 * length of document n, at least 1. It sets *place to a number of the caller's choice that
 * identifies the document. sgt_pack_init calls `at` twice for each document, in ascending order. */
typedef struct sgt_pack_source {
    uint64_t count;
    void (*at)(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens);
    void *ctx;
    uint64_t first;
} sgt_pack_source;

/* A document in a row. place: the document's identifier (see sgt_pack_source); tokens: how many of
 * its tokens, from the first on, are in the row. */
typedef struct sgt_pack_piece {
    uint64_t place;
    uint32_t tokens;
} sgt_pack_piece;

/* A run: consecutive rows of the pattern that have the same document sizes. row: index of the run's
 * first row in the pattern; item: index in `items` of the run's first item. The items of the next
 * run follow. */
typedef struct sgt_pack_run {
    uint64_t row, item;
} sgt_pack_run;

/* An item of a run of equal rows: `count` documents of size `size` in each row. All documents of
 * this size are numbered in the order in which the pattern takes them. Row k of the run takes those
 * with numbers before + k * count ... before + (k + 1) * count - 1. */
typedef struct sgt_pack_item {
    uint64_t before;
    uint32_t size, count;
} sgt_pack_item;

/* An epoch. rows: number of rows in all earlier epochs; open: number of tokens of this epoch's
 * remainder that the previous epoch's last row already contains. */
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
    /* number of the set's tokens that are in the rows of the first epoch; its other tokens are
     * cropped */
    uint64_t kept;
    /* array (width + 2), indexed by size: index in `places` of the first document of that size */
    uint64_t *first;
    uint64_t *places;
    uint64_t rows; /* F */
    sgt_pack_run *runs;
    sgt_pack_item *items;
    uint64_t run_count, item_count;
    /* array (rest_count): for each document of the remainder (defined above), its number among all
     * documents of its size. They are numbered in the order in which the pattern takes them (see
     * sgt_pack_item) */
    uint64_t *rest;
    /* array (rest_count + 1): prefix sums of the remainder's document sizes. Element i is the sum
     * of the sizes of documents 0 ... i-1 */
    uint64_t *rest_before;
    uint64_t rest_count;
    /* array of epochs 0 ... epoch_count. The last of these has the same `open` as the earlier epoch
     * `again`. Therefore the rows from epoch epoch_count on are the same as those from epoch
     * `again` on */
    sgt_pack_epoch *epochs;
    uint64_t epoch_count, again;
} sgt_pack;

/* Make the plan of a set. Returns SGT_EFORMAT if all documents together do not fill one row. `name`
 * is the name of the set, with which messages begin. */
int sgt_pack_init(sgt_pack *p, uint32_t seq, const sgt_pack_source *from, const char *name,
                  sgt_error *err);
void sgt_pack_free(sgt_pack *p);

/* Return the number of rows in the first epoch. Later epochs may have one row more or less. */
uint64_t sgt_pack_epoch_rows(const sgt_pack *p);

/* A cache of permutations, so that they are not computed anew for every document. Each thread has
 * its own array of SGT_PACK_KEPT elements, zeroed at first. The permutation for size s is cached in
 * element s mod SGT_PACK_KEPT, where it replaces that of any other size. */
#define SGT_PACK_KEPT 1024u
typedef struct sgt_pack_memo {
    const sgt_pack *of; /* NULL: none */
    uint64_t epoch;
    uint32_t size;
    sgt_permutation order;
} sgt_pack_memo;

/* Store the documents of row `row` of the run in `pieces`, at most `room` of them, and return their
 * number. With room T+1, all of them fit. memo may be NULL. */
uint32_t sgt_pack_row(const sgt_pack *p, sgt_pack_memo *memo, uint64_t row, sgt_pack_piece *pieces,
                      uint32_t room);

#endif
