/* parquet_body.h: a page of more rows than are decoded at once, which the threads that decode its
 * rows share. The first of them unpacks and decodes the whole page, and all copy their rows from
 * it. */
#ifndef SGT_PARQUET_BODY_H
#define SGT_PARQUET_BODY_H

#include "tokenize/input/parquet_page.h"

/* Make a body for the page *p, whose dictionary it also uses. The caller fills in the page's packed
 * bytes at *packed, before any other call. */
int sgt_parquet_body_new(sgt_parquet_body **out, const sgt_parquet_page *p, uint8_t **packed,
                         sgt_error *err);
sgt_parquet_body *sgt_parquet_body_use(sgt_parquet_body *b); /* NULL is allowed */
void sgt_parquet_body_drop(sgt_parquet_body *b);             /* NULL is allowed */

/* Do what sgt_parquet_page_decode does, for rows first ... first + count - 1 of the body. */
int sgt_parquet_body_rows(sgt_parquet_body *b, uint64_t first, uint64_t count, sgt_unit *u,
                          sgt_parquet_string *rows, const char *path, sgt_error *err);

#endif
