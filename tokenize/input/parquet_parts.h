/* parquet_parts.h: turn the rows of a page into documents. */
#ifndef SGT_PARQUET_PARTS_H
#define SGT_PARQUET_PARTS_H

#include "tokenize/input/unit.h"

/* Add a part to u for each row of the folded part p, and a last one without a document for rows
 * left out. A document's position, which decides its split, is the number of its row. Return 1 at
 * the first bad row, which u->bad describes; with o->skip_bad such rows are counted instead. Any
 * number of threads may call this, each with its own unit. */
int sgt_parquet_parts(sgt_unit *u, const sgt_part *p, const sgt_corpus *c,
                      const sgt_tokenize_options *o, sgt_error *err);

#endif
