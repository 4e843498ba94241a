/* parquet.h: read one column of strings of a Parquet file, a document per row. One thread at a time
 * reads pages; any number of threads decode them (parquet_parts.h).
 *
 *     sgt_parquet *p;
 *     if (sgt_parquet_open(&p, &r, &err) < 0) ...;
 *     while ((rc = sgt_parquet_next(p, unit, &rows, &err)) == 0) ...;
 *     sgt_parquet_close(p);
 *
 * Read are data pages of version 1 and 2 in PLAIN, dictionary and both delta encodings of strings,
 * and of numbers in DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT, packed by snappy, zstd, gzip, lz4_raw
 * or nothing. The column may lie in groups ("page.text"), but not in lists. A position in a file is
 * the number of a row, so a run can begin at any row. If the file has from_row and end_row, which
 * lie between row groups, only these rows are read. Memory: the metadata (at most 256 MiB), two
 * dictionaries, and a page. */
#ifndef SGT_PARQUET_H
#define SGT_PARQUET_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/unit.h"

typedef struct sgt_parquet sgt_parquet;

typedef struct sgt_parquet_request {
    const sgt_corpus_file *file;
    const char *field; /* "text", or "a.b" in a group */
    uint64_t row;      /* first row to read, if it is after the file's from_row */
    /* an earlier run's hash, and the rows that it covers (sgt_parquet_hash); 0: begin anew */
    uint64_t hashed, hash;
    const sgt_stop *stop, *cancel;
    int kept; /* the column is kept beside the text (kept.h), and may hold numbers */
} sgt_parquet_request;

/* The file and the field must outlive the reader. */
int sgt_parquet_open(sgt_parquet **out, const sgt_parquet_request *r, sgt_error *err);
void sgt_parquet_close(sgt_parquet *p); /* NULL is allowed */

size_t sgt_parquet_groups(const sgt_parquet *p); /* row groups in the whole file */
/* Set *row to the first row of group i, and *bytes to the column's bytes in the groups before it. i
 * may be the number of groups. */
void sgt_parquet_group_begin(const sgt_parquet *p, size_t i, uint64_t *row, uint64_t *bytes);

/* Return whether the column holds integers without a sign. */
int sgt_parquet_is_unsigned(const sgt_parquet *p);
/* Return how many of an integer's decimal digits are after the point. */
int sgt_parquet_scale(const sgt_parquet *p);

/* Append the next page, or the next rows of a page that has many, to u's text and pages; *rows is
 * their number. Return 0; 1 at the end; or a negative SGT_E*. */
int sgt_parquet_next(sgt_parquet *p, sgt_unit *u, uint64_t *rows, sgt_error *err);

/* Return the hash of what was read: the sum of the hashes of the metadata and of all pages before
 * row *covered, each with its dictionary. A sum, because ranks divide a file. The metadata count
 * where the share begins with the first row. */
uint64_t sgt_parquet_hash(const sgt_parquet *p, uint64_t *covered);

/* Return about how many bytes of the file's share are read (sgt_corpus_share). */
uint64_t sgt_parquet_raw(const sgt_parquet *p);

#endif
