/* shuffle.h: put the documents of a split into a pseudo-random order that is always the same.
 *
 * Document n of a split (in input order, duplicates counted) has the key XXH3-64(n as 8 bytes,
 * little endian; seed); the order is that of (key, n). Documents are copied once into the files of
 * buckets, by the leading bits of their keys. Each rank copies its share of the documents into
 * files of its own: WORK/sorting/SPLIT, or WORK/sorting/SPLIT/RANK-of-RANKS with several ranks. A
 * bucket, which is one file of each rank, has about 64 MiB (more above 64 GiB of tokens).
 *
 * Any rank can then read the buckets in the order of the keys. It loads one bucket at a time. A
 * bucket of more than 96 MiB is first copied into smaller ones, WORK/sorting/SPLIT/apart-RANK, by
 * further bits. A document longer than that is read from its file.
 *
 * Memory of a rank: the bucket that is loaded, and 48 bytes for each of its documents, half of them
 * to sort; also 64 KiB per file while files are written. The file "table" in a rank's folder
 * appears when all its files are on disk, and a later run then does not write them again.
 *
 * The ranks of one machine need no buckets if the tokens fit in memory: gather.h.
 *
 * Use these functions through order.h. The two files call each other: order.c delivers what
 * shuffle.c sorted, and shuffle.c reads the documents in input order by an sgt_order. */
#ifndef SGT_SHUFFLE_H
#define SGT_SHUFFLE_H

#include <xxhash.h>

#include "tokenize/parts/order.h"

typedef struct sgt_shuffle sgt_shuffle;

/* Return the key of a document. */
static inline uint64_t sgt_shuffle_key(uint64_t number, uint64_t seed)
{
    return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

/* Return 1 if files of all documents are there, which a rank that was alone wrote; 0 if not, or a
 * negative SGT_E*. */
int sgt_shuffle_exists(const sgt_order_request *r, sgt_error *err);
/* Remove the files that a rank that was alone wrote, complete or not. */
int sgt_shuffle_remove(const sgt_order_request *r, sgt_error *err);

/* Write the files of our share. `input`: its documents in input order. It is read to its end,
 * unless an earlier run has done so. */
int sgt_shuffle_scatter(const sgt_order_request *r, sgt_order *input, sgt_error *err);

/* Open a shuffled order, of which all ranks have written their files. tokens: of all documents. */
int sgt_shuffle_open(sgt_shuffle **out, const sgt_order_request *r, uint64_t tokens,
                     sgt_error *err);
void sgt_shuffle_close(sgt_shuffle *s); /* NULL is allowed */
int sgt_shuffle_next(sgt_shuffle *s, uint64_t *tokens, sgt_error *err);
int sgt_shuffle_seek(sgt_shuffle *s, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err);
int sgt_shuffle_ids(sgt_shuffle *s, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err);

#endif
