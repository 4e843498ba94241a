/* made.c: read shards ahead through a buffer, and their document indexes one after the other. */
#include "tokenize/out/made.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/search.h"
#include "loader/shards/set.h"
#include "loader/shards/shard.h"
#include "tokenize/out/writer.h"

/* The shards of a split. tokens[i] and documents[i] count those in earlier shards than i;
 * tokens[count] and documents[count] are the totals. */
typedef struct run {
    size_t from, count; /* extent in the manifest's list */
    uint64_t *tokens, *documents;
} run;

struct sgt_made {
    char *path;
    sgt_manifest m;
    run runs[SGT_SPLITS];
    /* tokens at ... at + n - 1 of a split, read ahead */
    uint16_t *ids;
    int split;
    uint64_t at;
    size_t n;
    int *fds; /* (m.count): of the shards that were read; -1: not open */
    size_t open;
    uint64_t *starts; /* of documents, in the shard `indexed` */
    const sgt_manifest_shard *indexed;
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
    rc = sgt_manifest_read(&s->m, path, err);
    if (!rc && !(s->fds = malloc((s->m.count + 1) * sizeof *s->fds)))
        rc = sgt_fail_memory(err, path);
    for (size_t i = 0; i < s->m.count && !rc; i++) s->fds[i] = -1;
    for (int split = 0; split < SGT_SPLITS && !rc; split++)
        rc = add_up(s, split, split ? s->runs[0].count : 0, err);
    if (!rc && s->runs[0].count + s->runs[1].count != s->m.count)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s/manifest.json: its shards are not train's and then val's", path);
    if (rc < 0) sgt_made_close(s);
    else *out = s;
    return rc;
}

static void close_shards(sgt_made *s)
{
    for (size_t i = 0; i < s->m.count && s->open; i++) {
        if (s->fds[i] < 0) continue;
        close(s->fds[i]);
        s->fds[i] = -1;
        s->open--;
    }
}

void sgt_made_rest(sgt_made *s)
{
    close_shards(s);
    free(s->ids);
    free(s->starts);
    s->indexed = NULL;
    s->ids = NULL;
    s->starts = NULL;
    s->n = 0;
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
    free(s->fds);
    free(s->path);
    free(s);
}

const char *sgt_made_path(const sgt_made *s) { return s->path; }
const sgt_manifest *sgt_made_manifest(const sgt_made *s) { return &s->m; }
uint64_t sgt_made_tokens(const sgt_made *s, int split)
{
    return s->runs[split].tokens[s->runs[split].count];
}
size_t sgt_made_shards(const sgt_made *s, int split) { return s->runs[split].count; }
uint64_t sgt_made_documents(const sgt_made *s, int split)
{
    return s->runs[split].documents[s->runs[split].count];
}

/* Open shard i of the manifest. It may be a link to another disk. */
static int open_shard(sgt_made *s, size_t i, sgt_error *err)
{
    char path[SGT_PATH];
    if (s->fds[i] >= 0) return SGT_OK;
    sgt_path(path, s->path, "%s", s->m.shards[i].file);
    if (s->open == SGT_MADE_OPEN) close_shards(s);
    s->fds[i] = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fds[i] < 0) return sgt_fail_errno(err, "%s", path);
    s->open++;
    /* what is in memory no more, as after a restart, is read at once */
    posix_fadvise(s->fds[i], 0, 0, POSIX_FADV_WILLNEED);
    return SGT_OK;
}

/* Read n tokens of shard i of the manifest, which is open, from its token `at` on. */
static int read_shard(const sgt_made *s, size_t i, uint64_t at, uint16_t *ids, size_t n,
                      sgt_error *err)
{
    const uint64_t from = SGT_SHARD_HEADER + 2 * at;
    char path[SGT_PATH];
    /* a document that is read by itself is short, and writing the path would take a while */
    if (pread(s->fds[i], ids, 2 * n, (off_t)from) == (ssize_t)(2 * n)) return SGT_OK;
    sgt_path(path, s->path, "%s", s->m.shards[i].file);
    return sgt_pread_all(s->fds[i], ids, 2 * n, from, path, err);
}

/* Read tokens of a split from `at` on, until `most` are there or the split ends. */
static int read_ahead(sgt_made *s, int split, uint64_t at, size_t most, sgt_error *err)
{
    const run *r = &s->runs[split];
    int rc = SGT_OK;
    if (!s->ids && !(s->ids = malloc(SGT_MADE_WINDOW * sizeof *s->ids)))
        return sgt_fail_memory(err, s->path);
    s->split = split;
    s->at = at;
    s->n = 0;
    for (size_t i = sgt_last_up_to(r->tokens, 1, r->count, at); i < r->count && s->n < most && !rc;
         i++) {
        const uint64_t from = at + s->n - r->tokens[i],
                       left = r->tokens[i + 1] - r->tokens[i] - from;
        const size_t n = left < most - s->n ? (size_t)left : most - s->n;
        rc = open_shard(s, r->from + i, err);
        if (!rc) rc = read_shard(s, r->from + i, from, s->ids + s->n, n, err);
        s->n += n;
    }
    if (rc < 0) s->n = 0;
    return rc;
}

int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t n, const uint16_t **ids,
                 sgt_error *err)
{
    assert(n <= SGT_MADE_WINDOW && at + n <= sgt_made_tokens(s, split));
    /* what follows the last read is read ahead; other documents are read one by one */
    const int follows = s->split == split && at >= s->at && at - s->at <= s->n;
    const int there = follows && at - s->at + n <= s->n;
    const int rc = there ? SGT_OK : read_ahead(s, split, at, follows ? SGT_MADE_WINDOW : n, err);
    if (!rc) *ids = s->ids + (at - s->at);
    return rc;
}

/* Read the index of a shard. If it is the first with a document, that is at the split's first token. */
static int read_starts(sgt_made *s, const run *r, size_t i, sgt_error *err)
{
    const sgt_manifest_shard *shard = &s->m.shards[r->from + i];
    char path[SGT_PATH], index[64];
    size_t count;
    free(s->starts);
    s->starts = NULL;
    s->indexed = NULL;
    sgt_writer_index_name(index, shard->file);
    sgt_path(path, s->path, "%s", index);
    const int rc = sgt_index_read(&s->starts, &count, path, shard->tokens, shard->documents, err);
    if (rc < 0) return rc;
    if (!r->documents[i] && r->tokens[i] + s->starts[0])
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 0: document 0 starts at token %" PRIu64
                        ", expected the first token of its split",
                        path, r->tokens[i] + s->starts[0]);
    s->indexed = shard;
    return SGT_OK;
}

int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err)
{
    const run *r = &s->runs[split];
    *at = sgt_made_tokens(s, split);
    if (index >= sgt_made_documents(s, split)) return SGT_OK;
    const size_t i = sgt_last_up_to(r->documents, 1, r->count, index);
    if (s->indexed != &s->m.shards[r->from + i]) {
        const int rc = read_starts(s, r, i, err);
        if (rc < 0) return rc;
    }
    *at = r->tokens[i] + s->starts[index - r->documents[i]];
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
