/* json_parts.h: turn lines of JSONL, rows of Parquet, and text that literal ends of text divide into
 * documents. */
#ifndef SGT_JSON_PARTS_H
#define SGT_JSON_PARTS_H

#include "tokenize/input/unit.h"

/* Replace each folded part of u by one part per document, and a last one without a document for the
 * rest of its lines. Text is decoded in place. A document's position, which decides its split, is
 * where its line begins in the stream. Blank lines are skipped. u ends at the first bad line, which
 * u->bad describes; with o->skip_bad such lines are counted instead. Any number of threads may call
 * this, each with its own unit. Pages of Parquet: see parquet.h.
 *
 * If the literal divides, each one in a document begins a document of its own. The text before a
 * literal at the very beginning is no document. The documents of one line or row have one offset,
 * and only the last of them moves the end on, so that a run begins at the first of them. Otherwise
 * each part's literals are counted. */
int sgt_json_parts(sgt_unit *u, const sgt_corpus *c, const sgt_tokenize_options *o,
                   const sgt_literal *literal, sgt_error *err);

#endif
