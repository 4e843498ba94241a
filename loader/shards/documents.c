/* documents.c: find where documents begin, from .idx files or from the tokens themselves. */
#include "loader/shards/set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/shards/megatron.h"

#define SCAN_TOKENS ((size_t)1 << 19) /* number of tokens per read, which are 1 or 2 MiB */

static int add(sgt_documents *d, uint64_t start, sgt_error *err)
{
    int rc = sgt_reserve(&d->starts, &d->room, d->count + 1, sizeof *d->starts,
                         "where documents start", err);
    if (rc < 0) return rc;
    /* the index fits into 32 bits, because find_in has checked the number of tokens in the shard */
    d->starts[d->count++] = (uint32_t)start;
    return SGT_OK;
}

/* ---- SHARD.idx ---- */

char *sgt_index_path(char path[SGT_PATH], const char *shard)
{
    size_t n = strlen(shard);
    if (n >= SGT_PATH || !sgt_shard_is_bin(shard)) return NULL;
    memcpy(path, shard, n + 1);
    memcpy(path + n - 4, ".idx", 4);
    return path;
}

int sgt_index_read(uint64_t **starts, size_t *count, const char *path, uint64_t tokens,
                   uint64_t documents, sgt_error *err)
{
    char *bytes;
    size_t n;
    /* The file may have at most 8 bytes per token of the shard, because it has 8 bytes per
     * document, and each document has at least one token. */
    int rc = sgt_file_get(&bytes, &n, path, 8 * (size_t)tokens, err);
    if (rc < 0) return rc;
    uint64_t *at = (uint64_t *)(void *)bytes; /* `bytes` is aligned, because it comes from malloc */
    if (n % 8)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: %zu bytes, expected a whole number of 8-byte offsets",
                      path, n);
    else if (documents != UINT64_MAX && documents != n / 8)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: %zu documents, but the manifest says %" PRIu64, path,
                      n / 8, documents);
    for (size_t i = 0; i < n / 8 && rc == SGT_OK; i++)
        if (at[i] >= tokens || (i && at[i] <= at[i - 1]))
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: at byte %zu: document %zu starts at token %" PRIu64
                          ", but must start after the document before it and below token %" PRIu64,
                          path, 8 * i, i, at[i], tokens);
    if (rc < 0) {
        free(bytes);
        return rc;
    }
    *starts = at;
    *count = n / 8;
    return SGT_OK;
}

/* ---- end-of-text ids ---- */

static int scan(sgt_documents *d, const sgt_set *set, uint32_t shard, sgt_error *err)
{
    const sgt_set_shard *h = &set->shards[shard];
    const size_t width = h->head.width;
    void *ids = malloc(SCAN_TOKENS * width);
    int rc = SGT_OK, fd = ids ? sgt_set_open_shard(set, shard, err) : SGT_ENOMEM;
    if (!ids) sgt_fail_memory(err, h->path);
    for (uint64_t at = 0; fd >= 0 && at < h->head.tokens && rc == SGT_OK; at += SCAN_TOKENS) {
        uint64_t left = h->head.tokens - at;
        size_t n = left < SCAN_TOKENS ? (size_t)left : SCAN_TOKENS;
        rc = sgt_pread_all(fd, ids, width * n, h->head.data + width * at, h->path, err);
        for (size_t i = 0; i < n && rc == SGT_OK; i++)
            if (sgt_id_at(ids, width, i) == h->eot) rc = add(d, at + i, err);
    }
    if (fd >= 0) close(fd);
    free(ids);
    return fd < 0 ? fd : rc;
}

/* ---- the documents of a set ---- */

