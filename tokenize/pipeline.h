/* pipeline.h: turn files into one set of shards, in one process. */
#ifndef SGT_PIPELINE_H
#define SGT_PIPELINE_H

#include "tokenize/input/corpus.h"
#include "loader/shards/manifest.h"
#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Make the set that is requested, or resume it. OUT, the inputs and the layout are taken from *r,
 * not from *o. */
int sgt_pipeline_make(const sgt_tokenize_options *o, const sgt_out_request *r,
                      sgt_tokenize_result *result, sgt_error *err);

/* Fail if only bad lines and rows were found, and all of them were left out; or if val_fraction is
 * less than 1 and all documents fell into the val split. */
int sgt_pipeline_check(const sgt_manifest *m, const sgt_corpus *c, const sgt_tokenize_options *o,
                       sgt_error *err);
/* Complete OUT with the manifest m. This sets m's vocabulary, and, during the call, its options.
 * Fill in *result, except bytes_read and seconds, which are kept. If OUT has another layout, first
 * write its files from the set of shards in out->shards, which m describes. */
int sgt_pipeline_publish(sgt_out *out, sgt_manifest *m, const sgt_out_request *r,
                         sgt_tokenize_result *result, sgt_error *err);
/* Fill in *r from the counts of a manifest. */
void sgt_pipeline_result(sgt_tokenize_result *r, const sgt_manifest *m);
/* Fill in *r from the manifest of a complete OUT, except bytes_read and seconds, which are kept. */
int sgt_pipeline_reread(sgt_tokenize_result *r, const char *out, sgt_error *err);

/* Return the number of tokens per shard that these options request. */
uint64_t sgt_pipeline_shard_tokens(const sgt_tokenize_options *o);

#endif
