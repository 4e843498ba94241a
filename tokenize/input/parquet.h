/* parquet.h: reads one column of strings of a Parquet file, one document per row. Only one thread
 * at a time may read pages; any number of threads may decode them (sgt_parquet_records).
 *
 *     sgt_parquet *p;
 *     if (sgt_parquet_open(&p, &r, &err) < 0) ...;
 *     while ((rc = sgt_parquet_next(p, unit, &rows, &err)) == 0) ...;
 *     sgt_parquet_close(p);
 *
 * These are supported:
 * - data pages of version 1 and 2;
 * - strings in the encodings PLAIN, dictionary, and both delta encodings; numbers also in
 *   DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT;
 * - the codecs snappy, zstd, gzip and lz4_raw;
 * - columns in groups ("page.text"), but not in lists.
 *
 * A position in a file is the index of a row, so a run can begin at any row. Ranks divide a large
 * file by its bytes (sgt_corpus_file): each reads the row groups whose middle lies in its range.
 * The middle of a group is computed as if the file held only this column. Memory: the metadata (at
 * most 256 MiB), a dictionary, and a page. */
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
    const char *field; /* name of the column: "text", or "a.b" for column b of group a */
    /* index of the first row to deliver; if the file's range begins later, delivery begins there */
    uint64_t row;
    /* What an earlier run has hashed (sgt_parquet_hash). hashed: number of rows covered; hash:
     * their hash. Both are 0 if there was no earlier run. */
    uint64_t hashed, hash;
    const sgt_stop *stop, *cancel;
    /* 1 if the column is for --keep-fields (kept.h), not for the text. In this case, it may hold
     * numbers, and the file's range, which applies to the text column, is ignored. */
    int kept;
} sgt_parquet_request;

/* Open a Parquet file and read its metadata. r->file and r->field must outlive *out, which the
 * caller closes. */
int sgt_parquet_open(sgt_parquet **out, const sgt_parquet_request *r, sgt_error *err);

void sgt_parquet_close(sgt_parquet *p); /* NULL is allowed */

/* Set *rows to the number of rows in the whole file, and *bytes to the size of the column in the
 * file. */
void sgt_parquet_size(const sgt_parquet *p, uint64_t *rows, uint64_t *bytes);

/* Append the next page of the column to u's text and pages, and set *rows to the number of its
 * rows. Return 0, or 1 at the end, or a negative SGT_E*. If a page has more than SGT_PARQUET_ROWS
 * rows, each call appends at most that many of them. With --skip-bad, if the rest of a row group
 * has no readable page, no page is appended, but *rows is the number of its rows. */
int sgt_parquet_next(sgt_parquet *p, sgt_unit *u, uint64_t *rows, sgt_error *err);

/* Return the hash of what was read, and set *covered to the number of rows that it covers. It is
 * the sum of the metadata's hash and the hashes of all pages before row *covered, each with its
 * dictionary. A sum is used so that the hashes of ranks that divide a file can be added. Only the
 * rank that reads the start of the file includes the metadata. */
uint64_t sgt_parquet_hash(const sgt_parquet *p, uint64_t *covered);

/* Return the approximate number of bytes of the file's range that have been read
 * (sgt_corpus_share). It is used to show progress. */
uint64_t sgt_parquet_raw(const sgt_parquet *p);

/* ---- pages ----
 *
 * A unit owns its pages, and a page is decoded into its unit's text. Therefore, feed.c and
 * parquet_page.c call each other. A dictionary is decoded only once, into a separate unit, and so
 * is a page with many rows. */

/* Maximum number of rows of a page that are added to a unit (a thread's piece of work) at a time. A
 * page with more rows becomes a shared page, from which several units take rows. */
#define SGT_PARQUET_ROWS 16384

/* Physical types of columns, with their numbers in parquet.thrift. */
enum {
    SGT_PARQUET_INT32 = 1,
    SGT_PARQUET_INT64 = 2,
    SGT_PARQUET_FLOAT = 4,
    SGT_PARQUET_DOUBLE = 5,
    SGT_PARQUET_BYTES = 6
};

/* Encodings of pages that this code refers to by name, with their numbers in parquet.thrift. */
enum { SGT_PARQUET_PLAIN = 0, SGT_PARQUET_PLAIN_DICTIONARY = 2, SGT_PARQUET_RLE_DICTIONARY = 8 };

typedef struct sgt_parquet_column {
    /* physical type of the values. If they are numbers, comments below that speak of strings mean
     * the bytes of these numbers. */
    int type;
    int is_unsigned; /* 1: the integers are unsigned */
    /* number of digits after the decimal point if the integers are Parquet decimals; else 0 */
    int scale;
    /* definition level of a row that has a value; a row with a lower level is null. If it is 0, no
     * row is null. */
    unsigned levels;
} sgt_parquet_column;

