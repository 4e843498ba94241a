/* dedup.h: finds duplicate documents. A document is a duplicate if an earlier document of the
 * input, in either split, has text of the same length and with the same XXH3-128 hash. The earliest
 * copy is kept.
 *
 * While a part is written, a record of each document is written to the part's documents.sgt
 * (record.h). When all parts are complete, one rank reads all records in the order of the input,
 * and writes the file sorting/left-out in the work folder, with one bit per document. The other
 * ranks wait for this file.
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
    /* the sets of shards of all parts (one part per rank), in the order of the input */
    sgt_made *set;
    const char *work;
    /* maximum size in bytes of the hash table; if the table is too small for all records, several
     * passes are made */
    uint64_t memory;
    const sgt_stop *stop;
} sgt_dedup_request;

/* Find the duplicate documents in all parts, and write the file sorting/left-out in the folder
 * r->work. Return 0 or a negative SGT_E*. */
int sgt_dedup_find(const sgt_dedup_request *r, sgt_error *err);

/* Read the file left-out, which one rank has written for the same parts. The caller closes *out. */
int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err);
void sgt_dedup_close(sgt_dedup *d); /* NULL is allowed */
/* Return 1 if document `number` of a split is a duplicate, else 0. */
int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number);
uint64_t sgt_dedup_count(const sgt_dedup *d);
/* Return how many tokens of a split are left out because their documents are duplicates. */
uint64_t sgt_dedup_left_out(const sgt_dedup *d, int split);

#endif
