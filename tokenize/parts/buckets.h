/* buckets.h: scatter records over many files, to read them again one file at a time.
 *
 *     sgt_buckets *b;
 *     if (sgt_buckets_open(&b, strdup("sorting/train"), 64, &err) < 0) ...; // a new folder
 *     sgt_buckets_put(b, 7, &record, sizeof record, &err);                    // append to file 7
 *     rc = sgt_buckets_close(b, 1, &err);                                     // all is on disk
 *
 * Each file has a buffer of 64 KiB, and no file stays open. One thread at a time. */
#ifndef SGT_BUCKETS_H
#define SGT_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_BUCKETS_MOST 1024 /* limit: 64 MiB of buffers */

typedef struct sgt_buckets sgt_buckets;

/* Return the number of files that gives each about `want` of `bytes` bytes: a power of two, at most
 * SGT_BUCKETS_MOST. */
size_t sgt_buckets_count(uint64_t bytes, uint64_t want);

/* Make `folder`, which is malloc'd and is freed here in any case (NULL: out of memory), anew with
 * `count` empty files. */
int sgt_buckets_open(sgt_buckets **out, char *folder, size_t count, sgt_error *err);
int sgt_buckets_put(sgt_buckets *b, size_t bucket, const void *p, size_t n, sgt_error *err);
/* Write what the buffers hold; durable: and flush all files to disk. Frees b even if it fails. */
int sgt_buckets_close(sgt_buckets *b, int durable, sgt_error *err);
void sgt_buckets_abandon(sgt_buckets *b); /* NULL is allowed */

/* Open file `bucket` of a folder, whose path is treated likewise, for reading. Return the descriptor, its size in *size and malloc'd
 * *path; or a negative SGT_E*. A file that received nothing exists and is empty. */
int sgt_buckets_read(char *folder, size_t bucket, char **path, uint64_t *size, sgt_error *err);

#endif
