/* digests.h: the file documents.sgt of a part: one record per document, in the order of the input,
 * appended when the document ends. dedup.h finds duplicates by these records. */
#ifndef SGT_DIGESTS_H
#define SGT_DIGESTS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_DEDUP_FILE "documents.sgt"
#define SGT_DEDUP_VAL ((uint64_t)1 << 63) /* flag in `length`: the document is in the val split */

typedef struct sgt_dedup_record {
    uint64_t hash[2]; /* XXH3-128 of the text, low half first */
    uint64_t length;  /* bytes of the text, with the flag SGT_DEDUP_VAL in the val split */
} sgt_dedup_record;

typedef struct sgt_digests sgt_digests;

/* Open WORK/documents.sgt to append after `count` records; any later records are cut off. */
int sgt_digests_open(sgt_digests **out, const char *work, uint64_t count, sgt_error *err);
void sgt_digests_close(sgt_digests *d); /* NULL is allowed */
/* Add the next piece of a document's text; first, last: it is the document's first or last
 * piece. */
int sgt_digests_add(sgt_digests *d, const void *text, size_t n, int first, int last, int split,
                    sgt_error *err);
int sgt_digests_sync(sgt_digests *d, sgt_error *err); /* flush all complete records to disk */

#endif
