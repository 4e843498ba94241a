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
/* bytes that a page, or the text of a unit, usually has at most */
#define SGT_PARQUET_LIKELY ((size_t)16 << 20)

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

/* A page that is decoded once, by the first thread that needs it: the dictionary of a column in a row
 * group, which the pages after it use, or a page of more rows than become documents at once, from
 * which the threads copy their rows.
 *
 * Make a shared page of *p, and use the dictionary of *p too. The caller fills in the page's packed
 * bytes at *packed, before any other call. */
int sgt_parquet_shared_new(sgt_parquet_shared **out, const sgt_parquet_page *p, uint8_t **packed,
                           sgt_error *err);

sgt_parquet_shared *sgt_parquet_shared_use(sgt_parquet_shared *s); /* NULL is allowed */
void sgt_parquet_shared_drop(sgt_parquet_shared *s);               /* NULL is allowed */

#endif
