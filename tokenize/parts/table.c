/* table.c: the file is MAGIC, the buckets, and a checksum of both. */
#include "tokenize/parts/table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"

#define MAGIC UINT64_C(0x31656c6666756873) /* "shuffle1" */

int sgt_table_write(const char *path, const sgt_table_bucket *table, size_t count, sgt_error *err)
{
    size_t n = 8 + count * sizeof *table;
    uint64_t *words = malloc(n + 8);
    if (!words) return sgt_fail_memory(err, path);
    words[0] = MAGIC;
    memcpy(words + 1, table, n - 8);
    words[n / 8] = XXH3_64bits(words, n);
    int rc = sgt_file_put(path, words, n + 8, err);
    free(words);
    return rc;
}

int sgt_table_read(const char *path, sgt_table_bucket *table, size_t count, sgt_error *err)
{
    char *text = NULL;
    size_t n = 8 + count * sizeof *table, got;
    uint64_t sum;
    if (access(path, F_OK) < 0) return 0;
    int rc = sgt_file_get(&text, &got, path, n + 8, err);
    if (rc < 0) return rc;
    rc = got == n + 8 && (memcpy(&sum, text + n, 8), sum == XXH3_64bits(text, n)) &&
         *(uint64_t *)(void *)text == MAGIC;
    if (rc) memcpy(table, text + 8, n - 8);
    free(text);
    return rc;
}
