/* table.h: what the files of shuffled documents hold (shuffle.h). A table appears when all its files
 * are on disk. */
#ifndef SGT_TABLE_H
#define SGT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_table_bucket {
    uint64_t documents, tokens;
} sgt_table_bucket;

int sgt_table_write(const char *path, const sgt_table_bucket *table, size_t count, sgt_error *err);
/* Read a table. Return 1 if it is valid and has `count` buckets, 0 if not, or a negative SGT_E*. */
int sgt_table_read(const char *path, sgt_table_bucket *table, size_t count, sgt_error *err);

#endif
