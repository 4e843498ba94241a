/* order.h: deliver the documents of one split, from all parts, in the order of the output.
 *
 *     sgt_order *o;
 *     sgt_order_request r = {.parts = parts, .count = n, .split = 0};
 *     if (sgt_order_scatter(&r, &err) < 0) ...; // if it is shuffled
 *     if (sgt_order_open(&o, &r, &err) < 0) ...;
 *     while ((rc = sgt_order_next(o, &tokens, &err)) == 0)
 *         for (at = 0; at < tokens; at += n) sgt_order_ids(o, at, n = ..., &ids, &err);
 *     sgt_order_close(o);
 *
 * The order is that of the input, part after part, or shuffled (shuffle.h, gather.h). Duplicates
 * are left out (dedup.h). Only one thread at a time may use an order. */
#ifndef SGT_ORDER_H
#define SGT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "tokenize/parts/advance.h"
#include "loader/base/error.h"
#include "tokenize/parts/dedup.h"
#include "tokenize/parts/made.h"
#include "tokenize/parts/share.h"

typedef struct sgt_order_request {
    sgt_made *const *parts; /* in the order of the input; only one order at a time may use them */
    size_t count;
    int split;
    /* tells which documents are duplicates, which are left out; NULL: keep all */
    sgt_dedup *dedup;
    int shuffle;
    uint64_t seed;
    const char *work; /* folder for shuffled documents */
    int force;        /* 1: scatter again, ignoring the result of an earlier run */
    sgt_share share;  /* which of the documents this rank scatters */
    /* largest bucket of shuffled documents, in bytes, that is loaded into memory; 0: 96 MiB, and
     * documents may be read from the parts (gather.h) */
    uint64_t memory;
    const sgt_stop *stop;
    sgt_advance advance; /* progress of shuffling */
} sgt_order_request;

typedef struct sgt_order sgt_order;

/* Return 1 if sgt_order_scatter copies the documents into buckets (shuffle.h); 0 if they are read
 * from the parts; or a negative SGT_E*. */
int sgt_order_copies(const sgt_order_request *r, sgt_error *err);

/* Prepare an order that is shuffled: scatter our share of the documents, if they are copied. After
 * this, and a barrier of all ranks, each rank can open the order. */
int sgt_order_scatter(const sgt_order_request *r, sgt_error *err);

/* Open an order. */
int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err);
void sgt_order_close(sgt_order *o); /* NULL is allowed */

uint64_t sgt_order_tokens(const sgt_order *o); /* tokens of all documents */
int sgt_order_copied(const sgt_order *o);      /* whether they were copied into buckets */

/* Go to the next document and set *tokens to its length. Return 0; 1 if there is no next one; or a
 * negative SGT_E*. */
int sgt_order_next(sgt_order *o, uint64_t *tokens, sgt_error *err);
/* Return the current document's index among all documents of its split, in the order of the input,
 * duplicates included. Must not be called for a shuffled order. */
uint64_t sgt_order_number(const sgt_order *o);
/* Go to the document that holds token `at` of the whole order (which must exist), as sgt_order_next
 * does. Set *skip to the number of the document's tokens before that token. */
int sgt_order_seek(sgt_order *o, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err);
/* Set *ids to n tokens (at most SGT_MADE_WINDOW) of the current document, from its token `at` on.
 * *ids is valid until the next call. */
int sgt_order_ids(sgt_order *o, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err);

#endif
