/* kept.h: fields of a document that sources.jsonl keeps beside its text (--keep-fields). Of JSONL
 * they are values of the line, and of Parquet the row's strings and numbers in other columns. */
#ifndef SGT_KEPT_H
#define SGT_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/json_line.h"

/* Parse "url,date"; NULL names nothing. Return SGT_EUSAGE for too many names, and for one that is
 * empty, occurs twice, is not UTF-8, or holds a quote, a backslash or a control character. The
 * caller frees k->text, after a failure, too. */
int sgt_kept_names_set(sgt_kept_names *k, const char *list, sgt_error *err);

/* Append the fields of a line of JSONL to u->kept as a JSON object, {"url": ..., "date": null}, and
 * set p->line.kept and p->line.kept_length. A field that is missing is null. A line that is no JSON object
 * gives any text. Uses the unit's scratch, with room for the line. */
int sgt_kept_line(const sgt_kept_names *k, uint8_t *line, sgt_unit *u, sgt_part *p, sgt_error *err);

/* What reads the same fields of the rows of a Parquet file. One thread at a time. */
typedef struct sgt_kept_rows sgt_kept_rows;
void sgt_kept_rows_close(sgt_kept_rows *r); /* NULL is allowed */

/* Set *json[*n], until the next call, to the fields of the document of c that part p of u ends; its
 * file is JSONL or Parquet. Documents come in order. *rows is opened and closed as needed: the
 * caller begins with NULL and closes it after the last document; c must live as long. Return
 * SGT_EFORMAT for a column that is missing, or that holds neither strings nor numbers. */
int sgt_kept_of(sgt_kept_rows **rows, const sgt_corpus *c, const sgt_unit *u, const sgt_part *p,
                const char **json, size_t *n, sgt_error *err);

#endif