/* The fields of a page's header. */
typedef struct sgt_parquet_head {
    /* kind of page: SGT_PARQUET_DATA, _DICTIONARY or _DATA2; other kinds are skipped */
    int kind;
    size_t size;        /* bytes of the head itself */
    size_t packed;      /* size in bytes of the page as stored, without its header */
    size_t unpacked;    /* bytes of the page when unpacked */
    uint64_t rows;      /* number of rows in a data page, or of strings in a dictionary page */
    int encoding;       /* encoding of the strings */
    int level_encoding; /* encoding of the definition levels in data pages of version 1 */
    /* data pages of version 2: size in bytes of the definition levels, which precede the strings */
    size_t levels;
    /* data pages of version 2: 1 if the page has repetition levels, which a column with one string
     * per row cannot have */
    int repeats;
    int is_packed; /* data pages of version 2: 1 if the strings are compressed */
    int has_crc;
    uint32_t crc; /* CRC-32 of the page as stored */
} sgt_parquet_head;

/* a page that is decoded once and used by several pages or threads */
typedef struct sgt_parquet_shared sgt_parquet_shared;

/* Rows first ... first + count - 1 of a page. The page's compressed bytes are at offset `at` of the
 * unit's text or, if several units take rows from the page, in the shared page `whole`. */
typedef struct sgt_parquet_page {
    sgt_parquet_head head;
    uint64_t offset; /* offset of the page in the file */
    uint64_t first, count;
    size_t text; /* estimated uncompressed size in bytes of these rows */
    size_t at;   /* offset of the compressed bytes in the unit's text */
    int codec;
    sgt_parquet_column column;
    /* dictionary of the column in this page's row group; NULL: there is none */
    sgt_parquet_shared *dictionary;
    /* shared page that contains these rows; NULL if the page has at most SGT_PARQUET_ROWS rows */
    sgt_parquet_shared *whole;
} sgt_parquet_page;

/* value of sgt_parquet_string.at for a row that is null */
#define SGT_PARQUET_NULL SIZE_MAX
typedef struct sgt_parquet_string {
    size_t at, length;
} sgt_parquet_string;

/* Decode the p->count rows of the page into `rows`, and append the strings' bytes to u's text,
 * after u->used. The strings are in order, with only ASCII bytes between them. `rows` must have
 * room for p->first + p->count entries: decoding starts at the page's first row, and afterwards the
 * first p->first rows are dropped. path: the file's path, for errors. Any number of threads may
 * call this, each with a different unit. */
int sgt_parquet_page_decode(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                            const char *path, sgt_error *err);

/* Add the rows of part p of u, which is not yet unfolded, to *next as records
 * (sgt_unit_add_record). A document's position, which decides its split, is the number of its row.
 * Return 1 if a bad row ended the unit. Any number of threads may call this, each with a different
 * unit. */
int sgt_parquet_records(sgt_unit *u, const sgt_part *p, sgt_part *next, sgt_error *err);

/* Release all pages of the unit, so that the unit can be filled again. */
void sgt_parquet_pages_drop(sgt_unit *u);

/* ---- shared by parquet.c and parquet_page.c ----
 *
 * parquet.c reads the metadata and the headers of pages, and goes from page to page. parquet_page.c
 * decodes pages. */

/* Return the size in bytes of a number of this type, or 0 if the type is not a supported number. */
static inline unsigned sgt_parquet_width(int type)
{
    return type == SGT_PARQUET_INT32 || type == SGT_PARQUET_FLOAT    ? 4
           : type == SGT_PARQUET_INT64 || type == SGT_PARQUET_DOUBLE ? 8
                                                                     : 0;
}

/* Read a varint at *at, and advance *at past it. If the varint does not end before `end` or within
 * ten bytes, set *bad to 1 and return 0. */
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

/* maximum uncompressed size in bytes that the header of a page may state */
#define SGT_PARQUET_PAGE ((size_t)1 << 30)
#define SGT_PARQUET_PAGE_ROWS ((uint64_t)1 << 22)
/* Size in bytes that a page, or the text of a unit, rarely exceeds. Memory beyond this size is
 * allocated only when the data is there, because a damaged header may state any size. */
#define SGT_PARQUET_LIKELY ((size_t)16 << 20)

enum { SGT_PARQUET_DATA = 0, SGT_PARQUET_DICTIONARY = 2, SGT_PARQUET_DATA2 = 3 };

/* ---- codecs ---- */

/* Return NULL if this build can decompress the codec. Otherwise return the codec's name, and set
 * *remedy to a text that tells the user what to do. A build may lack the libraries for snappy and
 * lz4_raw. */
const char *sgt_parquet_codec_lacks(int64_t codec, const char **remedy);

/* ---- pages and shared pages ---- */

/* Return 1 if the page holds indices into a dictionary instead of strings. */
int sgt_parquet_has_indices(const sgt_parquet_head *h);

/* Create a shared page from *p: a page that is decoded once, by the first thread that needs it, and
 * used by several pages or threads. It is either the dictionary of a column in a row group, or a
 * page with more than SGT_PARQUET_ROWS rows. It keeps a reference to p's dictionary. Before any
 * other call, the caller must write the page's compressed bytes to *packed. */
int sgt_parquet_shared_new(sgt_parquet_shared **out, const sgt_parquet_page *p, uint8_t **packed,
                           sgt_error *err);

/* Add a reference to s, which may be NULL, and return s. */
sgt_parquet_shared *sgt_parquet_shared_use(sgt_parquet_shared *s);
/* Drop a reference to *s, which may be NULL, and set *s to NULL. */
void sgt_parquet_shared_drop(sgt_parquet_shared **s);

#endif
