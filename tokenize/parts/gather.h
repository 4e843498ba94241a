/* gather.h: read the documents of a split from the parts in the shuffled order (shuffle.h), without
 * a copy in buckets.
 *
 * One rank, or all ranks of one machine, do this if the tokens of the split fit in half of the
 * memory that is free. The parts were just written, so they are in the page cache, and random reads
 * of them cost less than to write and read all tokens once more. Nothing is kept for a later run,
 * which may as well use buckets: OUT gets the same bytes.
 *
 * Memory of each rank: 24 bytes for each document of the split, duplicates included, 8 of them only
 * to sort; at most 96 MiB in all ranks. Also a buffer of SGT_MADE_WINDOW ids. The shards of the
 * parts stay open.
 *
 * Use these functions through order.h. */
#ifndef SGT_GATHER_H
#define SGT_GATHER_H

#include "tokenize/parts/order.h"

#define SGT_GATHER_SHARDS 256 /* limit: shards of all parts */

typedef struct sgt_gather sgt_gather;

/* Return whether the ranks of r->share read the documents of a request so. All of them get the same
 * answer. */
int sgt_gather_suits(const sgt_order_request *r);

/* List the documents and sort them. */
int sgt_gather_open(sgt_gather **out, const sgt_order_request *r, sgt_error *err);
void sgt_gather_close(sgt_gather *g); /* NULL is allowed */
int sgt_gather_next(sgt_gather *g, uint64_t *tokens, sgt_error *err);
int sgt_gather_seek(sgt_gather *g, uint64_t at, uint64_t *tokens, uint64_t *skip, sgt_error *err);
int sgt_gather_ids(sgt_gather *g, uint64_t at, size_t n, const uint16_t **ids, sgt_error *err);

#endif
