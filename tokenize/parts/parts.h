/* parts.h: fills an output folder OUT with several ranks (processes). The input files, in order,
 * are divided among the ranks by bytes (divide.h). Rank i writes a set of shards from its share,
 * called its part, to OUT/.work/part-00000i. Each part has its own journal, from which a killed
 * rank resumes. Finally, one rank takes OUT over alone, joins the parts and removes them. The ranks
 * need nothing in common but a file system. If a rank dies, run its command again: complete parts
 * and complete shards of OUT are not written again.
 *
 * Even one rank makes a part if documents are shuffled (order.h) or duplicates are removed
 * (dedup.h). These steps need all documents, so they are done when the parts are joined.
 *
 * If the ranks were started separately, they may run one after the other: the last rank to complete
 * its part writes all shards. If a launcher started the ranks, they divide this second pass: each
 * copies its share of the documents into buckets, if the order needs that, and writes its share of
 * the shards. Rank 0 does the rest. The ranks wait for each other (base/ranks.h) at these points,
 * in this order:
 *
 *     counts   all parts are complete, so their manifests have the counts of tokens and documents
 *     found    if duplicates are removed: rank 0 has found the duplicates
 *     plan     documents are copied: every rank knows which rank writes which tokens to which shard
 *     done     all shards are in OUT */
#ifndef SGT_PARTS_H
#define SGT_PARTS_H

#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Return 1 if, with these options, each rank makes a part and the parts are then joined: with
 * several ranks, shuffling or removal of duplicates. */
int sgt_parts_wanted(const sgt_tokenize_options *o);

/* Write the set of shards that *request describes, as sgt_pipeline_make does, but in parts that are
 * then joined. */
int sgt_parts_make(const sgt_tokenize_options *o, const sgt_out_request *request,
                   sgt_tokenize_result *result, sgt_error *err);

#endif
