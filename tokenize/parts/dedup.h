/* dedup.h: which documents have been there before: the same length, and the same XXH3-128 of their
 * text, as an earlier one of the input, in either split. The first one stays.
 *
 * While a part is made, each of its documents leaves a record in the file documents.sgt of the part
 * (digests.h). When all parts are whole the records are scattered over files by their hashes, and
 * file after file is sorted. In memory: a bit a document, and 40 bytes a document of one file,
 * which has at most 32 MiB (above 800 million documents more). */
#ifndef SGT_DEDUP_H
#define SGT_DEDUP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "made.h"

typedef struct sgt_dedup sgt_dedup;

typedef struct sgt_dedup_request {
    sgt_made *const *parts; /* in the order of the input */
    const char *const *paths;
    size_t count;
    const char *work;
    const sgt_stop *stop;
} sgt_dedup_request;

int sgt_dedup_open(sgt_dedup **out, const sgt_dedup_request *r, sgt_error *err);
void sgt_dedup_close(sgt_dedup *d); /* NULL is fine */
/* Document `number` of a split, of all parts' in the order of the input. */
int sgt_dedup_is_duplicate(const sgt_dedup *d, int split, uint64_t number);
uint64_t sgt_dedup_count(const sgt_dedup *d);

#endif
