/* digests.h: the file documents.sgt of a part, a record a document in the order of the input,
 * appended as it ends: what dedup.h tells duplicates by. */
#ifndef SGT_DIGESTS_H
#define SGT_DIGESTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SGT_DEDUP_FILE "documents.sgt"
#define SGT_DEDUP_VAL ((uint64_t)1 << 63) /* in length: the document is the val split's */

typedef struct sgt_dedup_record {
    uint64_t hash[2]; /* XXH3-128 of the text, low half first */
    uint64_t length;  /* bytes of it */
} sgt_dedup_record;

typedef struct sgt_digests sgt_digests;

/* Goes on in WORK/documents.sgt after `count` records; what lies behind them is cut off. */
int sgt_digests_open(sgt_digests **out, const char *work, uint64_t count, sgt_error *err);
void sgt_digests_close(sgt_digests *d); /* NULL is fine */
/* The next text of a document; first and last: of its texts. */
int sgt_digests_add(sgt_digests *d, const void *text, size_t n, int first, int last, int split,
                    sgt_error *err);
int sgt_digests_sync(sgt_digests *d, sgt_error *err); /* all whole records are on disk */

#endif
