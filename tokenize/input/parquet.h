/* parquet.h: read one column of strings of a Parquet file, one document per row. One thread at a
 * time reads pages; any number of threads decode them (sgt_parquet_records).
 *
 *     sgt_parquet *p;
 *     if (sgt_parquet_open(&p, &r, &err) < 0) ...;
 *     while ((rc = sgt_parquet_next(p, unit, &rows, &err)) == 0) ...;
 *     sgt_parquet_close(p);
 *
 * Supported are data pages of version 1 and 2; for strings, PLAIN, dictionary and both delta
 * encodings; for numbers, also DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT; and compression by
 * snappy, zstd, gzip, lz4_raw or none. The column may lie in groups ("page.text"), but not in
 * lists. A position in a file is the number of a row, so a run can begin at any row. Ranks divide a
 * large file by its bytes (sgt_corpus_file): each reads the row groups whose middle lies in its
 * range. The middle is computed from the column's bytes in the groups, scaled as if they filled the
 * file. Memory: the metadata (at most 256 MiB), a dictionary, and a page. */
#ifndef SGT_PARQUET_H
#define SGT_PARQUET_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/feed.h"

typedef struct sgt_parquet sgt_parquet;

typedef struct sgt_parquet_request {
    const sgt_corpus_file *file;
    const char *field; /* name of the column: "text", or "a.b" in a group */
    uint64_t row;      /* first row to read, unless the file's range begins later */
    /* hash of an earlier run, and the number of rows that it covers (sgt_parquet_hash); 0: there is
     * none */
    uint64_t hashed, hash;
    const sgt_stop *stop, *cancel;
    /* 1: the column is one to keep (kept.h). It may then hold numbers, and the file's range is
     * ignored, because it applies to the text's column */
    int kept;
} sgt_parquet_request;

/* Open the file and read its metadata. The file and the field must outlive the reader. */
int sgt_parquet_open(sgt_parquet **out, const sgt_parquet_request *r, sgt_error *err);

void sgt_parquet_close(sgt_parquet *p); /* NULL is allowed */

/* Set *rows to the number of rows in the whole file, and *bytes to the size of the column in it. */
void sgt_parquet_size(const sgt_parquet *p, uint64_t *rows, uint64_t *bytes);

/* Append the next page, or the next rows of a page that has many, to u's text and pages, and set
 * *rows to their number. With --skip-bad, if no page can be found in the rest of a row group, no
 * page is appended for these rows. Return 0; 1 at the end; or a negative SGT_E*. */
int sgt_parquet_next(sgt_parquet *p, sgt_unit *u, uint64_t *rows, sgt_error *err);

/* Return the hash of what was read: the sum of the hashes of the metadata and of all pages before
 * row *covered, each with its dictionary. It is a sum, because ranks divide a file. The metadata is
 * part of the hash for the range that begins at the start of the file. */
uint64_t sgt_parquet_hash(const sgt_parquet *p, uint64_t *covered);

/* Return approximately how many bytes of the file's range have been read (sgt_corpus_share). */
uint64_t sgt_parquet_raw(const sgt_parquet *p);

/* ---- pages ----
 *
 * feed.c and parquet_page.c call each other: a unit owns its pages, and a page is decoded into its
 * unit's text. A page with many rows, and a dictionary, have a unit of their own, into which they
 * are decoded once. */

/* most rows of a page that become documents at a time; a page of more rows is shared */
#define SGT_PARQUET_ROWS 16384

/* Physical types, numbered as in parquet.thrift. */
enum {
    SGT_PARQUET_INT32 = 1,
    SGT_PARQUET_INT64 = 2,
    SGT_PARQUET_FLOAT = 4,
    SGT_PARQUET_DOUBLE = 5,
    SGT_PARQUET_BYTES = 6
};

/* Encodings that this code names, numbered as in parquet.thrift. */
enum { SGT_PARQUET_PLAIN = 0, SGT_PARQUET_PLAIN_DICTIONARY = 2, SGT_PARQUET_RLE_DICTIONARY = 8 };

typedef struct sgt_parquet_column {
    /* physical type; if it is a number, a "string" of the column is the number's bytes */
    int type;
    int is_unsigned; /* 1: the integers are unsigned */
    int scale;       /* if the integers are decimals, their digits after the point; else 0 */
    /* definition level of a string; a row with a lower one is null; 0: no row is null */
    unsigned levels;
} sgt_parquet_column;

/* Contents of the head of a page. */
typedef struct sgt_parquet_head {
    /* SGT_PARQUET_DATA, _DICTIONARY or _DATA2; pages of other kinds are skipped */
    int kind;
    size_t size;        /* bytes of the head itself */
    size_t packed;      /* bytes of the page as stored, which follow the head */
    size_t unpacked;    /* bytes of the page when unpacked */
    uint64_t rows;      /* number of rows; for a dictionary, of strings */
    int encoding;       /* encoding of the strings */
    int level_encoding; /* encoding of the definition levels; only for data pages of version 1 */
    size_t levels;      /* version 2: bytes of definition levels, which come before the strings */
    /* version 2: 1 if the page has repetition levels; a column with one string per row has none */
    int repeats;
    int is_packed; /* version 2: 1 if the strings are compressed */
    int has_crc;
    uint32_t crc; /* CRC-32 of the page as stored */
} sgt_parquet_head;

