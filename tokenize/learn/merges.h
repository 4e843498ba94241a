/* merges.h: trains a byte-level BPE's merges on counted pieces. The result equals that of Hugging
 * Face's BpeTrainer:
 *
 *     Merge the most frequent pair of adjacent tokens wherever it occurs, from left to right.
 *     Of equally frequent pairs take that of the lower left id, then of the lower right id.
 *     Repeat until there are `size` tokens, or no pair is left.
 *
 * Ids are as that trainer gives them. 0 is the end of text, 1-256 are the bytes in GPT-2's order,
 * and 257 + n is the token that merge n makes. (GPT-2's order is that of the characters' code
 * points.) Counts have 64 bits. The result does not depend on the order of the pieces. */
#ifndef SGT_MERGES_H
#define SGT_MERGES_H

#include "tokenize/learn/pieces.h"

#define SGT_MERGES_FIRST 257u

typedef struct sgt_merges {
    uint16_t (*pairs)[2]; /* (count) */
    uint32_t count;
} sgt_merges;

/* Train merges until there are `size` tokens. m->pairs is malloc'd, the caller's to free. Returns 0
 * or a negative SGT_E*, SGT_ESTOPPED if `stop` was requested. Memory for each byte of the distinct
 * pieces: at most 2 bytes for its token, 4 for the pair it begins, and 16 for pairs that merges
 * make of it; and 32 for each distinct piece. */
int sgt_merges_train(sgt_merges *m, const sgt_pieces *p, uint32_t size, const sgt_stop *stop,
                     sgt_error *err);

#endif
