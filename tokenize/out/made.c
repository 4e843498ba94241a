/* made.c: read shards and their document indexes through two buffers, which move forwards. */
#include "tokenize/out/made.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Open a shard (index 0) or its document index (1), which may be a link to another disk, and write
 * its path. */
static int open_file(sgt_made *s, const sgt_manifest_shard *shard, int index, char path[SGT_PATH],
                     sgt_error *err)
{
    struct stat st;
    sgt_path(path, s->path, "%.*s.%s", (int)strcspn(shard->file, "."), shard->file,
             index ? "idx" : "bin");
    if (s->open[index] == shard) return SGT_OK;
    if (s->fds[index] >= 0) close(s->fds[index]);
    s->open[index] = NULL;
    s->fds[index] = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fds[index] < 0 || fstat(s->fds[index], &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (!S_ISREG(st.st_mode)) return sgt_fail(err, SGT_EFORMAT, "%s: not a plain file", path);
    if (index && (uint64_t)st.st_size != 8 * shard->documents)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %lld bytes, but the manifest says %" PRIu64
                        " documents of 8 bytes each",
                        path, (long long)st.st_size, shard->documents);
    posix_fadvise(s->fds[index], 0, 0, POSIX_FADV_SEQUENTIAL);
    s->open[index] = shard;
    return SGT_OK;
}

/* Check starts[n], which come from document `from` of shard i of a split on, and add to them the
 * tokens of earlier shards. They rise within the shard, and the split begins with a document. */
static int check_starts(const run *r, size_t i, uint64_t *starts, size_t n, uint64_t from,
                        const char *path, sgt_error *err)
{
    const uint64_t tokens = r->tokens[i + 1] - r->tokens[i];
    uint64_t least = 0;
    for (size_t k = 0; k < n; k++) {
        const uint64_t at = starts[k], number = from + k;
        if (at < least || at >= tokens || (r->documents[i] + number == 0 && r->tokens[i] + at))
            return sgt_fail(err, SGT_EFORMAT,
                            "%s: at byte %" PRIu64 ": document %" PRIu64 " starts at token %" PRIu64
                            ", expected after the one before, below %" PRIu64 ", and 0 at first",
                            path, 8 * number, number, at, tokens);
        least = at + 1;
        starts[k] += r->tokens[i];
    }
    return SGT_OK;
}

/* Read elements of a split from `at` on, until the window has `room` of them or the split ends. */
static int fill(sgt_made *s, window *w, int split, int index, uint64_t at, size_t room,
                sgt_error *err)
{
    const run *r = &s->runs[split];
    const uint64_t *first = index ? r->documents : r->tokens;
    const size_t size = index ? 8 : 2;
    char path[SGT_PATH];
    int rc = SGT_OK;
    if (!w->bytes && !(w->bytes = malloc(room * size))) return sgt_fail_memory(err, s->path);
    *w = (window){split, at, 0, w->bytes};
    for (size_t i = find(first, r->count, at); i < r->count && w->n < room && !rc; i++) {
        const uint64_t from = at + w->n - first[i], left = first[i + 1] - first[i] - from;
        const size_t n = left < room - w->n ? (size_t)left : room - w->n;
        char *to = (char *)w->bytes + size * w->n;
        if (!n) continue;
        rc = open_file(s, &s->m.shards[r->from + i], index, path, err);
        if (!rc)
            rc = sgt_pread_all(s->fds[index], to, size * n,
                               size * from + (index ? 0 : SGT_SHARD_HEADER), path, err);
        if (!rc && index) rc = check_starts(r, i, (uint64_t *)(void *)to, n, from, path, err);
        w->n += n;
    }
    if (rc < 0) w->n = 0;
    return rc;
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
        /* with the document before it, after which it must start */
        int rc = fill(s, w, split, 1, index - (index > 0), STARTS, err);
        if (rc < 0) return rc;
    }
    *at = ((const uint64_t *)w->bytes)[index - w->at];
    return SGT_OK;
}

int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err)
{
    uint64_t end = 0;
    int rc = sgt_made_start(s, split, index, start, err);
    if (!rc) rc = sgt_made_start(s, split, index + 1, &end, err);
    *tokens = end - *start;
    return sgt_fail_hint(err, rc, "remove the folder it is in, and its rank makes it again");
}
