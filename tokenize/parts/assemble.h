/* assemble.h: make the shards of OUT from the documents of all parts.
 *
 * Shard k of a split holds its tokens k*S ... (k+1)*S - 1 in the order of the output, so each shard
 * can be made by itself. A shard that exists in OUT is complete and is not made again, so a killed
 * run resumes without a journal. Tokens are read and written (no copy_file_range), because the
 * checksum must see every one of them anyway. */
#ifndef SGT_ASSEMBLE_H
#define SGT_ASSEMBLE_H

#include "tokenize/parts/order.h"
#include "tokenize/out/out.h"

typedef struct sgt_assembly {
    const sgt_out *out; /* OUT, which this rank holds alone (sgt_out_alone) */
    const sgt_vocab *vocab;
    uint64_t shard_tokens;
    int force; /* 1: make a damaged shard in OUT again */
    const sgt_stop *stop;
    /* the shards of each split are divided into `shares` consecutive runs, and this rank makes run
     * number `share`; shares 0: make none */
    uint32_t share, shares;
    sgt_advance advance; /* progress, in tokens of these shards */
} sgt_assembly;

/* Make the shards of a split from the documents of `order`. Adds them to m->shards and their tokens
 * to the totals, and the documents to *documents. Ranks with different shares may call this at
 * once. */
int sgt_assemble(const sgt_assembly *a, int split, sgt_order *order, sgt_manifest *m,
                 uint64_t *documents, sgt_error *err);

#endif
