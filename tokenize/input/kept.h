/* kept.h: reads the fields of a document that are copied to sources.jsonl (--keep-fields). In JSONL
 * they are values in the document's line; in Parquet, strings and numbers in other columns of its
 * row. */
#ifndef SGT_KEPT_H
#define SGT_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/json_line.h"

/* Parse a list of field names such as "url,date"; NULL is an empty list. Return SGT_EUSAGE if there
 * are too many names, or if a name is invalid: empty, repeated, not UTF-8, or with a quote, a
 * backslash or a control character. The caller frees k->text, even after a failure. */
int sgt_kept_names_set(sgt_kept_names *k, const char *list, sgt_error *err);

/* From a JSONL line, take the fields to keep, and append them to u->kept as a JSON object such as
 * {"url": ..., "date": null}. Set p->line.kept and p->line.kept_length to the object's place. A
 * missing field is null. If the line is not a JSON object, the text appended is undefined.
 * u->scratch must have room for the line. */
int sgt_kept_line(const sgt_kept_names *k, uint8_t *line, sgt_unit *u, sgt_part *p, sgt_error *err);

/* A reader of the columns of a Parquet file that --keep-fields names. Only one thread at a time may
 * use it. */
typedef struct sgt_kept_rows sgt_kept_rows;
void sgt_kept_rows_close(sgt_kept_rows *r); /* NULL is allowed */

/* For the document that ends in part p of u, set *json to the fields to keep, as a JSON object of
 * *n bytes that is valid until the next call. Return SGT_EFORMAT if a column is missing, or has
 * neither strings nor numbers.
 *
 * The document's file must be JSONL or Parquet, and documents must come in order. *rows must be
 * NULL at first. The call opens and closes it as needed; the caller closes it after the last
 * document. c must outlive *rows. */
int sgt_kept_of(sgt_kept_rows **rows, const sgt_corpus *c, const sgt_unit *u, const sgt_part *p,
                const char **json, size_t *n, sgt_error *err);

#endif
