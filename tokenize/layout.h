/* layout.h: make OUT in another trainer's layout: first a set of shards in OUT/.work/set, then from
 * it the files of OUT (export.h). After a kill, the same command goes on with the set, or, if that
 * is complete, writes the files again. */
#ifndef SGT_TOKENIZE_LAYOUT_H
#define SGT_TOKENIZE_LAYOUT_H

#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

/* Do what sgt_tokenize does if o->layout is not SGT_LAYOUT_SGT. `options`: the JSON text for the
 * manifest of the set of shards. */
int sgt_layout_make(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    const char *options, sgt_tokenize_result *result, sgt_error *err);

#endif
