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
    /* definition level of a string; a lower level is a null row; 0: no row is null */
    unsigned levels;
} sgt_parquet_meta;

/* The file that the metadata come from, for messages and checks. */
typedef struct sgt_parquet_where {
    const char *path;
    uint64_t size;   /* size of the file in bytes */
    uint64_t offset; /* offset of the metadata in the file */
    const char *field;
} sgt_parquet_where;

/* Read the metadata, bytes[n]. Return SGT_EFORMAT for a file that is damaged, or whose column is
 * missing, encrypted, packed by another codec, or no single string per row. */
int sgt_parquet_meta_read(sgt_parquet_meta *m, const uint8_t *bytes, size_t n,
                          const sgt_parquet_where *w, sgt_error *err);
void sgt_parquet_meta_free(sgt_parquet_meta *m);

#endif
