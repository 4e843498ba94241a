/* parquet.h: reads a column of strings from a Parquet file, one document per row. Only one thread
 * at a time may read the pages of a file. Any number of threads may decode pages at the same time
 * (sgt_parquet_records).
 *
 *     sgt_parquet *p;
 *     if (sgt_parquet_open(&p, &r, &err) < 0) ...;
 *     while ((rc = sgt_parquet_next(p, unit, &rows, &err)) == 0) ...;
 *     sgt_parquet_close(p);
 *
 * These features of Parquet are supported:
 * - data pages of version 1 and 2;
 * - strings in the encodings PLAIN, dictionary, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY;
 *   numbers in PLAIN, dictionary, DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT;
 * - the codecs snappy, zstd, gzip and lz4_raw;
 * - columns inside groups ("page.text"), but not inside lists.
 *
 * A position in a file is the index of a row, so a run can begin at any row. A large file is
 * divided among ranks (processes) by ranges of bytes (sgt_corpus_file). A rank reads those row
 * groups whose middle is in the rank's range. The middle of a row group is computed as if the file
 * held only the column that is read. Reading takes memory for the metadata (at most 256 MiB), a
 * dictionary, and a page. */
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
    /* name of the column to read, such as "text", or "a.b" for the column b in the group a */
    const char *field;
    /* index of the first row to deliver; rows before the range of the file that this rank reads
     * (sgt_corpus_file) are not delivered */
    uint64_t row;
    /* The hash that an earlier, interrupted run computed (sgt_parquet_hash). hashed: number of rows
     * that the hash covers. hash: the hash. Both are 0 if there was no earlier run. */
    uint64_t hashed, hash;
    const sgt_stop *stop, *cancel;
    /* 1 if the column is read for --keep-fields (kept.h); 0 if it is the column with the text. If
     * it is 1, the column may hold numbers, and the range of the file (sgt_corpus_file), which
     * applies only to the text column, is ignored. */
    int kept;
} sgt_parquet_request;

/* Open the Parquet file r->file, read its metadata, and set *out to a reader, which the caller
 * closes. r->file and r->field must outlive the reader. */
int sgt_parquet_open(sgt_parquet **out, const sgt_parquet_request *r, sgt_error *err);

void sgt_parquet_close(sgt_parquet *p); /* NULL is allowed */

/* Set *rows to the number of rows in the file, and *bytes to the number of bytes of the file that
 * the pages of the column take. */
void sgt_parquet_size(const sgt_parquet *p, uint64_t *rows, uint64_t *bytes);

/* Append the next page of the column to the unit u: append the compressed bytes to the text of u,
 * and a description to `pages`. Set *rows to the number of rows appended. If a page has more than
 * SGT_PARQUET_ROWS rows, each call appends at most SGT_PARQUET_ROWS of them. With --skip-bad, if
 * the next page of a row group cannot be read, append nothing, skip the rest of the row group, and
 * set *rows to the number of rows skipped. Return 0, 1 at the end of the column, or a negative
 * SGT_E*. */
int sgt_parquet_next(sgt_parquet *p, sgt_unit *u, uint64_t *rows, sgt_error *err);

/* Return a hash of the pages that have been read, and set *covered to the index of the row before
 * which they end. The hash is the sum of the hash of the metadata, the hashes of all pages before
 * row *covered, and the hashes of their dictionaries. It is a sum so that the hashes of ranks among
 * which a file is divided can be added. The metadata is included only by the rank that reads the
 * start of the file. */
uint64_t sgt_parquet_hash(const sgt_parquet *p, uint64_t *covered);

/* Return approximately how many bytes have been read of those that this process reads of the file
 * (sgt_corpus_share). The number is used to show progress. */
uint64_t sgt_parquet_raw(const sgt_parquet *p);

