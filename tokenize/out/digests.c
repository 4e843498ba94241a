/* digests.c: append the record of each document when it ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "tokenize/out/digests.h"

#define RECORDS 2048

struct sgt_digests {
    int fd;
    char *path;
    XXH3_state_t *hash; /* hash of the current document, if it comes in more than one piece */
    uint64_t length;
    size_t used;
    sgt_dedup_record records[RECORDS];
};

int sgt_digests_open(sgt_digests **out, const char *work, uint64_t count, sgt_error *err)
{
    struct stat st;
    off_t size = (off_t)(count * sizeof(sgt_dedup_record));
    sgt_digests *d = calloc(1, sizeof *d);
    if (!d) return sgt_fail_memory(err, work);
    d->fd = -1;
    d->hash = XXH3_createState();
    d->path = sgt_join(work, SGT_DEDUP_FILE);
    int rc = d->path && d->hash ? SGT_OK : sgt_fail_memory(err, work);
    if (!rc && (d->fd = open(d->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) < 0)
        rc = sgt_fail_errno(err, "%s", d->path);
    if (!rc && fstat(d->fd, &st) < 0) rc = sgt_fail_errno(err, "%s", d->path);
    if (!rc && st.st_size < size)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: %lld bytes, expected at least %lld to go on (--force starts over)",
                      d->path, (long long)st.st_size, (long long)size);
    if (!rc && (ftruncate(d->fd, size) < 0 || lseek(d->fd, 0, SEEK_END) < 0))
        rc = sgt_fail_errno(err, "%s", d->path);
    if (rc < 0) sgt_digests_close(d);
    else *out = d;
    return rc;
}

void sgt_digests_close(sgt_digests *d)
{
    if (!d) return;
    if (d->fd >= 0) close(d->fd);
    XXH3_freeState(d->hash);
    free(d->path);
    free(d);
}

static int flush(sgt_digests *d, sgt_error *err)
{
    int rc = sgt_write_all(d->fd, d->records, d->used * sizeof *d->records, d->path, err);
    d->used = 0;
    return rc;
}

int sgt_digests_add(sgt_digests *d, const void *text, size_t n, int first, int last, int split,
                    sgt_error *err)
{
    XXH128_hash_t h;
    int rc;
    if (first) {
        XXH3_128bits_reset(d->hash);
        d->length = 0;
    }
    d->length += n;
    if (first && last) h = XXH3_128bits(text, n);
    else XXH3_128bits_update(d->hash, text, n);
    if (!last) return SGT_OK;
    if (!first) h = XXH3_128bits_digest(d->hash);
    if (d->used == RECORDS && (rc = flush(d, err)) < 0) return rc;
    d->records[d->used++] =
        (sgt_dedup_record){{h.low64, h.high64}, d->length | (split ? SGT_DEDUP_VAL : 0)};
    return SGT_OK;
}

int sgt_digests_sync(sgt_digests *d, sgt_error *err)
{
    int rc = flush(d, err);
    if (!rc && fsync(d->fd) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", d->path);
    return rc;
}
