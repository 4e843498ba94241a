/* dedup.h: find duplicate documents: those with the length and the XXH3-128 of the text of an
 * earlier document of the input, in either split. The first one stays.
 *
 * While a part is made, each of its documents leaves a record in the part's documents.sgt
 * (record.h). When all parts are complete, one rank reads all records in the order of the input, and
 * writes WORK/sorting/left-out: one bit per document. The other ranks wait for it.
 *
 *     if (rank == 0) rc = sgt_dedup_find(&r, &err);
 *     if (!rc && (rc = ranks->barrier(ranks, &err)) == 0) rc = sgt_dedup_open(&d, &r, &err);
 *
 * Documents are found in a hash table. If the table cannot hold all of them, the records are read
 * several times: each pass fills the table with documents that follow those of the pass before, and
 * finds their duplicates among all later ones. Memory: one bit per document in each rank, and 32 to
 * 64 bytes per document of a pass in one. */
#ifndef SGT_DEDUP_H
#define SGT_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/out/made.h"

typedef struct sgt_dedup sgt_dedup;

typedef struct sgt_dedup_request {
    sgt_made *set; /* the parts, in the order of the input */
    const char *work;
    uint64_t memory; /* bytes that the hash table may take; too few only take more passes */
    const sgt_stop *stop;
} sgt_dedup_request;

/* Find the duplicates and write WORK/sorting/left-out. */
int sgt_dedup_find(const sgt_dedup_request *r, sgt_error *err);

/* Open WORK/sorting/left-out, which a rank has written for the same parts. */
int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err);
void sgt_dedup_close(sgt_dedup *d); /* NULL is allowed */
/* Return whether document `number` of a split is a duplicate. */
int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number);
uint64_t sgt_dedup_count(const sgt_dedup *d);
uint64_t sgt_dedup_left_out(const sgt_dedup *d, int split); /* tokens of a split's duplicates */

#endif
