/* export.c: write the tokens of a set as another trainer's files, and give these their names. */
#include "tokenize/out/export.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/shards/shard.h"
#include "tokenize/out/journal.h"

#define STARTS 8192        /* starts of documents per read */
#define UINT16 8           /* Megatron-LM's number of the type uint16 */
#define RETIRED "replaced" /* folder in .work for the manifest of an earlier set */

const char *const sgt_layout_names[] = {"sgt", "megatron", "nanogpt", "npy"};
const char *const sgt_layout_says[] = {
    "shards of sgt",
    "for Megatron-LM: --data-path OUT/train_text_document (16-bit ids, documents end with the "
    "end-of-text id)",
    "for nanoGPT: raw 16-bit ids; documents end with the end-of-text id",
    "for OLMo-core: raw 16-bit ids without NumPy's header (numpy.fromfile, not numpy.load); "
    "documents end with the end-of-text id"};
static const char *const endings[] = {"", "_text_document.bin", ".bin", ".npy"};

/* ---- Megatron-LM's index of a split. Every document is one sequence. The index has three columns,
 * one after the other, so our .idx files are read once for each of the first two. ---- */

/* Reads the starts of a split's documents, shard after shard. */
typedef struct starts {
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
} starts;

static void close_index(starts *r)
{
    if (r->fd >= 0) close(r->fd);
    free(r->path);
    r->path = NULL;
    r->fd = -1;
    r->at = r->have = 0;
    r->next = r->last = 0;
}

static int open_index(starts *r, const sgt_manifest_shard *s, sgt_error *err)
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
static int next_in_shard(starts *r, const sgt_manifest_shard *s, uint64_t *start, sgt_error *err)
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
static int next_start(starts *r, uint64_t *start, sgt_error *err)
{
    const sgt_manifest *m = r->e->from;
    for (; r->shard < m->count; r->shard++) {
        const sgt_manifest_shard *s = &m->shards[r->shard];
        if (strcmp(s->split, r->split)) continue;
        if (r->next < s->documents) {
            int rc = r->path ? SGT_OK : open_index(r, s, err);
            return rc < 0 ? rc : next_in_shard(r, s, start, err);
        }
        close_index(r);
        r->before += s->tokens;
    }
    *start = r->before;
    return SGT_OK;
}

static int put_bytes(FILE *f, const void *p, size_t n) { return fwrite(p, 1, n, f) == n ? 0 : -1; }
static int put64(FILE *f, uint64_t v) { return put_bytes(f, &v, sizeof v); }

/* Write a column: each document's length, or the byte at which it begins. */
static int put_column(const sgt_export *e, const char *split, uint64_t documents, int lengths,
                      FILE *f, sgt_error *err)
{
    uint64_t start, next;
    starts *r = malloc(sizeof *r);
    if (!r) return sgt_fail_memory(err, e->work);
    *r = (starts){.e = e, .split = split, .fd = -1};
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
        else if (lengths ? put_bytes(f, &(int32_t){(int32_t)n}, 4) : put64(f, 2 * start))
            rc = sgt_fail_errno(err, "%s: cannot write the index of split %s", e->work, split);
        if (i % STARTS == 0 && !rc && sgt_stopped(e->stop))
            rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
    }
    close_index(r);
    free(r);
    return rc;
}

/* Write Megatron-LM's index of a split's documents to f (megatron.h has the format). */
static int write_columns(const sgt_export *e, const char *split, FILE *f, sgt_error *err)
{
    uint64_t documents = 0;
    for (size_t i = 0; i < e->from->count; i++)
        if (!strcmp(e->from->shards[i].split, split)) documents += e->from->shards[i].documents;
    const unsigned char type = UINT16;
    int bad = put_bytes(f, "MMIDIDX\0", 9) || put64(f, 1) || put_bytes(f, &type, 1) ||
              put64(f, documents) || put64(f, documents + 1);
    int rc = bad ? SGT_EIO : put_column(e, split, documents, 1, f, err);
    if (!rc) rc = put_column(e, split, documents, 0, f, err);
    for (uint64_t i = 0; i <= documents && !rc && !bad; i++) bad = put64(f, i);
    if (bad) rc = sgt_fail_errno(err, "%s: cannot write the index of split %s", e->work, split);
    return rc;
}

/* ---- names ---- */

/* Write "x.idx" for "x.bin" into name[64]. */
static void index_name(char name[64], const char *file)
{
    snprintf(name, 64, "%.*s.idx", (int)strcspn(file, "."), file);
}

static void temporary_name(char text[80], const char *name)
{
    snprintf(text, 80, "%.63s.tmp", name);
}

/* Return WORK/NAME.tmp, malloc'd. */
static char *temporary(const char *work, const char *name)
{
    char text[80];
    temporary_name(text, name);
    return sgt_join(work, text);
}