static int find_in(sgt_documents *d, const sgt_set *set, uint32_t shard, int look, sgt_error *err)
{
    const sgt_set_shard *h = &set->shards[shard];
    const int megatron = h->head.format == SGT_SHARD_MEGATRON;
    char path[SGT_PATH];
    const int index = !megatron && sgt_index_path(path, h->path) && !sgt_file_gone(path);
    uint64_t *starts = NULL, hash;
    size_t n = 0;
    if (!index && !megatron && h->eot == SGT_NO_ID)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: the starts of its documents are unknown: there is no .idx file, and "
                        "no header states the end-of-text id (make the shards with sgt-tokenize)",
                        h->path);
    if (!look && !index && !megatron) {
        d->unlisted[shard] = 1;
        d->unlisted_count++;
        return SGT_OK;
    }
    if (h->head.tokens > UINT32_MAX)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: %" PRIu64
                        " tokens: documents can be found only in shards of at most %" PRIu32
                        " tokens (other samplings have no such limit)",
                        h->path, h->head.tokens, UINT32_MAX);
    int rc;
    if (megatron) rc = sgt_megatron_read(&starts, &n, &hash, h->path, h->head.tokens, err);
    else if (index) rc = sgt_index_read(&starts, &n, path, h->head.tokens, h->documents, err);
    else rc = scan(d, set, shard, err);
    for (size_t i = 0; i < n && rc == SGT_OK; i++) rc = add(d, starts[i], err);
    free(starts);
    return rc;
}

int sgt_documents_find(sgt_documents *d, const sgt_set *set, int look, sgt_error *err)
{
    int rc = SGT_OK;
    d->before = calloc((size_t)set->count + 1, sizeof *d->before);
    d->unlisted = calloc(set->count, 1);
    if (!d->before || !d->unlisted) rc = sgt_fail_memory(err, set->shards[0].path);
    for (uint32_t i = 0; i < set->count && rc == SGT_OK; i++) {
        rc = find_in(d, set, i, look, err);
        d->before[i + 1] = d->count;
    }
    return rc;
}

void sgt_documents_free(sgt_documents *d)
{
    free(d->starts);
    free(d->before);
    free(d->unlisted);
    *d = (sgt_documents){.count = d->count};
}

sgt_window sgt_documents_window(const sgt_documents *d, const sgt_set *set, const sgt_window *w,
                                uint32_t most)
{
    const sgt_set_shard *h = &set->shards[w->shard], *const all = set->shards + set->count;
    const uint32_t own = h->set;
    uint64_t n = d->before[w->shard] + w->offset, start = d->starts[n], tokens;
    const uint64_t *before = d->before + w->shard + 1;
    if (n + 1 < *before) {
        tokens = d->starts[n + 1] - start;
        /* The last document that begins in a shard ends where the next document begins, perhaps
         * several shards later */
    } else {
        tokens = h++->head.tokens - start;
        for (; h < all && h->set == own && tokens < most && before[0] == before[1]; h++, before++)
            tokens += h->head.tokens;
        if (h < all && h->set == own && tokens < most) tokens += d->starts[*before];
    }
    return (sgt_window){
        .shard = w->shard, .offset = start, .tokens = tokens < most ? (uint32_t)tokens : most};
}

/* Store in `starts` the index of each of the n tokens that equals `id`, and return the number of
 * these tokens. The CPU would often mispredict a branch on whether a token matches, so the loop has
 * none: it stores every index, and overwrites it with the next one if the token did not match. */
static inline uint32_t find_ids(const void *tokens, size_t width, uint32_t n, uint32_t id,
                                uint32_t *starts)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < n; t++) {
        starts[count] = t;
        count += sgt_id_at(tokens, width, t) == id;
    }
    return count;
}

/* Return the address of the first element, between `first` and `end`, that is at least `offset`, or
 * `end` if there is none. The elements are in ascending order. Apart from its loop, the binary
 * search has no branch that the CPU could mispredict. */
static const uint32_t *first_from(const uint32_t *first, const uint32_t *end, uint64_t offset)
{
    for (size_t n = (size_t)(end - first); n > 1;) {
        size_t half = n / 2;
        first = first[half] < offset ? first + half : first;
        n -= half;
    }
    return first < end && *first < offset ? first + 1 : first;
}

uint32_t sgt_documents_within(const sgt_documents *d, const sgt_window *w, const void *tokens,
                              size_t width, uint32_t eot, uint32_t *starts)
{
    if (d->unlisted[w->shard])
        return width == 2 ? find_ids(tokens, 2, w->tokens, eot, starts)
                          : find_ids(tokens, 4, w->tokens, eot, starts);
    uint32_t count = 0;
    const uint32_t *end = d->starts + d->before[w->shard + 1];
    const uint32_t *at = first_from(d->starts + d->before[w->shard], end, w->offset);
    for (; at < end && *at < w->offset + w->tokens; at++)
        starts[count++] = (uint32_t)(*at - w->offset);
    return count;
}
