/* parts.h: make OUT with several ranks. The input files, in order, are divided among the ranks by
 * bytes (divide.h). Rank i makes a set from its share in OUT/.work/part-00000i, in the same way as
 * a whole OUT, with a journal of its own from which it resumes. The ranks need nothing in common
 * but a file system. One rank then stops sharing OUT, completes it and removes the parts. If a rank
 * dies, run its command again: complete parts and complete shards of OUT are not made again.
 *
 * An OUT that is shuffled (order.h) or free of duplicates (dedup.h) is made in parts even by one
 * rank: these steps need all documents, so they are done when the parts are joined.
 *
 * Ranks that were started separately may run one after the other: the last one to complete its part
 * makes all shards. Ranks that a launcher started divide the second pass: each copies its share of
 * the documents into buckets, if the order needs that, and makes its share of the shards. Rank 0
 * does the rest. They wait for each other (base/ranks.h) at these points, in this order:
 *
 *     counts   all parts are complete, so their manifests have the counts of tokens and documents
 *     found    with dedup.h: rank 0 has found the duplicates
 *     plan     documents are scattered: every rank knows which rank writes which tokens where
 *     done     all shards are in OUT */
#ifndef SGT_PARTS_H
#define SGT_PARTS_H

#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Return whether these options require parts. */
int sgt_parts_wanted(const sgt_tokenize_options *o);

/* Make OUT as sgt_pipeline_make does, but in parts. */
int sgt_parts_make(const sgt_tokenize_options *o, const sgt_out_request *request,
                   sgt_tokenize_result *result, sgt_error *err);

#endif