char *sgt_export_options(const char *options, sgt_layout layout)
{
    json_t *all = json_loads(options, 0, NULL);
    char *text = NULL;
    json_object_del(all, "shard_tokens");
    if (json_object_set_new(all, "shards", json_string(sgt_layout_names[layout])) == 0)
        text = sgt_json_dumps(all, 0);
    json_decref(all);
    return text;
}

/* ---- tokens ---- */

/* The tokens of a split on their way into one file. */
typedef struct copy {
    const sgt_export *e;
    const char *path; /* path of the file */
    int fd;
    XXH3_state_t *hash;
    uint64_t read, written; /* tokens of the split; written: of all splits */
    uint16_t eot;
    const char *shard; /* path of the shard that is read */
} copy;

static int put_ids(copy *c, const uint16_t *ids, size_t n, sgt_error *err)
{
    XXH3_64bits_update(c->hash, ids, 2 * n);
    return sgt_write_all(c->fd, ids, 2 * n, c->path, err);
}

/* Write ids, without the first one of the split. */
static int see_ids(void *ctx, const uint16_t *ids, size_t n, uint64_t first, sgt_error *err)
{
    copy *c = ctx;
    size_t skip = c->read == 0 && n > 0;
    (void)first;
    if (skip && ids[0] != c->eot)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: token 0 is %u, expected the end-of-text id %u that begins a document",
                        c->shard, ids[0], c->eot);
    c->read += n;
    int rc = put_ids(c, ids + skip, n - skip, err);
    if (c->e->progress) c->e->progress(c->e->ctx, c->written + c->read);
    return rc;
}

static int copy_shard(copy *c, const sgt_manifest_shard *s, sgt_error *err)
{
    const sgt_shard_visitor visitor = {see_ids, c};
    const sgt_manifest *m = c->e->from;
    uint64_t before = c->read;
    char *path = sgt_join(c->e->set, s->file);
    if (!path) return sgt_fail_memory(err, s->file);
    c->shard = path;
    int rc = sgt_shard_verify(path, 0, m->vocab, &visitor, c->e->stop, err);
    if (!rc && c->read - before != s->tokens)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: %" PRIu64 " tokens, but the manifest says %" PRIu64,
                      path, c->read - before, s->tokens);
    free(path);
    return rc;
}

