/* pipeline.h: tokenizes files into one set of shards, in one process. */
#ifndef SGT_PIPELINE_H
#define SGT_PIPELINE_H

#include "tokenize/input/corpus.h"
#include "loader/shards/manifest.h"
#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Write the set of shards that *r requests, or resume writing it after an earlier run. The output
 * folder, the inputs and the layout are taken from *r, not from *o. */
int sgt_pipeline_make(const sgt_tokenize_options *o, const sgt_out_request *r,
                      sgt_tokenize_result *result, sgt_error *err);

/* Return an error in two cases: with skip_bad, all lines and rows of the inputs were bad and
 * skipped; or all documents fell into the validation split although val_fraction is less than 1. */
int sgt_pipeline_check(const sgt_manifest *m, const sgt_corpus *c, const sgt_tokenize_options *o,
                       sgt_error *err);
/* Publish the set that m describes in the output folder. If another layout is requested, first
 * convert the shards in out->shards to that layout. Fill in all fields of *result but bytes_read
 * and seconds. The call sets m's vocabulary fields, and uses m->options, which is NULL when it
 * returns. */
int sgt_pipeline_publish(sgt_out *out, sgt_manifest *m, const sgt_out_request *r,
                         sgt_tokenize_result *result, sgt_error *err);
/* Fill in *r from the manifest in the complete output folder `out`, but leave bytes_read and
 * seconds unchanged. */
int sgt_pipeline_reread(sgt_tokenize_result *r, const char *out, sgt_error *err);

/* Return the number of tokens per shard that the options request: o->shard_tokens or the
 * default. */
uint64_t sgt_pipeline_shard_tokens(const sgt_tokenize_options *o);

#endif
