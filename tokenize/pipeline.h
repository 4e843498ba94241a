/* pipeline.h: turn files into one set of shards, in one process. */
#ifndef SGT_PIPELINE_H
#define SGT_PIPELINE_H

#include "tokenize/input/corpus.h"
#include "loader/shards/manifest.h"
#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Make the set that is requested, or resume it. What the request also has (OUT, inputs, layout) is
 * not taken from *o. */
int sgt_pipeline_make(const sgt_tokenize_options *o, const sgt_out_request *r,
                      sgt_tokenize_result *result, sgt_error *err);

/* Fail if bad lines and rows were left out, and nothing else was there; or if val_fraction is less
 * than 1, and all documents are in the val split. */
int sgt_pipeline_check(const sgt_manifest *m, const sgt_corpus *c, const sgt_tokenize_options *o,
                       sgt_error *err);
/* Complete OUT with the manifest m, of which this sets the vocabulary and, while it is written, the
 * options; fill in *result, but for its bytes_read, which stays. If OUT has another layout, first
 * write its files from the set of shards in out->shards, which m describes. */
int sgt_pipeline_publish(sgt_out *out, sgt_manifest *m, const sgt_out_request *r,
                         sgt_tokenize_result *result, sgt_error *err);
/* Fill in *r from the numbers of a manifest. */
void sgt_pipeline_result(sgt_tokenize_result *r, const sgt_manifest *m);
/* Fill in *r from the manifest of a complete OUT, but for r->bytes_read, which stays. */
int sgt_pipeline_reread(sgt_tokenize_result *r, const char *out, sgt_error *err);

/* Return the tokens per shard that these options ask for. */
uint64_t sgt_pipeline_shard_tokens(const sgt_tokenize_options *o);

#endif
