/* parquet_meta.h: what the metadata at the end of a Parquet file say of one column of strings. */
#ifndef SGT_PARQUET_META_H
#define SGT_PARQUET_META_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/json_line.h"

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

/* Physical types, by parquet.thrift's numbers. */
enum {
    SGT_PARQUET_INT32 = 1,
    SGT_PARQUET_INT64 = 2,
    SGT_PARQUET_FLOAT = 4,
    SGT_PARQUET_DOUBLE = 5,
    SGT_PARQUET_BYTES = 6
};

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

#endif
