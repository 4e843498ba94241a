/* order.h: the documents of one split, from all parts, in the order of the output.
 *
 *     sgt_order *o;
 *     if (sgt_order_open(&o, &(sgt_order_request){.parts = parts, .count = n, .split = 0}, &err) < 0) ...;
 *     while ((rc = sgt_order_next(o, &tokens, &err)) == 0)
 *         for (at = 0; at < tokens; at += n) sgt_order_ids(o, at, n = ..., &ids, &err);
 *     sgt_order_close(o);
 *
 * The order is that of the input, part after part, or a shuffled one (shuffle.h); duplicates are
 * left out (dedup.h). One thread at a time. */
#ifndef SGT_ORDER_H
#define SGT_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "advance.h"
#include "base/error.h"
#include "dedup.h"
#include "made.h"

typedef struct sgt_order_request {
    sgt_made *const *parts; /* in the order of the input; no two orders use them at once */
    size_t count;
    int split;
    const sgt_dedup *dedup; /* which documents are duplicates; NULL: nobody has asked */
    int shuffle;
    uint64_t seed;
    const char *work; /* the folder for what is shuffled */
    int force;        /* what an earlier run has shuffled is not believed */
    /* a file of what is shuffled is taken into memory up to so many bytes; 0: 96 MiB */
    uint64_t memory;
    const sgt_stop *stop;
    sgt_advance advance; /* of what is shuffled */
} sgt_order_request;

typedef struct sgt_order sgt_order;

/* Where documents are to be shuffled, they have been when this returns. */
int sgt_order_open(sgt_order **out, const sgt_order_request *r, sgt_error *err);
void sgt_order_close(sgt_order *o); /* NULL is fine */

uint64_t sgt_order_tokens(const sgt_order *o); /* of all documents */

/* The next document. 0; 1: there is none; or a negative SGT_E*. */
int sgt_order_next(sgt_order *o, uint64_t *tokens, sgt_error *err);
/* Its number in the input, of those of the split and with duplicates counted; not of a shuffled
 * order. */
uint64_t sgt_order_number(const sgt_order *o);
/* The document that holds token `at` of them all (there is one), as sgt_order_next gives it; *skip
 * of its tokens lie before that one. */
int sgt_order_seek(sgt_order *o, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err);
/* n tokens (at most SGT_MADE_WINDOW) of that document from its token `at` on; *ids is valid until
 * the next call. */
int sgt_order_ids(sgt_order *o, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err);

#endif
