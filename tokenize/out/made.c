/* made.c: reads the tokens of complete shards through a buffer with read-ahead, and the document
 * indexes of these shards, of which only one is in memory at a time. */
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

/* A shard of a split. */
typedef struct shard {
    /* total number of tokens, and of documents, in the shards before this one in the same split */
    uint64_t tokens, documents;
    const char *folder;
    const sgt_manifest_shard *file;
    int fd;    /* descriptor; -1: not open */
    int first; /* 1: the first shard of its folder */
} shard;

typedef struct run {
    shard *shards;
    size_t count;
    uint64_t tokens, documents; /* number of tokens, and of documents, in all of `shards` */
} run;

typedef struct folder {
    char *path;
    sgt_manifest m;
} folder;

struct sgt_made {
    folder *folders;
    size_t count;
    run runs[SGT_SPLITS];
    /* Buffer for reading tokens. It holds n tokens of split `split`; the first of them is token
     * `at` of the split. */
    char *ids;
    int split;
    uint64_t at;
    size_t n;
    size_t open; /* number of open shards */
    /* position of the first token of each document in the shard `indexed`, counted from the shard's
     * first token; read from the shard's .idx file */
    uint64_t *starts;
    /* shard whose document starts are in `starts`; NULL if `starts` is not set */
    const shard *indexed;
};

static int add_shard(run *r, const char *path, const sgt_manifest_shard *file, int first,
                     sgt_error *err)
{
    shard *more = reallocarray(r->shards, r->count + 1, sizeof *more);
    if (!more) return sgt_fail_memory(err, path);
    r->shards = more;
    more[r->count++] = (shard){r->tokens, r->documents, path, file, -1, first};
    r->tokens += file->tokens;
    r->documents += file->documents;
    return SGT_OK;
}

int sgt_made_add(sgt_made **set, const char *path, sgt_error *err)
{
    if (!*set && !(*set = calloc(1, sizeof **set))) return sgt_fail_memory(err, path);
    sgt_made *s = *set;
    folder *more = reallocarray(s->folders, s->count + 1, sizeof *more);
    if (!more) return sgt_fail_memory(err, path);
    s->folders = more;
    folder *f = &more[s->count++];
    *f = (folder){.path = strdup(path)};
    int rc = f->path ? sgt_manifest_read(&f->m, path, err) : sgt_fail_memory(err, path);
    size_t i = 0;
    for (int split = 0; split < SGT_SPLITS; split++)
        for (int first = 1; !rc && i < f->m.count; i++, first = 0) {
            const sgt_manifest_shard *file = &f->m.shards[i];
            if (strcmp(file->split, sgt_split_names[split])) break;
            if (first && !file->documents)
                rc = sgt_fail(err, SGT_EFORMAT, "%s/%s: its first token does not begin a document",
                              path, file->file);
            else rc = add_shard(&s->runs[split], f->path, file, first, err);
        }
    if (!rc && i < f->m.count)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s/manifest.json: the shards of train must come first, then those of val",
                      path);
    return rc;
}

