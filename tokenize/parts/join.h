/* join.h: make the set in OUT from the parts: its shards, sources.jsonl and the counts of its
 * manifest.
 *
 * Shard k of a split holds its tokens k*S ... (k+1)*S - 1 in the order of the output, so each shard
 * can be made by itself. A shard that exists in OUT is complete and is not made again, so a killed
 * run resumes without a journal. Tokens are read and written (no copy_file_range), because the
 * checksum must see every one of them anyway. */
#ifndef SGT_JOIN_H
#define SGT_JOIN_H

#include "tokenize/out/out.h"
#include "tokenize/parts/divide.h"
#include "tokenize/parts/order.h"

typedef struct sgt_join_request {
    const sgt_out *out; /* OUT, which this rank has joined */
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    const sgt_cut *cuts; /* (ranks + 1): what each rank has read */
    uint32_t ranks;
    sgt_made *const *parts; /* (count): of the ranks that have read something, in order */
    size_t count;
    uint64_t shard_tokens;
    int force; /* 1: make a damaged shard in OUT again */
    const sgt_stop *stop;
    sgt_advance advance; /* progress, in tokens of this rank's shards */
} sgt_join_request;

/* Make the shards of a split from the documents of `order`: run number `share` of `shares`
 * consecutive runs of them. Add them to m->shards, and their tokens and documents to the totals.
 * Ranks with different shares may call this at once. */
int sgt_join_shards(const sgt_join_request *j, int split, sgt_order *order, uint32_t share,
                    uint32_t shares, sgt_manifest *m, sgt_error *err);

/* Write sources.jsonl in OUT/.work from those of the parts. A file that several ranks have read gets
 * one line, with the sums of its counts. */
int sgt_join_sources(const sgt_join_request *j, sgt_error *err);

/* Set what the parts' manifests count in *m, except shards, tokens and documents. */
int sgt_join_counts(const sgt_join_request *j, sgt_manifest *m, sgt_error *err);

#endif
