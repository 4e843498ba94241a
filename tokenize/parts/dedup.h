/* dedup.h: find duplicate documents. A document is a duplicate if an earlier document of the input,
 * in either split, has text of the same length and XXH3-128. The first one is kept.
 *
 * While a part is made, a record of each of its documents is written to the part's documents.sgt
 * (record.h). When all parts are complete, one rank reads all records in the order of the input,
 * and writes WORK/sorting/left-out, with one bit per document. The other ranks wait for it.
 *
 *     if (rank == 0) rc = sgt_dedup_find(&r, &err);
 *     if (!rc && (rc = ranks->barrier(ranks, &err)) == 0) rc = sgt_dedup_open(&d, &r, &err);
 *
 * Duplicates are found with a hash table. If the table cannot hold all documents, the records are
 * read several times: each pass fills the table with the next documents, and finds their duplicates
 * among all later ones. Memory: one bit per document in each rank; in the rank that searches, also
 * 32 to 64 bytes per document of a pass. */
#ifndef SGT_DEDUP_H
#define SGT_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/out/made.h"

typedef struct sgt_dedup sgt_dedup;

typedef struct sgt_dedup_request {
    sgt_made *set; /* the parts' sets, in the order of the input */
    const char *work;
    uint64_t memory; /* bytes that the hash table may take; with fewer, more passes are needed */
    const sgt_stop *stop;
} sgt_dedup_request;

/* Find the duplicates and write WORK/sorting/left-out. */
int sgt_dedup_find(const sgt_dedup_request *r, sgt_error *err);

/* Open WORK/sorting/left-out, which one rank has written for the same parts. */
int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err);
void sgt_dedup_close(sgt_dedup *d); /* NULL is allowed */
/* Return whether document `number` of a split is a duplicate. */
int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number);
uint64_t sgt_dedup_count(const sgt_dedup *d);
/* number of tokens in a split's duplicates */
uint64_t sgt_dedup_left_out(const sgt_dedup *d, int split);

#endif
