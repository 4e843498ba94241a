/* kept.h: reads the fields of a document that are copied to sources.jsonl (--keep-fields). In a
 * JSONL file, they are values in the line that holds the document. In a Parquet file, they are
 * strings and numbers in other columns of the document's row. */
#ifndef SGT_KEPT_H
#define SGT_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/json_line.h"

/* Parse the list of field names at `list`, such as "url,date", into *k. NULL is an empty list.
 * Return 0 or SGT_ENOMEM. Return SGT_EUSAGE if there are too many names, or if a name is empty,
 * repeated or not UTF-8, or contains a quote, a backslash or a control character. The caller frees
 * k->text, even after a failure. */
int sgt_kept_names_set(sgt_kept_names *k, const char *list, sgt_error *err);

/* Find the fields *k in a JSONL line, and append them to u->kept as a JSON object such as {"url":
 * ..., "date": null}. A field that the line lacks is null. Set p->line.kept to the offset of the
 * object in u->kept, and p->line.kept_length to its length. If the line is not a JSON object, the
 * values in the appended object are undefined. u->scratch must have room for the line. */
int sgt_kept_line(const sgt_kept_names *k, uint8_t *line, sgt_unit *u, sgt_part *p, sgt_error *err);

/* Reads those columns of a Parquet file that --keep-fields names. Only one thread at a time may use
 * a reader. */
typedef struct sgt_kept_rows sgt_kept_rows;
void sgt_kept_rows_close(sgt_kept_rows *r); /* NULL is allowed */

/* Set *json to a JSON object that describes the document that ends in part p of the unit u. The
 * object has those fields of the document that --keep-fields names (c->kept). It has *n bytes, and
 * is valid until the next call.
 * Return SGT_EFORMAT if a column is missing, or if it holds neither strings nor numbers.
 *
 * The document must be from a JSONL or Parquet file, and documents must be passed in order. *rows
 * must be NULL at the first call. The function opens and closes the reader *rows as needed, and the
 * caller closes it after the last document. c must outlive *rows. */
int sgt_kept_of(sgt_kept_rows **rows, const sgt_corpus *c, const sgt_unit *u, const sgt_part *p,
                const char **json, size_t *n, sgt_error *err);

#endif
