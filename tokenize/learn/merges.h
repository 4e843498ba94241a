/* merges.h: trains a byte-level BPE's merges on counted pieces, to the same result as Hugging
 * Face's BpeTrainer:
 *
 *     the pair of neighbouring tokens that is met most often in all pieces is merged wherever it stands, from the left;
 *     of pairs met equally often that of the lower left id, then of the lower right one; and so on, until there are
 *     `size` tokens, or no pair is left.
 *
 * Ids are as that trainer gives them: 0 the end of text, 1-256 the bytes in GPT-2's order (which is
 * that of their characters' code points), 257 + n what merge n makes. Counts are of 64 bits. The
 * result does not depend on the order of the pieces. */
#ifndef SGT_MERGES_H
#define SGT_MERGES_H

#include "pieces.h"

#define SGT_MERGES_FIRST 257u

typedef struct sgt_merges {
    uint16_t (*pairs)[2]; /* (count) */
    uint32_t count;
} sgt_merges;

/* Memory: for each byte of the distinct pieces at most 2 for its token, 4 for the pair it begins,
 * and 16 for those that merges make of it; and 32 a distinct pair. m->pairs is malloc'd, the
 * caller's to free. */
int sgt_merges_train(sgt_merges *m, const sgt_pieces *p, uint32_t size, const sgt_stop *stop,
                     sgt_error *err);

#endif
