/* pipeline.h: tokenizes the input files into one set of shards, within one process. */
#ifndef SGT_PIPELINE_H
#define SGT_PIPELINE_H

#include "tokenize/input/corpus.h"
#include "loader/shards/manifest.h"
#include "tokenize/out/out.h"
#include "tokenize/sgt_tokenize.h"

/* Write the set of shards that *r requests. If an earlier run was interrupted, continue where it
 * stopped. The output folder, the inputs and the layout are taken from *r, and all other options
 * from *o. */
int sgt_pipeline_make(const sgt_tokenize_options *o, const sgt_out_request *r,
                      sgt_tokenize_result *result, sgt_error *err);

/* Return an error in two cases. In the first, o->skip_bad is set, and every line and row of the
 * inputs was bad and skipped. In the second, all documents fell into the validation split, although
 * o->val_fraction is less than 1. In all other cases, return SGT_OK. */
int sgt_pipeline_check(const sgt_manifest *m, const sgt_corpus *c, const sgt_tokenize_options *o,
                       sgt_error *err);
/* Publish the set of shards that the manifest m describes in the output folder. If r->layout is
 * another program's layout, first convert the shards in the folder out->shards to that layout. Set
 * all fields of *result except bytes_read and seconds. In m, set the fields that describe the
 * vocabulary, and overwrite m->options, which is NULL when the call returns. */
int sgt_pipeline_publish(sgt_out *out, sgt_manifest *m, const sgt_out_request *r,
                         sgt_tokenize_result *result, sgt_error *err);
/* Set all fields of *r except bytes_read and seconds from the manifest in the output folder `out`,
 * which must hold a complete set of shards. */
int sgt_pipeline_reread(sgt_tokenize_result *r, const char *out, sgt_error *err);

/* Return the maximum number of tokens per shard: o->shard_tokens or, if it is 0, the default. */
uint64_t sgt_pipeline_shard_tokens(const sgt_tokenize_options *o);

#endif
