/* parquet.h: read one column of strings of a Parquet file, a document per row. One thread at a time
 * reads pages; any number of threads decode them (sgt_parquet_records).
 *
 *     sgt_parquet *p;
 *     if (sgt_parquet_open(&p, &r, &err) < 0) ...;
 *     while ((rc = sgt_parquet_next(p, unit, &rows, &err)) == 0) ...;
 *     sgt_parquet_close(p);
 *
 * Read are data pages of version 1 and 2 in PLAIN, dictionary and both delta encodings of strings,
 * and of numbers in DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT, packed by snappy, zstd, gzip, lz4_raw
 * or nothing. The column may lie in groups ("page.text"), but not in lists. A position in a file is
 * the number of a row, so a run can begin at any row. Ranks divide a large file by its bytes
 * (sgt_corpus_file): each of them reads the row groups whose middle lies in its range. The column's
 * bytes in the groups tell where that is, as if they filled the file. Memory: the metadata (at most
 * 256 MiB), a dictionary, and a page. */
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
    const char *field; /* "text", or "a.b" in a group */
    uint64_t row;      /* first row to read, if it is after the first one of the file's range */
    /* an earlier run's hash, and the rows that it covers (sgt_parquet_hash); 0: begin anew */
    uint64_t hashed, hash;
    const sgt_stop *stop, *cancel;
    /* the column is kept beside the text (kept.h): it may hold numbers, and the file's range, which
     * the text's column decides, is not looked at */
    int kept;
} sgt_parquet_request;

/* The file and the field must outlive the reader. */
int sgt_parquet_open(sgt_parquet **out, const sgt_parquet_request *r, sgt_error *err);

void sgt_parquet_close(sgt_parquet *p); /* NULL is allowed */

/* Set *rows to the rows of the whole file, and *bytes to the column's bytes in it. */
void sgt_parquet_size(const sgt_parquet *p, uint64_t *rows, uint64_t *bytes);

/* Append the next page, or the next rows of a page that has many, to u's text and pages; *rows is
 * their number. With --skip-bad, no page is appended for the rest of a row group in which none can
 * be found. Return 0; 1 at the end; or a negative SGT_E*. */
int sgt_parquet_next(sgt_parquet *p, sgt_unit *u, uint64_t *rows, sgt_error *err);

/* Return the hash of what was read: the sum of the hashes of the metadata and of all pages before
 * row *covered, each with its dictionary. A sum, because ranks divide a file. The metadata count
 * in the range that begins with the file. */
uint64_t sgt_parquet_hash(const sgt_parquet *p, uint64_t *covered);

/* Return about how many bytes of the file's range are read (sgt_corpus_share). */
uint64_t sgt_parquet_raw(const sgt_parquet *p);

/* ---- pages ----
 *
 * feed.c and parquet_page.c call each other: a unit owns its pages, and a page is decoded into its
 * unit's text. A page with many rows, and a dictionary, have a unit of their own, into which they are
 * decoded once. */

/* rows of a page that become documents at once; a page of more rows is shared */
#define SGT_PARQUET_ROWS 16384

/* Physical types, by parquet.thrift's numbers. */
enum {
    SGT_PARQUET_INT32 = 1,
    SGT_PARQUET_INT64 = 2,
    SGT_PARQUET_FLOAT = 4,
    SGT_PARQUET_DOUBLE = 5,
    SGT_PARQUET_BYTES = 6
};

/* Encodings that have names here, by parquet.thrift's numbers. */
enum { SGT_PARQUET_PLAIN = 0, SGT_PARQUET_PLAIN_DICTIONARY = 2, SGT_PARQUET_RLE_DICTIONARY = 8 };

typedef struct sgt_parquet_column {
    int type;        /* physical; of numbers, a "string" is the number's bytes */
    int is_unsigned; /* integers have no sign */
    int scale;       /* integers are decimals with as many digits after the point; else 0 */
    unsigned levels; /* definition level of a string; below it is null; 0: no row is null */
} sgt_parquet_column;

/* What the head of a page says. */
typedef struct sgt_parquet_head {
    int kind;           /* as below; pages of unknown kinds are skipped */
    size_t size;        /* bytes of the head itself */
    size_t packed;      /* bytes of the page, packed; they follow the head */
    size_t unpacked;    /* bytes of the page, unpacked */
    uint64_t rows;      /* number of rows; in a dictionary, of strings */
    int encoding;       /* encoding of the strings */
    int level_encoding; /* encoding of the definition levels; only in data pages of version 1 */
    size_t levels;      /* version 2: bytes of definition levels before the packed strings */
    /* version 2: 1 if the page has repetition levels; a column with one string per row has none */
    int repeats;
    int is_packed; /* version 2: 1 if the strings are packed */
    int has_crc;
    uint32_t crc; /* CRC-32 of the packed page */
} sgt_parquet_head;