/* ---- pages ----
 *
 * A unit (the text that a thread tokenizes at a time; feed.h) owns pages, and a page is decoded
 * into the text of its unit. For this reason, feed.c and parquet_page.c call each other. A
 * dictionary is decoded only once, into a separate unit. So is a page with more than
 * SGT_PARQUET_ROWS rows. */

/* Maximum number of rows that one call adds from a page to a unit (the text that a thread tokenizes
 * at a time). A page with more rows becomes a shared page, from which several units take rows. */
#define SGT_PARQUET_ROWS 16384

/* Those physical types of columns that are supported, with their numbers in parquet.thrift. */
enum {
    SGT_PARQUET_INT32 = 1,
    SGT_PARQUET_INT64 = 2,
    SGT_PARQUET_FLOAT = 4,
    SGT_PARQUET_DOUBLE = 5,
    SGT_PARQUET_BYTES = 6
};

/* Those encodings of pages to which the code refers by name, with their numbers in
 * parquet.thrift. */
enum { SGT_PARQUET_PLAIN = 0, SGT_PARQUET_PLAIN_DICTIONARY = 2, SGT_PARQUET_RLE_DICTIONARY = 8 };

typedef struct sgt_parquet_column {
    /* physical type of the values in the column. If the values are numbers, "string" in the
     * comments below means the bytes of a number. */
    int type;
    int is_unsigned; /* 1: the integers are unsigned */
    /* number of digits after the decimal point if the column holds Parquet decimals, stored as
     * integers; otherwise 0 */
    int scale;
    /* definition level (a term of the Parquet format) of a row that has a value. A row with a lower
     * definition level is null. If `levels` is 0, no row is null. */
    unsigned levels;
} sgt_parquet_column;

/* The fields of a page's header. */
typedef struct sgt_parquet_head {
    /* kind of the page: SGT_PARQUET_DATA, SGT_PARQUET_DICTIONARY or SGT_PARQUET_DATA2; pages of
     * other kinds are skipped */
    int kind;
    size_t size;     /* bytes of the head itself */
    size_t packed;   /* size in bytes of the page in the file, without its header */
    size_t unpacked; /* bytes of the page when unpacked */
    uint64_t rows;   /* number of rows of a data page, or number of strings of a dictionary page */
    int encoding;    /* encoding of the strings */
    int level_encoding; /* in a data page of version 1: encoding of the definition levels */
    /* in a data page of version 2: size in bytes of the definition levels, which are stored before
     * the strings */
    size_t levels;
    /* in a data page of version 2: 1 if the page has repetition levels, otherwise 0. A column with
     * one string per row has none, so 1 is an error. */
    int repeats;
    int is_packed; /* in a data page of version 2: 1 if the strings are compressed */
    int has_crc;
    uint32_t crc; /* CRC-32 of the page as stored */
} sgt_parquet_head;

/* a dictionary or a page with many rows, which is decoded once and used by several pages or
 * threads */
typedef struct sgt_parquet_shared sgt_parquet_shared;

/* `count` consecutive rows of a page, from row `first` of the page on. The compressed bytes of the
 * page are at offset `at` of the unit's text or, if several units use the page, in `whole`. */
typedef struct sgt_parquet_page {
    sgt_parquet_head head;
    uint64_t offset; /* offset of the page in the file */
    uint64_t first, count;
    size_t text; /* estimated uncompressed size in bytes of these rows */
    size_t at;   /* offset of the page's compressed bytes in the unit's text */
    int codec;
    sgt_parquet_column column;
    /* dictionary of the column in the row group of this page; NULL if there is none */
    sgt_parquet_shared *dictionary;
    /* shared page that contains these rows; NULL if the page has at most SGT_PARQUET_ROWS rows */
    sgt_parquet_shared *whole;
} sgt_parquet_page;

/* value of the field `at` of sgt_parquet_string for a row that is null */
#define SGT_PARQUET_NULL SIZE_MAX
typedef struct sgt_parquet_string {
    size_t at, length;
} sgt_parquet_string;