/* a page that is decoded once for several users */
typedef struct sgt_parquet_shared sgt_parquet_shared;

/* Rows first ... first + count - 1 of a page. The page's packed bytes lie in the unit's text, or in
 * `whole`. */
typedef struct sgt_parquet_page {
    sgt_parquet_head head;
    uint64_t offset; /* offset of the page in the file */
    uint64_t first, count;
    size_t text; /* estimated bytes of these rows when unpacked */
    size_t at;   /* offset of the packed bytes in the unit's text */
    int codec;
    sgt_parquet_column column;
    /* dictionary of the column in the page's row group; NULL: there is none */
    sgt_parquet_shared *dictionary;
    /* the shared page that has these rows; NULL: the page has at most SGT_PARQUET_ROWS rows */
    sgt_parquet_shared *whole;
} sgt_parquet_page;

/* A string in the unit's text; `at` is SGT_PARQUET_NULL for a null row. */
#define SGT_PARQUET_NULL SIZE_MAX
typedef struct sgt_parquet_string {
    size_t at, length;
} sgt_parquet_string;

/* Decode the page's rows into `rows`, p->count of them; `rows` must have room for p->first +
 * p->count. Their bytes are written into u's text after u->used. The strings lie in order, with
 * only ASCII between them. path: the file's path, for errors. Any number of threads may call this,
 * each with its own unit. */
int sgt_parquet_page_decode(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                            const char *path, sgt_error *err);

/* Add the rows of the folded part p of u to *next, as records (sgt_unit_add_record). A document's
 * position, which decides its split, is the number of its row. Return 1 if a bad row ended the
 * unit. Any number of threads may call this, each with its own unit. */
int sgt_parquet_records(sgt_unit *u, const sgt_part *p, sgt_part *next, sgt_error *err);

/* Release the unit's pages, so that the unit can be filled again. */
void sgt_parquet_pages_drop(sgt_unit *u);

/* ---- shared by parquet.c and parquet_page.c ----
 *
 * parquet.c reads the metadata at the end of a file and the heads of pages, and goes through the
 * file. parquet_page.c decodes pages. */

/* Return the number of bytes of a number of this type, or 0 if the type is unsupported. */
static inline unsigned sgt_parquet_width(int type)
{
    return type == SGT_PARQUET_INT32 || type == SGT_PARQUET_FLOAT    ? 4
           : type == SGT_PARQUET_INT64 || type == SGT_PARQUET_DOUBLE ? 8
                                                                     : 0;
}

/* Read a varint at *at, and advance *at past it. If it does not end before `end` and within ten
 * bytes, set *bad and return 0. */
static inline uint64_t sgt_parquet_varint(const uint8_t **at, const uint8_t *end, int *bad)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t b = *(*at)++;
        n |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return n;
    }
    *bad = 1;
    return 0;
}

/* Limits on what a file may state: bytes of an unpacked page, and rows of a page. */
#define SGT_PARQUET_PAGE ((size_t)1 << 30)
#define SGT_PARQUET_PAGE_ROWS ((uint64_t)1 << 22)
/* more bytes than a page, or the text of a unit, usually has */
#define SGT_PARQUET_LIKELY ((size_t)16 << 20)

enum { SGT_PARQUET_DATA = 0, SGT_PARQUET_DICTIONARY = 2, SGT_PARQUET_DATA2 = 3 };

/* ---- codecs ---- */

/* Snappy and lz4_raw need libraries that a build may lack; such a build refuses files that use
 * them. Return NULL if this build can unpack the codec. Otherwise return its name, and set *remedy
 * to what the user can do. */
const char *sgt_parquet_codec_lacks(int64_t codec, const char **remedy);

/* ---- pages, and what they share ---- */

/* Return whether the page holds indices into a dictionary instead of strings. */
int sgt_parquet_has_indices(const sgt_parquet_head *h);

/* A page that is decoded once, by the first thread that needs it. It is either the dictionary of a
 * column in a row group, which the pages after it use, or a page of more rows than become documents
 * at a time, from which threads copy their rows.
 *
 * Create a shared page of *p; it keeps a reference to p's dictionary. Before any other call, the
 * caller writes the page's packed bytes to *packed. */
int sgt_parquet_shared_new(sgt_parquet_shared **out, const sgt_parquet_page *p, uint8_t **packed,
                           sgt_error *err);

/* take another reference; NULL is allowed */
sgt_parquet_shared *sgt_parquet_shared_use(sgt_parquet_shared *s);
/* drop a reference and set *s to NULL; *s may be NULL */
void sgt_parquet_shared_drop(sgt_parquet_shared **s);

#endif
