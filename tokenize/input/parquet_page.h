/* parquet_page.h: one page of a column, from its packed bytes to its strings. The feed reads pages
 * (parquet.h), and the threads that encode unpack and decode them, each its own.
 *
 * unit.c, parquet_page.c, parquet_body.c and parquet_dictionary.c call each other: a unit owns its
 * pages, a page is decoded into its unit's text, a body has a unit of its own, into which it decodes
 * a page, and a dictionary is itself a page, which its first user unpacks. */
#ifndef SGT_PARQUET_PAGE_H
#define SGT_PARQUET_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/unit.h"

/* Limits on what a file may say: bytes of a page once unpacked, and rows of a page. */
#define SGT_PARQUET_PAGE ((size_t)1 << 30)
#define SGT_PARQUET_PAGE_ROWS ((uint64_t)1 << 22)
/* rows of a page that become documents at once; a page of more rows is shared (parquet_body.h) */
#define SGT_PARQUET_ROWS 16384

/* What the head of a page says. */
typedef struct sgt_parquet_head {
    int kind;           /* SGT_PARQUET_DATA ...; pages of any other kind are skipped */
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

enum {
    SGT_PARQUET_DATA = 0,
    SGT_PARQUET_INDEX = 1,
    SGT_PARQUET_DICTIONARY = 2,
    SGT_PARQUET_DATA2 = 3
};

/* Read the head of a page at p[n]. Return NULL, or what is wrong; *more is 1 if more bytes than n
 * may complete the head. */
const char *sgt_parquet_head_read(sgt_parquet_head *h, const uint8_t *p, size_t n, int *more);

/* Return whether the page has indices of a dictionary in place of strings. */
int sgt_parquet_has_indices(const sgt_parquet_head *h);

/* Return NULL, or that the packed page has another checksum than its head says. */
const char *sgt_parquet_check_crc(const sgt_parquet_head *h, const uint8_t *packed);

typedef struct sgt_parquet_dictionary sgt_parquet_dictionary; /* parquet_dictionary.h */
typedef struct sgt_parquet_body sgt_parquet_body;             /* parquet_body.h */

/* Rows first ... first + count - 1 of a page whose packed bytes lie in the unit's text, or in
 * `body`. */
typedef struct sgt_parquet_page {
    sgt_parquet_head head;
    uint64_t offset; /* offset of the page in the file */
    uint64_t first, count;
    size_t text;     /* about how many bytes these rows have, unpacked */
    size_t at;       /* offset of the packed bytes in the unit's text */
    int codec, type; /* type: parquet_meta.h; of numbers, a "string" is the number's bytes */
    unsigned levels; /* definition level of a string */
    sgt_parquet_dictionary *dictionary;
    sgt_parquet_body *body; /* NULL: the page has no more rows than SGT_PARQUET_ROWS */
} sgt_parquet_page;

/* A string in the unit's text; a row that is null is at SGT_PARQUET_NULL. */
#define SGT_PARQUET_NULL SIZE_MAX
typedef struct sgt_parquet_string {
    size_t at, length;
} sgt_parquet_string;

/* Find n strings or numbers of the encoding PLAIN in text[end], from *at on. Their positions are
 * offsets in `text`. The lengths before strings become zeros. Return NULL, or what is wrong. */
const char *sgt_parquet_take_plain(int type, uint8_t *text, size_t *at, size_t end,
                                   sgt_parquet_string *out, size_t n);

/* Decode the page's rows into rows[p->count], and their bytes into u's text after u->used. Strings
 * are in order, with only ASCII between them. The exception is a page whose dictionary was unpacked
 * into u's text: there every string has ASCII before and after it, and strings may be in any order,
 * unused, or shared by rows, which together have no more bytes than that text. path: of the file,
 * for errors. Any number of threads may call this, each with its own unit. */
int sgt_parquet_page_decode(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                            const char *path, sgt_error *err);

/* Do the same without p->body, and leave strings of a dictionary where they are, however often they
 * repeat. Positions are in *strings: u's text, or that of the dictionary, which lives as long as it
 * is used. */
int sgt_parquet_page_strings(const sgt_parquet_page *p, sgt_unit *u, sgt_parquet_string *rows,
                             const uint8_t **strings, const char *path, sgt_error *err);

/* Copy the strings of rows[count] into u's text after u->used, and set their positions to those
 * there. strings: what the positions are in, which may be u's text. path, offset: of the page, for
 * errors. */
int sgt_parquet_rows_copy(sgt_unit *u, sgt_parquet_string *rows, uint64_t count,
                          const uint8_t *strings, const char *path, uint64_t offset,
                          sgt_error *err);

/* Release the unit's pages, so that the unit can be filled again. */
void sgt_parquet_pages_drop(sgt_unit *u);

#endif