/* Decode the p->count rows of the page *p. Store the offset and the length of each row's string in
 * `rows`, and append the bytes of the strings to the text of the unit u, after u->used. The strings
 * are in order, with only ASCII bytes between them. `rows` must have room for p->first + p->count
 * elements, because all rows from the first row of the page on are decoded before the first
 * p->first of them are dropped. path: path of the file, for error messages. Any number of threads
 * may call this at the same time, each with a different unit. */
int sgt_parquet_page_decode(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                            const char *path, sgt_error *err);

/* Add one record to the unit u for each row of its part p, and collect the records in *next (see
 * sgt_unit_add_record). p must hold rows of a page. A document's row index determines whether it
 * belongs to the training or the validation split. Return 0, 1 if a bad row must stop the run, or a
 * negative SGT_E*. Any number of threads can call this at the same time, each with a different
 * unit. */
int sgt_parquet_records(sgt_unit *u, const sgt_part *p, sgt_part *next, sgt_error *err);

/* Remove all pages from the unit, so that it can be filled again, and drop the unit's references to
 * shared pages. */
void sgt_parquet_pages_drop(sgt_unit *u);

/* ---- parquet.c and parquet_page.c ----
 *
 * These declarations are used by both files. parquet.c reads the metadata and the header of each
 * page, and advances from page to page. parquet_page.c decodes pages. */

/* Return the size in bytes of a number of the physical type `type`, or 0 if `type` is not the type
 * of a supported number. */
static inline unsigned sgt_parquet_width(int type)
{
    return type == SGT_PARQUET_INT32 || type == SGT_PARQUET_FLOAT    ? 4
           : type == SGT_PARQUET_INT64 || type == SGT_PARQUET_DOUBLE ? 8
                                                                     : 0;
}

/* Return the varint (variable-length integer) at *at, and advance *at past it. If the varint does
 * not end before `end`, or is longer than ten bytes, set *bad to 1 and return 0. */
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

/* maximum compressed or uncompressed size in bytes of a page */
#define SGT_PARQUET_PAGE ((size_t)1 << 30)
#define SGT_PARQUET_PAGE_ROWS ((uint64_t)1 << 22)
/* Size in bytes that a page, or the text of a unit, rarely exceeds. If the header of a page states
 * a larger size, which may be wrong if the header is damaged, the memory is allocated only when the
 * data has been read. */
#define SGT_PARQUET_LIKELY ((size_t)16 << 20)

enum { SGT_PARQUET_DATA = 0, SGT_PARQUET_DICTIONARY = 2, SGT_PARQUET_DATA2 = 3 };

/* ---- codecs ---- */

/* Return NULL if this build of sgt can decompress data compressed with the codec. Otherwise return
 * the name of the codec, and set *remedy to a message that tells the user what to do. A build may
 * lack the libraries for snappy and lz4_raw. */
const char *sgt_parquet_codec_lacks(int64_t codec, const char **remedy);

/* ---- pages and shared pages ---- */

/* Return 1 if the page with the header *h holds indices into a dictionary; return 0 if it holds
 * strings. */
int sgt_parquet_has_indices(const sgt_parquet_head *h);

/* Create a shared page from *p: a page that is decoded once, by the first thread that needs it, and
 * used by several pages or threads. It is either the dictionary of a column in a row group, or a
 * page with more than SGT_PARQUET_ROWS rows. The shared page holds a reference to p->dictionary.
 * Set *packed to a buffer, to which the caller must write the compressed bytes of the page before
 * any other call. */
int sgt_parquet_shared_new(sgt_parquet_shared **out, const sgt_parquet_page *p, uint8_t **packed,
                           sgt_error *err);

/* Add a reference to the shared page s, and return s. s may be NULL. */
sgt_parquet_shared *sgt_parquet_shared_use(sgt_parquet_shared *s);
/* Drop a reference to the shared page *s, and set *s to NULL. The last drop frees the page. *s may
 * be NULL. */
void sgt_parquet_shared_drop(sgt_parquet_shared **s);

#endif
