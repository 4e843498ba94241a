/* export_idx.c: write Megatron-LM's index of a split. Every document is one sequence. The index has
 * three columns, one after the other, so our .idx files are read once for each of the first two. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/out/export.h"

#define STARTS 8192 /* starts of documents per read */
#define UINT16 8    /* Megatron-LM's number of the type uint16 */

/* Reads the starts of a split's documents, shard after shard. */
typedef struct reader {
    const sgt_export *e;
    const char *split;
    size_t shard;    /* index in the manifest */
    uint64_t before; /* tokens in the split's earlier shards */
    uint64_t next;   /* document of the shard that is read next */
    uint64_t last;   /* its predecessor's start in the shard */
    size_t at, have; /* in `starts` */
    int fd;
    char *path;
    uint64_t starts[STARTS];
} reader;

static void close_file(reader *r)
{
    if (r->fd >= 0) close(r->fd);
    free(r->path);
    r->path = NULL;
    r->fd = -1;
    r->at = r->have = 0;
    r->next = r->last = 0;
}

static int open_file(reader *r, const sgt_manifest_shard *s, sgt_error *err)
{
    struct stat st;
    char name[80];
    snprintf(name, sizeof name, "%.*s.idx", (int)strcspn(s->file, "."), s->file);
    if (!(r->path = sgt_join(r->e->set, name))) return sgt_fail_memory(err, name);
    r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->fd < 0 || fstat(r->fd, &st) < 0) return sgt_fail_errno(err, "%s", r->path);
    if (!S_ISREG(st.st_mode)) return sgt_fail(err, SGT_EFORMAT, "%s: not a plain file", r->path);
    if ((uint64_t)st.st_size == 8 * s->documents) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: %lld bytes, but the manifest says %" PRIu64 " documents of 8 bytes each",
                    r->path, (long long)st.st_size, s->documents);
}

/* Take the shard's next start, a rising token number within the shard. */
static int take(reader *r, const sgt_manifest_shard *s, uint64_t *start, sgt_error *err)
{
    if (r->at == r->have) {
        uint64_t left = s->documents - r->next;
        r->have = left < STARTS ? (size_t)left : STARTS;
        r->at = 0;
        int rc = sgt_pread_all(r->fd, r->starts, 8 * r->have, 8 * r->next, r->path, err);
        if (rc < 0) return rc;
    }
    uint64_t at = r->starts[r->at++];
    int first = r->before + r->next == 0;
    if (at >= s->tokens || (r->next && at <= r->last) || (first && at))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte %" PRIu64 ": document %" PRIu64 " starts at token %" PRIu64
                        ", expected after the one before, below %" PRIu64 ", and 0 at first",
                        r->path, 8 * r->next, r->next, at, s->tokens);
    r->next++;
    r->last = at;
    *start = r->before + at;
    return SGT_OK;
}

/* Set *start to the next document's start; at the end, to the number of tokens. */
static int next_start(reader *r, uint64_t *start, sgt_error *err)
{
    const sgt_manifest *m = r->e->from;
    for (; r->shard < m->count; r->shard++) {
        const sgt_manifest_shard *s = &m->shards[r->shard];
        if (strcmp(s->split, r->split)) continue;
        if (r->next < s->documents) {
            int rc = r->path ? SGT_OK : open_file(r, s, err);
            return rc < 0 ? rc : take(r, s, start, err);
        }
        close_file(r);
        r->before += s->tokens;
    }
    *start = r->before;
    return SGT_OK;
}

static int put(FILE *f, const void *p, size_t n) { return fwrite(p, 1, n, f) == n ? 0 : -1; }
static int put64(FILE *f, uint64_t v) { return put(f, &v, sizeof v); }

/* Write a column: each document's length, or the byte at which it begins. */
static int put_column(const sgt_export *e, const char *split, uint64_t documents, int lengths,
                      FILE *f, sgt_error *err)
{
    uint64_t start, next;
    reader *r = malloc(sizeof *r);
    if (!r) return sgt_fail_memory(err, e->work);
    *r = (reader){.e = e, .split = split, .fd = -1};
    int rc = next_start(r, &start, err);
    for (uint64_t i = 0; i < documents && !rc; i++, start = next) {
        if ((rc = next_start(r, &next, err)) < 0) break;
        uint64_t n = next - start;
        if (n > INT32_MAX)
            rc = sgt_fail(err, SGT_EUNSUPPORTED,
                          "%s: document %" PRIu64 " of split %s has %" PRIu64
                          " tokens: Megatron-LM's index holds at most %d (take another layout, or "
                          "cut the text)",
                          e->set, i, split, n, INT32_MAX);
        else if (lengths ? put(f, &(int32_t){(int32_t)n}, 4) : put64(f, 2 * start))
            rc = sgt_fail_errno(err, "%s: cannot write the index of split %s", e->work, split);
        if (i % STARTS == 0 && !rc && sgt_stopped(e->stop))
            rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
    }
    close_file(r);
    free(r);
    return rc;
}

int sgt_export_idx(const sgt_export *e, const char *split, FILE *f, sgt_error *err)
{
    uint64_t documents = 0;
    for (size_t i = 0; i < e->from->count; i++)
        if (!strcmp(e->from->shards[i].split, split)) documents += e->from->shards[i].documents;
    const unsigned char type = UINT16;
    int bad = put(f, "MMIDIDX\0", 9) || put64(f, 1) || put(f, &type, 1) || put64(f, documents) ||
              put64(f, documents + 1);
    int rc = bad ? SGT_EIO : put_column(e, split, documents, 1, f, err);
    if (!rc) rc = put_column(e, split, documents, 0, f, err);
    for (uint64_t i = 0; i <= documents && !rc && !bad; i++) bad = put64(f, i);
    if (bad) rc = sgt_fail_errno(err, "%s: cannot write the index of split %s", e->work, split);
    return rc;
}
