/* json_parts.h: lines of JSONL, as they were read, into documents. */
#ifndef SGT_JSON_PARTS_H
#define SGT_JSON_PARTS_H

#include "unit.h"

/* Puts a part per document in the place of each part of u that is folded, and after the last of its
 * lines one without a document, for what is left of them; text is decoded where it lies. A
 * document's position, which decides its split, is where its line begins in the stream. Blank lines
 * are passed over. At the first bad line u ends, and u->bad says so; where o->skip_bad they are
 * counted instead. Any number of threads, each with its own unit. */
int sgt_json_parts(sgt_unit *u, const sgt_corpus *c, const sgt_tokenize_options *o, sgt_error *err);

#endif
