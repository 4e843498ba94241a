/* shuffle.h: put the documents of a split into a pseudo-random order that is always the same.
 *
 * Document n of a split (in input order, duplicates counted) has the key XXH3-64(n as 8 bytes,
 * little endian; seed); the order is that of (key, n). Documents are copied once into files in
 * WORK/sorting/SPLIT, by the leading bits of their keys. A file has about 64 MiB (more above 64 GiB
 * of tokens). Each file is then read in the order of the keys.
 *
 * Memory: 24 bytes per document of one file, and the file itself unless it exceeds 96 MiB; also 64
 * KiB per file while they are written. WORK/sorting/SPLIT/table appears when all files are on disk,
 * and a later run then does not write them again.
 *
 * Use these functions through order.h. The two files call each other: order.c delivers what
 * shuffle.c sorted, and shuffle.c reads the documents in input order by an sgt_order. */
#ifndef SGT_SHUFFLE_H
#define SGT_SHUFFLE_H

#include "tokenize/parts/order.h"

typedef struct sgt_shuffle sgt_shuffle;

/* Open a shuffled order. `input`: the same documents in input order, from the first on. It is read
 * to its end, unless an earlier run has done so. */
int sgt_shuffle_open(sgt_shuffle **out, const sgt_order_request *r, sgt_order *input,
                     sgt_error *err);
void sgt_shuffle_close(sgt_shuffle *s); /* NULL is allowed */
int sgt_shuffle_next(sgt_shuffle *s, uint64_t *tokens, sgt_error *err);
int sgt_shuffle_seek(sgt_shuffle *s, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err);
int sgt_shuffle_ids(sgt_shuffle *s, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err);

#endif
