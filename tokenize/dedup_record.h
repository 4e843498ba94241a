/* dedup_record.h: the file documents.sgt of a part, a record a document in the order of the input. */
#ifndef SGT_DEDUP_RECORD_H
#define SGT_DEDUP_RECORD_H

#include <stdint.h>

#define SGT_DEDUP_FILE "documents.sgt"
#define SGT_DEDUP_VAL ((uint64_t)1 << 63) /* in length: the document is the val split's */

typedef struct sgt_dedup_record {
    uint64_t hash[2]; /* XXH3-128 of the text, low half first */
    uint64_t length;  /* bytes of it */
} sgt_dedup_record;

#endif