static int copy_shards(copy *c, sgt_manifest_shard *to, sgt_error *err)
{
    const sgt_manifest *m = c->e->from;
    int rc = SGT_OK;
    for (size_t i = 0; i < m->count && !rc; i++)
        if (!strcmp(m->shards[i].split, to->split)) rc = copy_shard(c, &m->shards[i], err);
    if (!rc) rc = put_ids(c, &c->eot, 1, err);
    if (!rc && fsync(c->fd) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", c->path);
    to->xxh3 = XXH3_64bits_digest(c->hash);
    return rc;
}

static int write_tokens(const sgt_export *e, uint64_t written, sgt_manifest_shard *to,
                        sgt_error *err)
{
    char *path = temporary(e->work, to->file);
    copy c = {.e = e,
              .path = path,
              .fd = -1,
              .hash = XXH3_createState(),
              .written = written,
              .eot = (uint16_t)e->from->eot};
    int rc = path && c.hash ? SGT_OK : sgt_fail_memory(err, e->work);
    if (!rc) c.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (!rc && c.fd < 0) rc = sgt_fail_errno(err, "%s", path);
    if (!rc) {
        XXH3_64bits_reset(c.hash);
        rc = copy_shards(&c, to, err);
    }
    if (c.fd >= 0) close(c.fd);
    XXH3_freeState(c.hash);
    free(path);
    return rc;
}

static int write_index(const sgt_export *e, const sgt_manifest_shard *to, sgt_error *err)
{
    char name[64];
    index_name(name, to->file);
    char *path = temporary(e->work, name);
    FILE *f = path ? sgt_file_stream(path, 0) : NULL;
    int rc = f ? SGT_OK : path ? sgt_fail_errno(err, "%s", path) : sgt_fail_memory(err, name);
    if (!rc) rc = write_columns(e, to->split, f, err);
    if (!rc && (fflush(f) != 0 || fsync(fileno(f)) < 0))
        rc = sgt_fail_errno(err, "%s: cannot flush to disk", path);
    if (f) fclose(f);
    free(path);
    return rc;
}

/* ---- the set ---- */

static int write_split(const sgt_export *e, const char *split, uint64_t written, sgt_manifest *to,
                       sgt_error *err)
{
    sgt_manifest_shard *s = &to->shards[to->count];
    *s = (sgt_manifest_shard){0};
    for (size_t i = 0; i < e->from->count; i++) {
        if (strcmp(e->from->shards[i].split, split)) continue;
        s->tokens += e->from->shards[i].tokens;
        s->documents += e->from->shards[i].documents;
    }
    if (!s->tokens) return SGT_OK;
    snprintf(s->split, sizeof s->split, "%s", split);
    snprintf(s->file, sizeof s->file, "%s%s", split, endings[e->layout]);
    int rc = to->raw ? SGT_OK : write_index(e, s, err);
    if (!rc) rc = write_tokens(e, written, s, err);
    to->count += !rc;
    return rc;
}

int sgt_export_write(const sgt_export *e, sgt_manifest *to, sgt_error *err)
{
    const sgt_manifest *from = e->from;
    *to = *from;
    to->count = 0;
    to->foreign = 1;
    to->raw = e->layout != SGT_LAYOUT_MEGATRON;
    to->options = sgt_export_options(from->options, e->layout);
    to->invalid = from->invalid ? strdup(from->invalid) : NULL;
    to->shards = calloc(SGT_SPLITS, sizeof *to->shards);
    if (!to->options || !to->shards || (from->invalid && !to->invalid))
        return sgt_fail_memory(err, e->work);
    uint64_t written = 0;
    int rc = SGT_OK;
    for (int i = 0; i < SGT_SPLITS && !rc; i++) {
        size_t had = to->count;
        rc = write_split(e, sgt_split_names[i], written, to, err);
        if (to->count > had) written += to->shards[had].tokens;
    }
    return rc;
}

static int move_file(const char *work, const char *out, const char *name, sgt_error *err)
{
    char from[80];
    temporary_name(from, name);
    return sgt_move(work, out, from, name, NULL, err);
}

int sgt_export_move(const char *work, const char *out, const sgt_manifest *to, sgt_error *err)
{
    int rc = sgt_sync_folder(work, err);
    for (size_t i = 0; i < to->count && !rc; i++) {
        char name[64];
        index_name(name, to->shards[i].file);
        if (!to->raw) rc = move_file(work, out, name, err);
        if (!rc) rc = move_file(work, out, to->shards[i].file, err);
    }
    return rc;
}

int sgt_export_copy(const char *from, const char *to, const char *name, sgt_error *err)
{
    char *a = sgt_join(from, name), *b = sgt_join(to, name), buffer[1 << 14];
    int rc = a && b ? SGT_OK : sgt_fail_memory(err, name), in = -1, out = -1;
    if (!rc && (in = open(a, O_RDONLY | O_CLOEXEC)) < 0) rc = sgt_fail_errno(err, "%s", a);
    if (!rc && (out = open(b, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666)) < 0)
        rc = sgt_fail_errno(err, "%s", b);
    for (ssize_t n = 1; !rc && n;) {
        if ((n = read(in, buffer, sizeof buffer)) < 0 && errno == EINTR) continue;
        rc = n < 0 ? sgt_fail_errno(err, "%s", a) : sgt_write_all(out, buffer, (size_t)n, b, err);
    }
    if (!rc && fsync(out) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", b);
    if (in >= 0) close(in);
    if (out >= 0) close(out);
    free(a);
    free(b);
    return rc;
}

/* Remove the files that the manifest of a set in another layout lists. */
static int remove_listed(const char *out, const sgt_manifest *m, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < m->count && m->foreign && !rc; i++) {
        char index[64];
        index_name(index, m->shards[i].file);
        for (int k = m->raw; k < 2 && !rc; k++) {
            char *path = sgt_join(out, k ? m->shards[i].file : index);
            if (!path) rc = sgt_fail_memory(err, out);
            else if (unlink(path) < 0 && errno != ENOENT)
                rc = sgt_fail_errno(err, "%s: cannot remove", path);
            free(path);
        }
    }
    return rc;
}

/* ---- an earlier set ---- */

/* Remove the earlier set whose manifest is kept in `work`, if there is one. */
static int remove_retired(const char *out, const char *work, sgt_error *err)
{
    sgt_manifest m = {0};
    char *old = sgt_join(work, RETIRED), *path = old ? sgt_join(old, "manifest.json") : NULL;
    int rc = path ? SGT_OK : sgt_fail_memory(err, work);
    /* a damaged manifest lists nothing */
    if (!rc && !sgt_file_gone(path) && sgt_manifest_read(&m, old, err) == SGT_ENOMEM)
        rc = SGT_ENOMEM;
    if (!rc) rc = remove_listed(out, &m, err);
    if (!rc) rc = sgt_remove_tree(old, err);
    sgt_manifest_free(&m);
    free(old);
    free(path);
    return rc;
}

int sgt_export_retire(const char *out, const char *work, sgt_error *err)
{
    int rc = remove_retired(out, work, err);
    if (rc < 0) return rc;
    char *manifest = sgt_join(out, "manifest.json"), *old = sgt_join(work, RETIRED);
    if (!manifest || !old) rc = sgt_fail_memory(err, out);
    if (!rc && !sgt_file_gone(manifest)) {
        if (mkdir(old, 0777) < 0) rc = sgt_fail_errno(err, "%s: cannot make this folder", old);
        else rc = sgt_move(out, old, "manifest.json", "manifest.json", NULL, err);
        if (!rc) rc = sgt_sync_folder(old, err);
    }
    if (!rc) rc = sgt_sync_folder(out, err);
    free(manifest);
    free(old);
    return rc < 0 ? rc : remove_retired(out, work, err);
}
