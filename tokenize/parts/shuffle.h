/* shuffle.h: the documents of a split in an order that looks like chance and is always the same.
 *
 * Document number n of a split (in the order of the input, duplicates counted) has the key
 * XXH3-64(n as 8 bytes, little end first; seed); the order is that of (key, n). Documents are
 * copied once into files by the leading bits of their keys, in WORK/sorting/SPLIT, about 64 MiB
 * each (above 64 GiB of tokens more); then one file after the other is taken in its order. In
 * memory: 24 bytes a document of one file and the file itself, unless it is above 96 MiB; and 64
 * KiB a file while they are written. When all of them are on disk WORK/sorting/SPLIT/table says so,
 * and a later run does not write them again.
 *
 * The calls are those of order.h, which is what to use. */
#ifndef SGT_SHUFFLE_H
#define SGT_SHUFFLE_H

#include "order.h"

typedef struct sgt_shuffle sgt_shuffle;

/* `input`: the same documents as they come, from the first on; it is walked to its end unless that
 * was done before. */
int sgt_shuffle_open(sgt_shuffle **out, const sgt_order_request *r, sgt_order *input,
                     sgt_error *err);
void sgt_shuffle_close(sgt_shuffle *s); /* NULL is fine */
int sgt_shuffle_next(sgt_shuffle *s, uint64_t *tokens, sgt_error *err);
int sgt_shuffle_seek(sgt_shuffle *s, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err);
int sgt_shuffle_ids(sgt_shuffle *s, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err);

#endif
