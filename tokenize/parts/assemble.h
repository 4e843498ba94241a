/* assemble.h: the shards of OUT from the documents of all parts.
 *
 * Shard k of a split holds its tokens k*S ... (k+1)*S - 1 in the order of the output, so any of
 * them can be made by itself, and one that has its name in OUT is whole and is not made again: a
 * run that is killed leaves nothing else to remember. Tokens are read and written (no
 * copy_file_range): the checksum has to see every one of them anyway. */
#ifndef SGT_ASSEMBLE_H
#define SGT_ASSEMBLE_H

#include "order.h"
#include "out/out.h"

typedef struct sgt_assembly {
    const sgt_out *out; /* ours alone */
    const sgt_vocab *vocab;
    uint64_t shard_tokens;
    int force; /* a damaged shard in OUT is made again */
    const sgt_stop *stop;
    /* of the shards of each split those of this rank, in a row; shares 0: none */
    uint32_t share, shares;
    sgt_advance advance; /* of the tokens of those shards */
} sgt_assembly;

/* The shards of a split, whose documents come from `order`; m->shards and the totals of tokens grow
 * by them, and *documents by the documents. Ranks with shares of their own may do this at once. */
int sgt_assemble(const sgt_assembly *a, int split, sgt_order *order, sgt_manifest *m,
                 uint64_t *documents, sgt_error *err);

#endif
