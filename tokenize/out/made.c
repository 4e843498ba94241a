/* made.c: read shards and their document indexes through two buffers, which move forwards. */
#include "tokenize/parts/made.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/out/journal.h"
#include "loader/shards/shard.h"

#define STARTS ((size_t)1 << 13) /* number of documents' starts in their window */

/* The shards of a split. tokens[i] and documents[i] count those in earlier shards than i;
 * tokens[count] and documents[count] are the totals. */
typedef struct run {
    size_t from, count; /* extent in the manifest's list */
    uint64_t *tokens, *documents;
} run;

/* A buffer with elements at ... at + n - 1 of a split. */
typedef struct window {
    int split;
    uint64_t at;
    size_t n;
    void *bytes;
} window;

struct sgt_made {
    char *path;
    sgt_manifest m;
    run runs[SGT_SPLITS];
    window ids, starts;
    int fds[2]; /* descriptors of the last shard and the last index read */
    const sgt_manifest_shard *open[2];
};

static int add_up(sgt_made *s, int split, size_t from, sgt_error *err)
{
    run *r = &s->runs[split];
    r->from = from;
    while (from + r->count < s->m.count &&
           !strcmp(s->m.shards[from + r->count].split, sgt_split_names[split]))
        r->count++;
    r->tokens = calloc(r->count + 1, sizeof *r->tokens);
    r->documents = calloc(r->count + 1, sizeof *r->documents);
    if (!r->tokens || !r->documents) return sgt_fail_memory(err, s->path);
    for (size_t i = 0; i < r->count; i++) {
        r->tokens[i + 1] = r->tokens[i] + s->m.shards[from + i].tokens;
        r->documents[i + 1] = r->documents[i] + s->m.shards[from + i].documents;
    }
    return SGT_OK;
}

int sgt_made_open(sgt_made **out, const char *path, sgt_error *err)
{
    int rc = SGT_OK;
    sgt_made *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return sgt_fail_memory(err, path);
    }
    s->fds[0] = s->fds[1] = -1;
    rc = sgt_manifest_read(&s->m, path, err);
    for (int split = 0; split < SGT_SPLITS && !rc; split++)
        rc = add_up(s, split, split ? s->runs[0].count : 0, err);
    if (!rc && s->runs[0].count + s->runs[1].count != s->m.count)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s/manifest.json: its shards are not train's and then val's", path);
    if (rc < 0) sgt_made_close(s);
    else *out = s;
    return rc;
}

void sgt_made_rest(sgt_made *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->fds[i] >= 0) close(s->fds[i]);
        s->fds[i] = -1;
        s->open[i] = NULL;
    }
    free(s->ids.bytes);
    free(s->starts.bytes);
    s->ids = s->starts = (window){0};
}

void sgt_made_close(sgt_made *s)
{
    if (!s) return;
    sgt_made_rest(s);
    for (int i = 0; i < SGT_SPLITS; i++) {
        free(s->runs[i].tokens);
        free(s->runs[i].documents);
    }
    sgt_manifest_free(&s->m);
    free(s->path);
    free(s);
}

const char *sgt_made_path(const sgt_made *s) { return s->path; }
const sgt_manifest *sgt_made_manifest(const sgt_made *s) { return &s->m; }
uint64_t sgt_made_tokens(const sgt_made *s, int split)
{
    return s->runs[split].tokens[s->runs[split].count];
}
uint64_t sgt_made_documents(const sgt_made *s, int split)
{
    return s->runs[split].documents[s->runs[split].count];
}

/* Return the last i below count with first[i] <= at. Values may be equal, because a shard may have
 * no document start. */
static size_t find(const uint64_t *first, size_t count, uint64_t at)
{
    size_t low = 0, high = count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (first[middle] <= at) low = middle;
        else high = middle;
    }
    return low;
}

