/* parts.h: fills an output folder OUT with several ranks (processes). The list of input files is
 * divided among the ranks by bytes (divide.h). Rank i tokenizes its share of the files into a set
 * of shards, called its part, in OUT/.work/part-00000i. Each part has its own journal, from which a
 * killed rank resumes. Finally, one rank takes OUT over, joins the parts into the complete set, and
 * removes them. The ranks can run on different machines that share only a file system. If a rank
 * dies, run its command again; parts and shards that are complete are not written again.
 *
 * If documents are shuffled (order.h) or duplicates are removed (dedup.h), even a single rank makes
 * a part first, because these steps need all documents. They are done while the parts are joined.
 *
 * If the user starts each rank separately, the ranks can run one after the other, and the last rank
 * to complete its part joins all parts. If a launcher starts the ranks, they divide the work of
 * joining: each rank copies its share of the documents into buckets (files for shuffling, if they
 * are needed) and writes its share of the shards. Rank 0 does the rest. These ranks wait for each
 * other (base/ranks.h) at the following points, in this order:
  *     counts   All parts are complete, so their manifests have the counts of tokens and documents.
 *     found    Rank 0 has found the duplicates (only if duplicates are removed).
 *     plan     All documents are in buckets (if needed), so each rank can write its shards.
 *     done     All shards are in OUT. */
#ifndef SGT_PARTS_H
#define SGT_PARTS_H

#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Return 1 if, with these options, the ranks make parts that are then joined, else 0. This is the
 * case if there are several ranks, if documents are shuffled, or if duplicates are removed. */
int sgt_parts_wanted(const sgt_tokenize_options *o);

/* Make the set of shards that *request describes, as sgt_pipeline_make does. Each rank makes a part
 * (a set of shards from its share of the inputs), and then the parts are joined. */
int sgt_parts_make(const sgt_tokenize_options *o, const sgt_out_request *request,
                   sgt_tokenize_result *result, sgt_error *err);

#endif
