/* buckets.c: append records to many files through buffers. */
#include "tokenize/parts/buckets.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"

#define BUFFER ((size_t)64 << 10)

struct sgt_buckets {
    char *folder;
    size_t count;
    uint8_t *buffers;
    size_t *used;
};

static char *bucket_path(const char *folder, size_t bucket)
{
    char name[32];
    snprintf(name, sizeof name, "%05zu", bucket);
    return sgt_join(folder, name);
}

size_t sgt_buckets_count(uint64_t bytes, uint64_t want)
{
    size_t count = 1;
    while (count < SGT_BUCKETS_MOST && bytes / count > want) count *= 2;
    return count;
}

/* Append p[n] to a file that must exist; if `made` is set, create the file. */
static int append(const sgt_buckets *b, size_t bucket, const void *p, size_t n, int made, int sync,
                  sgt_error *err)
{
    char *path = bucket_path(b->folder, bucket);
    if (!path) return sgt_fail_memory(err, b->folder);
    int fd = open(
        path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (made ? O_CREAT | O_EXCL : 0), 0666);
    int rc = fd < 0 ? sgt_fail_errno(err, "%s", path) : sgt_write_all(fd, p, n, path, err);
    if (!rc && sync && fsync(fd) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", path);
    if (fd >= 0) close(fd);
    free(path);
    return rc;
}

int sgt_buckets_open(sgt_buckets **out, char *folder, size_t count, sgt_error *err)
{
    sgt_buckets *b = calloc(1, sizeof *b);
    if (!b) {
        free(folder);
        return sgt_fail_memory(err, "buckets");
    }
    b->count = count;
    b->folder = folder;
    b->buffers = malloc(count * BUFFER);
    b->used = calloc(count, sizeof *b->used);
    int rc = folder && b->buffers && b->used ? SGT_OK : sgt_fail_memory(err, "buckets");
    if (!rc) rc = sgt_remove_tree(folder, err);
    if (!rc) rc = sgt_make_folders(folder, err);
    for (size_t i = 0; i < count && !rc; i++) rc = append(b, i, NULL, 0, 1, 0, err);
    if (rc < 0) sgt_buckets_abandon(b);
    else *out = b;
    return rc;
}

void sgt_buckets_abandon(sgt_buckets *b)
{
    if (!b) return;
    free(b->folder);
    free(b->buffers);
    free(b->used);
    free(b);
}

static int flush(sgt_buckets *b, size_t bucket, int sync, sgt_error *err)
{
    int rc = append(b, bucket, b->buffers + bucket * BUFFER, b->used[bucket], 0, sync, err);
    b->used[bucket] = 0;
    return rc;
}

int sgt_buckets_put(sgt_buckets *b, size_t bucket, const void *p, size_t n, sgt_error *err)
{
    int rc;
    if (b->used[bucket] + n > BUFFER && (rc = flush(b, bucket, 0, err)) < 0) return rc;
    if (n > BUFFER) return append(b, bucket, p, n, 0, 0, err);
    memcpy(b->buffers + bucket * BUFFER + b->used[bucket], p, n);
    b->used[bucket] += n;
    return SGT_OK;
}

int sgt_buckets_close(sgt_buckets *b, int durable, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < b->count && !rc; i++)
        if (durable || b->used[i]) rc = flush(b, i, durable, err);
    if (!rc && durable) rc = sgt_sync_folder(b->folder, err);
    sgt_buckets_abandon(b);
    return rc;
}

int sgt_buckets_read(char *folder, size_t bucket, char **path, uint64_t *size, sgt_error *err)
{
    struct stat st;
    *path = folder ? bucket_path(folder, bucket) : NULL;
    free(folder);
    if (!*path) return sgt_fail_memory(err, "buckets");
    int fd = open(*path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return sgt_fail_errno(err, "%s", *path);
    if (fstat(fd, &st) < 0) {
        close(fd);
        return sgt_fail_errno(err, "%s", *path);
    }
    *size = (uint64_t)st.st_size;
    return fd;
}
