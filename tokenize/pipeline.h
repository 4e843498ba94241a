/* pipeline.h: files into one set of shards, by one process. */
#ifndef SGT_PIPELINE_H
#define SGT_PIPELINE_H

#include "input/corpus.h"
#include "shards/manifest.h"
#include "sgt_tokenize.h"

/* Makes o->out the set of the corpus (o's inputs are not looked at), or goes on with it. `options`:
 * JSON text for its manifest, and what it is held to when it is gone on with. */
int sgt_pipeline_make(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                      const char *options, sgt_tokenize_result *result, sgt_error *err);

/* The numbers of a manifest. */
void sgt_pipeline_result(sgt_tokenize_result *r, const sgt_manifest *m);

/* Tokens of a shard by these options. */
uint64_t sgt_pipeline_shard_tokens(const sgt_tokenize_options *o);

#endif