typedef struct sgt_parquet_shared sgt_parquet_shared; /* a page that is decoded once */

/* Rows first ... first + count - 1 of a page whose packed bytes lie in the unit's text, or in
 * `whole`. */
typedef struct sgt_parquet_page {
    sgt_parquet_head head;
    uint64_t offset; /* offset of the page in the file */
    uint64_t first, count;
    size_t text; /* about how many bytes these rows have, unpacked */
    size_t at;   /* offset of the packed bytes in the unit's text */
    int codec;
    sgt_parquet_column column;
    sgt_parquet_shared *dictionary; /* of the column in the row group; NULL: there is none */
    sgt_parquet_shared *whole;      /* NULL: the page has no more rows than SGT_PARQUET_ROWS */
} sgt_parquet_page;

/* A string in the unit's text; a row that is null is at SGT_PARQUET_NULL. */
#define SGT_PARQUET_NULL SIZE_MAX
typedef struct sgt_parquet_string {
    size_t at, length;
} sgt_parquet_string;

/* Decode the page's rows into rows[p->count], which has room for p->first + p->count, and their bytes
 * into u's text after u->used. Strings are in order, with only ASCII between them. path: of the file,
 * for errors. Any number of threads may call this, each with its own unit. */
int sgt_parquet_page_decode(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                            const char *path, sgt_error *err);

/* Add the rows of the folded part p of u to *next (sgt_unit_add_record). A document's position, which
 * decides its split, is the number of its row. Return 1 if a bad row ended it. Any number of threads
 * may call this, each with its own unit. */
int sgt_parquet_records(sgt_unit *u, const sgt_part *p, sgt_part *next, sgt_error *err);

/* Release the unit's pages, so that the unit can be filled again. */
void sgt_parquet_pages_drop(sgt_unit *u);

/* ---- what the files of the reader share ----
 *
 * parquet.c reads the metadata at the end of a file and the heads of pages, and goes through the
 * file. parquet_page.c decodes pages. */

/* Return the bytes of a number of the type; 0: it is not one that we read. */
static inline unsigned sgt_parquet_width(int type)
{
    return type == SGT_PARQUET_INT32 || type == SGT_PARQUET_FLOAT    ? 4
           : type == SGT_PARQUET_INT64 || type == SGT_PARQUET_DOUBLE ? 8
                                                                     : 0;
}

/* Read a varint at *at. Set *bad and return 0 if it has no end before `end`, or within ten bytes. */
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

/* Limits on what a file may say: bytes of a page once unpacked, and rows of a page. */
#define SGT_PARQUET_PAGE ((size_t)1 << 30)
#define SGT_PARQUET_PAGE_ROWS ((uint64_t)1 << 22)
/* bytes that a page, or the text of a unit, usually has at most */
#define SGT_PARQUET_LIKELY ((size_t)16 << 20)

enum { SGT_PARQUET_DATA = 0, SGT_PARQUET_DICTIONARY = 2, SGT_PARQUET_DATA2 = 3 };

/* ---- codecs ---- */

/* Snappy and lz4_raw need libraries that a build can be without; then a file that uses them is
 * refused. Return NULL if this build can unpack the codec. Otherwise return its name, and set
 * *remedy to what the user can do. */
const char *sgt_parquet_codec_lacks(int64_t codec, const char **remedy);

/* ---- pages, and what they share ---- */

/* Return whether the page has indices of a dictionary in place of strings. */
int sgt_parquet_has_indices(const sgt_parquet_head *h);

/* A page that is decoded once, by the first thread that needs it: the dictionary of a column in a row
 * group, which the pages after it use, or a page of more rows than become documents at once, from
 * which the threads copy their rows.
 *
 * Make a shared page of *p, and use the dictionary of *p too. The caller fills in the page's packed
 * bytes at *packed, before any other call. */
int sgt_parquet_shared_new(sgt_parquet_shared **out, const sgt_parquet_page *p, uint8_t **packed,
                           sgt_error *err);

sgt_parquet_shared *sgt_parquet_shared_use(sgt_parquet_shared *s); /* NULL is allowed */
void sgt_parquet_shared_drop(sgt_parquet_shared **s);              /* to NULL, which is allowed */

#endif
