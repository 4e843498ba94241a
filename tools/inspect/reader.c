/* reader.c: reads the tokens of a set, or of one of its splits, as one sequence over all shards. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tools/inspect/inspect.h"

/* Pages that have been read are evicted from the page cache in extents of this size. */
#define DROP_BYTES ((uint64_t)8 << 20)

#define GPT2_VOCAB 50257 /* limit of the ids if the header has no vocabulary size */

uint32_t inspect_ids(const inspect_shard *d)
{
    return d->header.vocab ? d->header.vocab : GPT2_VOCAB;
}

static int belongs(const inspect_shard *d, const char *split)
{
    return !split || !strcmp(d->split, split);
}

uint64_t inspect_tokens(const inspect_set *s, const char *split)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += belongs(&s->shards[i], split) ? s->shards[i].header.tokens : 0;
    return n;
}

const inspect_shard *inspect_place(const inspect_set *s, const char *split, uint64_t token,
                                   uint64_t *offset)
{
    for (size_t i = 0; i < s->count; i++) {
        const inspect_shard *d = &s->shards[i];
        if (!belongs(d, split)) continue;
        *offset = token;
        if (token < d->header.tokens) return d;
        token -= d->header.tokens;
    }
    return NULL;
}

void inspect_reader_start(inspect_reader *r, const inspect_set *s, const char *split, uint64_t from)
{
    const inspect_shard *d = inspect_place(s, split, from, &from);
    size_t shard = d ? (size_t)(d - s->shards) : s->count;
    *r = (inspect_reader){.s = s, .split = split, .shard = shard, .at = from, .fd = -1};
}

static int open_shard(inspect_reader *r, sgt_error *err)
{
    const inspect_shard *d = &r->s->shards[r->shard];
    sgt_shard_header h;
    r->fd = sgt_shard_open(&h, d->path, d->header.data ? 0 : SGT_SHARD_RAW16, err);
    if (r->fd < 0) return r->fd;
    if (h.tokens != d->header.tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: changed while it was read: %" PRIu64 " tokens, now %" PRIu64, d->path,
                        d->header.tokens, h.tokens);
    r->dropped = h.data + 2 * r->at;
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return SGT_OK;
}

static void next_shard(inspect_reader *r)
{
    if (r->fd >= 0) {
        posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
        close(r->fd);
    }
    r->fd = -1;
    r->at = 0;
    r->shard++;
}

/* Read n tokens of the open shard. */
static int read_some(inspect_reader *r, uint16_t *ids, size_t n, sgt_error *err)
{
    const inspect_shard *d = &r->s->shards[r->shard];
    uint64_t byte = d->header.data + 2 * r->at;
    int rc = sgt_pread_all(r->fd, ids, 2 * n, byte, d->path, err);
    if (rc < 0) return rc;
    for (size_t i = 0; r->vocab && i < n; i++)
        if (ids[i] >= r->vocab)
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: token %" PRIu64 " (byte %" PRIu64
                            "): id %u, expected below %" PRIu32,
                            d->path, r->at + i, byte + 2 * i, ids[i], r->vocab);
    r->at += n;
    if (byte - r->dropped < DROP_BYTES) return SGT_OK;
    posix_fadvise(r->fd, (off_t)r->dropped, (off_t)(byte - r->dropped), POSIX_FADV_DONTNEED);
    r->dropped = byte;
    return SGT_OK;
}

int inspect_reader_next(inspect_reader *r, uint16_t *ids, size_t want, size_t *got, sgt_error *err)
{
    for (*got = 0; *got < want && r->shard < r->s->count;) {
        const inspect_shard *d = &r->s->shards[r->shard];
        uint64_t left = d->header.tokens - r->at;
        size_t n = left < want - *got ? (size_t)left : want - *got;
        if (!belongs(d, r->split) || !n) {
            next_shard(r);
            continue;
        }
        int rc = r->fd < 0 ? open_shard(r, err) : SGT_OK;
        if (rc < 0 || (rc = read_some(r, ids + *got, n, err)) < 0) return rc;
        *got += n;
    }
    return SGT_OK;
}

void inspect_reader_end(inspect_reader *r)
{
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
}
