/* dedup.h: find duplicate documents: those with the length and the XXH3-128 of the text of an
 * earlier document of the input, in either split. The first one stays.
 *
 * While a part is made, each of its documents leaves a record in the part's documents.sgt
 * (record.h). When all parts are complete, ranks that meet divide the work (meet.h), through
 * files in WORK/sorting/duplicates:
 *
 * 1. Each rank scatters the records of its parts over bucket files, by their hashes: from-RANK/.
 * 2. Each rank reads some of the buckets, from all ranks, one after the other. It sorts them and
 *    lists the duplicates, in a file for each rank that has their parts: found-RANK/.
 * 3. Each rank marks the duplicates of its parts: one bit per document, in left-out-RANK.
 *
 * Memory of a rank: one bit per document of one rank's parts, and 56 bytes per document of one
 * bucket. A bucket has at most 32 MiB (more above 800 million documents: there, with at most
 * SGT_SHARE_MOST ranks, all ranks together need 14 bytes per document). */
#ifndef SGT_DEDUP_H
#define SGT_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/parts/made.h"
#include "tokenize/parts/meet.h"

typedef struct sgt_dedup sgt_dedup;

typedef struct sgt_dedup_request {
    sgt_made *const *parts; /* in input order; they must outlive the sgt_dedup */
    size_t count;
    const char *work;
    sgt_share share;
    const sgt_stop *stop;
} sgt_dedup_request;

/* Find the duplicates. All ranks that meet must call this, with the same parts. */
int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err);
void sgt_dedup_close(sgt_dedup *d); /* NULL is allowed */
/* Return 1 if document `number` of a split is a duplicate, counted over all parts in input order; 0
 * if not; or a negative SGT_E*. One thread at a time. Numbers that come in order are fast. */
int sgt_dedup_is_duplicate(sgt_dedup *d, int split, uint64_t number, sgt_error *err);
uint64_t sgt_dedup_count(const sgt_dedup *d);
/* Return the number of tokens of a part's duplicates. */
uint64_t sgt_dedup_left_out(const sgt_dedup *d, size_t part, int split);

#endif
