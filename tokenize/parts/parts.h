/* parts.h: make OUT with several ranks. The input files, in order, are divided among the ranks by
 * their bytes (divide.h). Rank i makes a set of its share in OUT/.work/part-00000i, like a whole
 * OUT, with its own journal from which it resumes. Ranks need only a common file system. The last
 * rank to complete its part takes OUT alone, assembles the shards (assemble.h) and removes the
 * parts. After a rank has died, the same command continues. Complete parts and shards of OUT are
 * not made again.
 *
 * An OUT that is shuffled (shuffle.h) or free of duplicates (dedup.h) is made by parts even with
 * one rank: these steps need all documents, so they happen during assembly.
 *
 * Connected ranks (base/ranks.h) wait for each other and divide the second pass (share.h): each
 * finds its share of the duplicates, copies its share of the documents into buckets if the order
 * needs that (order.h), and assembles its share of the shards. Rank 0 does the rest. */
#ifndef SGT_PARTS_H
#define SGT_PARTS_H

#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

/* Return whether these options need parts. */
int sgt_parts_wanted(const sgt_tokenize_options *o);

/* Make OUT as sgt_tokenize does, by parts. `options`: JSON text for the manifest. */
int sgt_parts_make(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                   const char *options, sgt_tokenize_result *result, sgt_error *err);

#endif
