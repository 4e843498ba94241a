/* parts.h: make OUT with several ranks. The input files, in order, are divided among the ranks by
 * their bytes (divide.h). Rank i makes a set of its share in OUT/.work/part-00000i, like a whole
 * OUT, with its own journal from which it resumes. Ranks need only a common file system. One rank
 * then takes OUT alone, completes it and removes the parts. After a rank has died, the
 * same command continues. Complete parts and shards of OUT are not made again.
 *
 * An OUT that is shuffled (order.h) or free of duplicates (dedup.h) is made by parts even with one
 * rank: these steps need all documents, so they happen when the parts are joined.
 *
 * Ranks that were started apart may run one after the other: the last one to complete its part
 * makes all shards. Ranks that a launcher started divide the second pass: each copies its share of
 * the documents into buckets, if the order needs that, and makes its share of the shards. Rank 0 does
 * the rest. They wait for each other (base/ranks.h) at these points, in this order:
 *
 *     counts   all parts are complete, so their manifests have the counts of tokens and documents
 *     found    with dedup.h: rank 0 has found the duplicates
 *     plan     documents are scattered: every rank knows what is written where
 *     done     all shards are in OUT */
#ifndef SGT_PARTS_H
#define SGT_PARTS_H

#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Return whether these options need parts. */
int sgt_parts_wanted(const sgt_tokenize_options *o);

/* Make OUT as sgt_pipeline_make does, by parts. */
int sgt_parts_make(const sgt_tokenize_options *o, const sgt_out_request *request,
                   sgt_tokenize_result *result, sgt_error *err);

#endif
