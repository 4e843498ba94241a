/* parquet_format.h: what the files of the Parquet reader share. parquet_meta.c reads the metadata at
 * the end of a file and the heads of pages, parquet_page.c decodes pages, and parquet.c goes through
 * the file. */
#ifndef SGT_PARQUET_FORMAT_H
#define SGT_PARQUET_FORMAT_H

#include "tokenize/input/parquet.h"

/* ---- metadata ---- */

/* A row group: the pages of the column lie in bytes at ... end - 1 of the file. */
typedef struct sgt_parquet_group {
    uint64_t row, rows; /* its first row in the file, and their number */
    uint64_t at, end;
    int codec;
} sgt_parquet_group;

typedef struct sgt_parquet_meta {
    sgt_parquet_group *groups;
    size_t count;
    uint64_t rows;
    int type;        /* SGT_PARQUET_BYTES, or that of numbers */
    int is_unsigned; /* integers have no sign */
    int scale;       /* integers are decimals with as many digits after the point; else 0 */
    unsigned levels; /* definition level of a string; below it is null; 0: no row is null */
} sgt_parquet_meta;

/* The file that the metadata come from, for messages and checks. */
typedef struct sgt_parquet_where {
    const char *path;
    uint64_t size;   /* size of the file in bytes */
    uint64_t offset; /* offset of the metadata in the file */
    const char *field;
    int kept; /* the column may hold numbers, too */
} sgt_parquet_where;

/* Return the bytes of a number of the type; 0: it is not one that we read. */
static inline unsigned sgt_parquet_width(int type)
{
    return type == SGT_PARQUET_INT32 || type == SGT_PARQUET_FLOAT    ? 4
           : type == SGT_PARQUET_INT64 || type == SGT_PARQUET_DOUBLE ? 8
                                                                     : 0;
}

/* Read the metadata, bytes[n]. Return SGT_EFORMAT for a file that is damaged, or whose column is
 * missing, encrypted, packed by another codec, or no single string per row. */
int sgt_parquet_meta_read(sgt_parquet_meta *m, const uint8_t *bytes, size_t n,
                          const sgt_parquet_where *w, sgt_error *err);
void sgt_parquet_meta_free(sgt_parquet_meta *m);

/* Limits on what a file may say: bytes of a page once unpacked, and rows of a page. */
#define SGT_PARQUET_PAGE ((size_t)1 << 30)
#define SGT_PARQUET_PAGE_ROWS ((uint64_t)1 << 22)

enum { SGT_PARQUET_DATA = 0, SGT_PARQUET_DICTIONARY = 2, SGT_PARQUET_DATA2 = 3 };

/* Read the head of a page at p[n]. Return NULL, or what is wrong; *more is 1 if more bytes than n
 * may complete the head. */
const char *sgt_parquet_head_read(sgt_parquet_head *h, const uint8_t *p, size_t n, int *more);

/* ---- codecs ---- */

enum {
    SGT_PARQUET_PLAIN = 0,
    SGT_PARQUET_SNAPPY = 1,
    SGT_PARQUET_GZIP = 2,
    SGT_PARQUET_ZSTD = 6,
    SGT_PARQUET_LZ4_RAW = 7
};

/* Snappy and lz4_raw need libraries that a build can be without; then a file that uses them is
 * refused. Return NULL if this build can unpack the codec. Otherwise return its name, and set
 * *remedy to what the user can do. */
const char *sgt_parquet_codec_lacks(int codec, const char **remedy);

/* Unpack in[n] to exactly `size` bytes. Return NULL, or what is wrong. Any number of threads may
 * call this. */
const char *sgt_parquet_unpack(int codec, const uint8_t *in, size_t n, uint8_t *out, size_t size);

/* ---- pages, and what they share ---- */

/* Return whether the page has indices of a dictionary in place of strings. */
int sgt_parquet_has_indices(const sgt_parquet_head *h);

/* The dictionary of a column in a row group, which its pages share.
 *
 * Texts seldom repeat, so most dictionaries of texts serve one page: writers give a dictionary up
 * when it is full. The first page to open a dictionary unpacks it into its own unit, where strings
 * stay. Only when a second page opens it is it unpacked once more, where all can read it.
 *
 * Make a dictionary from a page at `offset` of the file. It takes over the caller's use of `old`,
 * an earlier one or NULL, also on an error, and uses its memory if no page uses it any more. The
 * caller fills in the page's packed bytes at *packed, before any other call. */
int sgt_parquet_dictionary_new(sgt_parquet_dictionary **out, sgt_parquet_dictionary *old,
                               const sgt_parquet_head *h, int codec, int type, uint64_t offset,
                               uint8_t **packed, sgt_error *err);

sgt_parquet_dictionary *sgt_parquet_dictionary_use(sgt_parquet_dictionary *d); /* NULL is allowed */
void sgt_parquet_dictionary_drop(sgt_parquet_dictionary *d);                   /* NULL is allowed */

/* Return about how many bytes the text of so many rows has; 0 if d is NULL. */
uint64_t sgt_parquet_dictionary_text(const sgt_parquet_dictionary *d, uint64_t rows);

/* A page of more rows than are decoded at once, which the threads that decode its rows share. The
 * first of them unpacks and decodes the whole page, and all copy their rows from it.
 *
 * Make a body for the page *p, whose dictionary it also uses. The caller fills in the page's packed
 * bytes at *packed, before any other call. */
int sgt_parquet_body_new(sgt_parquet_body **out, const sgt_parquet_page *p, uint8_t **packed,
                         sgt_error *err);

sgt_parquet_body *sgt_parquet_body_use(sgt_parquet_body *b); /* NULL is allowed */
void sgt_parquet_body_drop(sgt_parquet_body *b);             /* NULL is allowed */

#endif
