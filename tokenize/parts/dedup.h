/* dedup.h: find duplicate documents: those with the length and the XXH3-128 of the text of an
 * earlier document of the input, in either split. The first one stays.
 *
 * While a part is made, each of its documents leaves a record in the part's documents.sgt
 * (digests.h). When all parts are complete, the records are scattered over files by their hashes,
 * and one file after the other is sorted. Memory: one bit per document, and 40 bytes per document
 * of one file. A file has at most 32 MiB (more above 800 million documents). */
#ifndef SGT_DEDUP_H
#define SGT_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/parts/made.h"

typedef struct sgt_dedup sgt_dedup;

typedef struct sgt_dedup_request {
    sgt_made *const *parts; /* in input order */
    const char *const *paths;
    size_t count;
    const char *work;
    const sgt_stop *stop;
} sgt_dedup_request;

int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err);
void sgt_dedup_close(sgt_dedup *d); /* NULL is allowed */
/* Return whether document `number` of a split is a duplicate, counted over all parts in input
 * order. */
int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number);
uint64_t sgt_dedup_count(const sgt_dedup *d);

#endif
