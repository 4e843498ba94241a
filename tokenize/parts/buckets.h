/* buckets.h: records scattered over many files, to be looked at again one file at a time.
 *
 *     sgt_buckets *b;
 *     if (sgt_buckets_open(&b, "out/.work/sorting/train", 64, &err) < 0) ...;    // an empty folder, made anew
 *     sgt_buckets_put(b, 7, &record, sizeof record, &err);                       // to the end of file 7
 *     rc = sgt_buckets_close(b, &err);                                           // all on disk
 *
 * What is put goes through a buffer of 64 KiB a file; no file stays open. One thread. */
#ifndef SGT_BUCKETS_H
#define SGT_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SGT_BUCKETS_MOST 1024 /* 64 MiB of buffers */

typedef struct sgt_buckets sgt_buckets;

/* How many files for so many bytes, that each has about `want` of them: a power of two up to
 * SGT_BUCKETS_MOST. */
size_t sgt_buckets_count(uint64_t bytes, uint64_t want);

int sgt_buckets_open(sgt_buckets **out, const char *folder, size_t count, sgt_error *err);
int sgt_buckets_put(sgt_buckets *b, size_t bucket, const void *p, size_t n, sgt_error *err);
int sgt_buckets_close(sgt_buckets *b, sgt_error *err); /* whatever it returns, b is gone */
void sgt_buckets_abandon(sgt_buckets *b);              /* NULL is fine */

/* Opens file `bucket` of a folder to be read, *size its bytes: the descriptor, or a negative
 * SGT_E*. One into which nothing was put is there, too, and empty. *path is malloc'd. */
int sgt_buckets_read(const char *folder, size_t bucket, char **path, uint64_t *size,
                     sgt_error *err);

#endif
