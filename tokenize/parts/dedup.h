/* dedup.h: finds duplicate documents. A document is a duplicate if its text has the same length and
 * the same XXH3-128 hash as the text of an earlier document of the input, in either split. The
 * first document with a text is never a duplicate, so it is kept.
 *
 * While a rank writes its part (a set of shards), it also writes a record of each document to the
 * part's documents.sgt (record.h). When all parts are complete, one rank reads all records in the
 * order of the input, and writes the file sorting/left-out in the work folder. This file has one
 * bit per document, which is 1 for duplicates. The other ranks wait until it is complete.
 *
 *     if (rank == 0) rc = sgt_dedup_find(&r, &err);
 *     if (!rc && (rc = ranks->barrier(ranks, &err)) == 0) rc = sgt_dedup_open(&d, &r, &err);
 *
 * Duplicates are found with a hash table. If it cannot hold all documents, the records are read
 * several times: each pass fills the table with the next documents, and finds their duplicates
 * among all later documents. Memory: each rank needs one bit per document. The rank that searches
 * also needs 32 to 64 bytes for each document of a pass. */
#ifndef SGT_DEDUP_H
#define SGT_DEDUP_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/out/made.h"

typedef struct sgt_dedup sgt_dedup;

typedef struct sgt_dedup_request {
    /* all parts (the sets of shards that the ranks have written), in the order of the input */
    sgt_made *set;
    const char *work;
    /* maximum size in bytes of the hash table; if it cannot hold the records of all documents, the
     * records are read several times */
    uint64_t memory;
    const sgt_stop *stop;
} sgt_dedup_request;

/* Find the duplicates among the documents of all parts, and write the file sorting/left-out, which
 * marks them, into the folder r->work. Return 0 or a negative SGT_E*. */
int sgt_dedup_find(const sgt_dedup_request *r, sgt_error *err);

/* Read the file sorting/left-out in the folder r->work, which sgt_dedup_find has written for the
 * same parts. The caller closes *out. */
int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err);
void sgt_dedup_close(sgt_dedup *d); /* NULL is allowed */
/* Return 1 if the document with index `number` in a split is a duplicate, else 0. */
int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number);
uint64_t sgt_dedup_count(const sgt_dedup *d);
/* Return the total number of tokens in those documents of a split that are duplicates. */
uint64_t sgt_dedup_left_out(const sgt_dedup *d, int split);

#endif
