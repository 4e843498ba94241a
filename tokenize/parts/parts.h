/* parts.h: OUT made by several ranks. The files of the input, in their order, are divided among the
 * ranks by their bytes: rank i makes a set of its share in OUT/.work/part-00000i, like a whole OUT,
 * with a journal of its own from which it resumes. Ranks need only a common file system: the last
 * one to complete its part takes OUT alone, puts the shards together (assemble.h) and removes the
 * parts. After a rank has died, the same command goes on. Complete parts are not made again, nor
 * are shards of OUT.
 *
 * An OUT that is shuffled (shuffle.h) or free of duplicates (dedup.h) is made in the same way, by
 * one rank too: what is known of all documents only at the end is done while the shards are put
 * together.
 *
 * Connected ranks (base/ranks.h) wait for each other. Then each puts its share of the shards
 * together, unless duplicates are left out, and rank 0 does the rest. */
#ifndef SGT_PARTS_H
#define SGT_PARTS_H

#include "input/corpus.h"
#include "sgt_tokenize.h"

/* Whether these options ask for parts. */
int sgt_parts_wanted(const sgt_tokenize_options *o);

/* What sgt_tokenize does, by parts. `options`: the JSON text for the manifest. */
int sgt_parts_make(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                   const char *options, sgt_tokenize_result *result, sgt_error *err);

/* Which files are whose: rank i has files first[i] ... first[i + 1] - 1, perhaps none. first: of
 * ranks + 1. */
void sgt_parts_divide(const sgt_corpus *c, uint32_t ranks, size_t *first);

#endif