static void close_shards(sgt_made *s)
{
    for (int split = 0; split < SGT_SPLITS; split++)
        for (size_t i = 0; i < s->runs[split].count && s->open; i++) {
            shard *x = &s->runs[split].shards[i];
            if (x->fd < 0) continue;
            close(x->fd);
            x->fd = -1;
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
    for (int i = 0; i < SGT_SPLITS; i++) free(s->runs[i].shards);
    for (size_t i = 0; i < s->count; i++) {
        sgt_manifest_free(&s->folders[i].m);
        free(s->folders[i].path);
    }
    free(s->folders);
    free(s);
}

size_t sgt_made_folders(const sgt_made *s) { return s->count; }
const char *sgt_made_path(const sgt_made *s, size_t i) { return s->folders[i].path; }
const sgt_manifest *sgt_made_manifest(const sgt_made *s, size_t i) { return &s->folders[i].m; }
size_t sgt_made_width(const sgt_made *s) { return sgt_id_width(s->folders[0].m.vocab); }
size_t sgt_made_shards(const sgt_made *s, int split) { return s->runs[split].count; }
uint64_t sgt_made_tokens(const sgt_made *s, int split) { return s->runs[split].tokens; }
uint64_t sgt_made_documents(const sgt_made *s, int split) { return s->runs[split].documents; }

/* Return the shard that contains token `at` of a split, counted from the split's first token. */
static shard *find_shard(const sgt_made *s, int split, uint64_t at)
{
    const run *r = &s->runs[split];
    return r->shards + sgt_last_up_to(&r->shards->tokens, sizeof *r->shards / 8, r->count, at);
}

uint64_t sgt_made_before(const sgt_made *s, int split, uint64_t at)
{
    const uint64_t documents = find_shard(s, split, at)->documents;
    return documents ? documents - 1 : 0;
}

/* Open the shard x unless it is already open. Its file may be a symbolic link to another disk. */
static int open_shard(sgt_made *s, shard *x, sgt_error *err)
{
    char path[SGT_PATH];
    if (x->fd >= 0) return SGT_OK;
    sgt_path(path, x->folder, "%s", x->file->file);
    if (s->open == SGT_MADE_OPEN) close_shards(s);
    x->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (x->fd < 0) return sgt_fail_errno(err, "%s", path);
    s->open++;
    /* let the kernel read ahead those pages of the file that are not in the page cache */
    posix_fadvise(x->fd, 0, 0, POSIX_FADV_WILLNEED);
    return SGT_OK;
}

/* Read n tokens of an open shard into `ids`, beginning with token `at`, counted from the shard's
 * first token. */
static int read_shard(const shard *x, size_t width, uint64_t at, char *ids, size_t n,
                      sgt_error *err)
{
    const uint64_t from = SGT_SHARD_HEADER + width * at;
    char path[SGT_PATH];
    /* Try to read before the path is composed. The path is needed only for an error message, and
     * composing it takes long compared with reading a short document. */
    if (pread(x->fd, ids, width * n, (off_t)from) == (ssize_t)(width * n)) return SGT_OK;
    sgt_path(path, x->folder, "%s", x->file->file);
    return sgt_pread_all(x->fd, ids, width * n, from, path, err);
}

/* Fill the buffer with up to `most` tokens of a split, beginning with token `at`. If the shard that
 * contains token `at` ends earlier, the buffer gets fewer tokens. */
static int read_ahead(sgt_made *s, int split, uint64_t at, size_t most, sgt_error *err)
{
    shard *x = find_shard(s, split, at);
    const uint64_t from = at - x->tokens, left = x->file->tokens - from;
    const size_t n = left < most ? (size_t)left : most;
    if (!s->ids && !(s->ids = malloc(SGT_MADE_WINDOW))) return sgt_fail_memory(err, x->folder);
    s->n = 0;
    int rc = open_shard(s, x, err);
    if (!rc) rc = read_shard(x, sgt_made_width(s), from, s->ids, n, err);
    if (rc < 0) return rc;
    s->split = split;
    s->at = at;
    s->n = n;
    return SGT_OK;
}

int sgt_made_ids(sgt_made *s, int split, uint64_t at, size_t *n, const void **ids, sgt_error *err)
{
    assert(*n > 0 && at < sgt_made_tokens(s, split));
    /* Read ahead only if this read begins where the previous read ended or inside the buffer,
     * because only sequential reads will probably need the following tokens. */
    const size_t width = sgt_made_width(s);
    const int follows = s->split == split && at >= s->at && at - s->at <= s->n;
    if (!follows || at - s->at == s->n) {
        const size_t room = SGT_MADE_WINDOW / width, most = follows || *n > room ? room : *n;
        const int rc = read_ahead(s, split, at, most, err);
        if (rc < 0) return rc;
    }
    const size_t there = s->n - (size_t)(at - s->at);
    if (*n > there) *n = there;
    *ids = s->ids + width * (at - s->at);
    return SGT_OK;
}

/* Read the starts of the documents in shard x from its .idx file. If x is the first shard of a
 * folder and split, return an error unless its first document starts at token 0. */
static int read_starts(sgt_made *s, const shard *x, sgt_error *err)
{
    char path[SGT_PATH], index[64];
    size_t count;
    free(s->starts);
    s->starts = NULL;
    s->indexed = NULL;
    sgt_writer_index_name(index, x->file->file);
    sgt_path(path, x->folder, "%s", index);
    const int rc =
        sgt_index_read(&s->starts, &count, path, x->file->tokens, x->file->documents, err);
    if (rc < 0) return rc;
    if (x->first && s->starts[0])
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 0: document 0 starts at token %" PRIu64
                        ", expected the first token of its split",
                        path, s->starts[0]);
    s->indexed = x;
    return SGT_OK;
}

int sgt_made_start(sgt_made *s, int split, uint64_t index, uint64_t *at, sgt_error *err)
{
    const run *r = &s->runs[split];
    *at = r->tokens;
    if (index >= r->documents) return SGT_OK;
    const shard *x =
        r->shards + sgt_last_up_to(&r->shards->documents, sizeof *x / 8, r->count, index);
    if (s->indexed != x) {
        const int rc = read_starts(s, x, err);
        if (rc < 0) return rc;
    }
    *at = x->tokens + s->starts[index - x->documents];
    return SGT_OK;
}

int sgt_made_document(sgt_made *s, int split, uint64_t index, uint64_t *start, uint64_t *tokens,
                      sgt_error *err)
{
    uint64_t end = 0;
    int rc = sgt_made_start(s, split, index, start, err);
    if (!rc) rc = sgt_made_start(s, split, index + 1, &end, err);
    *tokens = end - *start;
    return sgt_fail_hint(err, rc, "remove its folder, and run the command of its rank again");
}