/* Open a shard (index 0) or its document index (1). *path is malloc'd. */
static int open_file(sgt_made *s, const sgt_manifest_shard *shard, int index, char **path,
                     sgt_error *err)
{
    char name[80];
    snprintf(name, sizeof name, "%.*s.%s", (int)strcspn(shard->file, "."), shard->file,
             index ? "idx" : "bin");
    if (!(*path = sgt_join(s->path, name))) return sgt_fail_memory(err, s->path);
    if (s->open[index] == shard) return SGT_OK;
    if (s->fds[index] >= 0) close(s->fds[index]);
    s->open[index] = NULL;
    s->fds[index] = open(*path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->fds[index] < 0) return sgt_fail_errno(err, "%s", *path);
    posix_fadvise(s->fds[index], 0, 0, POSIX_FADV_SEQUENTIAL);
    s->open[index] = shard;
    return SGT_OK;
}

/* Read elements of a split from `at` on, until the window has `room` of them or the split ends. */
static int fill(sgt_made *s, window *w, int split, int index, uint64_t at, size_t room,
                sgt_error *err)
{
    const run *r = &s->runs[split];
    const uint64_t *first = index ? r->documents : r->tokens;
    size_t size = index ? 8 : 2;
    if (!w->bytes && !(w->bytes = malloc(room * size))) return sgt_fail_memory(err, s->path);
    *w = (window){split, at, 0, w->bytes};
    for (size_t i = find(first, r->count, at); i < r->count && w->n < room; i++) {
        uint64_t from = at + w->n - first[i], left = first[i + 1] - first[i] - from;
        size_t n = left < room - w->n ? (size_t)left : room - w->n;
        char *path = NULL, *to = (char *)w->bytes + size * w->n;
        int rc = n ? open_file(s, &s->m.shards[r->from + i], index, &path, err) : SGT_OK;
        if (!rc && n)
            rc = sgt_pread_all(s->fds[index], to, size * n,
                               size * from + (index ? 0 : SGT_SHARD_HEADER), path, err);
        free(path);
        if (rc < 0) {
            w->n = 0;
            return rc;
        }
        for (size_t k = 0; index && k < n; k++) ((uint64_t *)w->bytes)[w->n + k] += r->tokens[i];
        w->n += n;
    }
    return SGT_OK;
}

static int within(const window *w, int split, uint64_t at, size_t n)
{
    return w->n && w->split == split && at >= w->at && at - w->at + n <= w->n;
}

int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t n, const uint16_t **ids,
                 sgt_error *err)
{
    window *w = &s->ids;
    assert(n <= SGT_MADE_WINDOW && at + n <= sgt_made_tokens(s, split));
    if (!within(w, split, at, n)) {
        int rc = fill(s, w, split, 0, at, SGT_MADE_WINDOW, err);
        if (rc < 0) return rc;
    }
    *ids = (const uint16_t *)w->bytes + (at - w->at);
    return SGT_OK;
}

int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err)
{
    window *w = &s->starts;
    *at = sgt_made_tokens(s, split);
    if (index >= sgt_made_documents(s, split)) return SGT_OK;
    if (!within(w, split, index, 1)) {
        int rc = fill(s, w, split, 1, index, STARTS, err);
        if (rc < 0) return rc;
    }
    *at = ((const uint64_t *)w->bytes)[index - w->at];
    return SGT_OK;
}

int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err)
{
    uint64_t end;
    int rc;
    if ((rc = sgt_made_start(s, split, index, start, err)) < 0 ||
        (rc = sgt_made_start(s, split, index + 1, &end, err)) < 0)
        return rc;
    if ((!index && *start) || end <= *start || end > sgt_made_tokens(s, split))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: document %" PRIu64 " begins at token %" PRIu64 " and ends at %" PRIu64
                        ", damaged (remove this folder, and its rank makes it again)",
                        s->path, index, *start, end);
    *tokens = end - *start;
    return SGT_OK;
}
