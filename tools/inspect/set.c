/* set.c: opens a set (a folder of shards, or one shard), and checks headers, sizes and the
 * manifest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>
#include <jansson.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/shards/megatron.h"
#include "loader/shards/set.h"
#include "tools/cli/process.h"
#include "tools/inspect/inspect.h"
#include "tokenize/input/corpus.h"

/* this is also the order of strcmp, which compare_by_split_and_name uses */
const char *const inspect_splits[INSPECT_SPLITS] = {"train", "val"};

/* Set the number of documents from the .idx file beside the shard; Megatron's is read to its
 * end. */
static int read_index(inspect_shard *s, sgt_error *err)
{
    struct stat st;
    sgt_megatron m;
    if (s->header.format == SGT_SHARD_MEGATRON) {
        int rc = sgt_megatron_read(&m, s->path, s->header.tokens, NULL, NULL, err);
        s->documents_known = rc == SGT_OK;
        if (rc == SGT_OK) s->documents = m.documents;
        return rc;
    }
    char *path = sgt_index_path(s->path);
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size % 8 == 0) {
        s->indexed = 1;
        s->documents = (uint64_t)st.st_size / 8;
        s->documents_known = 1;
    }
    free(path);
    return SGT_OK;
}

int inspect_keep_damage(inspect_set *s, inspect_shard *d, int rc, sgt_error *err)
{
    if (!s->verify || (rc != SGT_EFORMAT && rc != SGT_EIO)) return rc;
    if (d->damage) return SGT_OK;
    if (!(d->damage = strdup(err->text))) return sgt_fail_memory(err, d->path);
    s->damaged++;
    return SGT_OK;
}

/* Return a new shard at the end of the set; NULL if memory runs out. */
static inspect_shard *append_shard(inspect_set *s, const char *path, const char *split,
                                   sgt_error *err)
{
    char *copy = strdup(path);
    if (!copy ||
        sgt_reserve(&s->shards, &s->room, s->count + 1, sizeof *s->shards, path, NULL) < 0) {
        free(copy);
        sgt_fail_memory(err, path);
        return NULL;
    }
    s->shards[s->count] = (inspect_shard){.path = copy, .split = split};
    return &s->shards[s->count++];
}

static int add_shard(inspect_set *s, const char *path, const char *split, const inspect *o,
                     sgt_error *err)
{
    inspect_shard *d = append_shard(s, path, split, err);
    if (!d) return SGT_ENOMEM;
    /* a shard that is not in a folder may have no header */
    int raw = o->raw ? 1 : s->manifest && s->manifest->raw ? SGT_SHARD_RAW16 : s->folder ? 0 : -1;
    int fd = sgt_shard_open(&d->header, path, raw, err);
    if (fd < 0) return inspect_keep_damage(s, d, fd, err);
    close(fd);
    s->tokens += d->header.tokens;
    return inspect_keep_damage(s, d, read_index(d, err), err);
}

static int add_split(inspect_set *s, const char *split, const inspect *o, sgt_error *err)
{
    char **paths, path[SGT_PATH];
    size_t n;
    int rc = sgt_shard_list(&paths, &n, s->path, split, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n && rc == SGT_OK; i++) rc = add_shard(s, paths[i], split, o, err);
    sgt_shard_list_free(paths, n);
    /* folders made for nanoGPT have train.bin and val.bin */
    if (!n && o->raw && !sgt_file_gone(sgt_path(path, s->path, "%s.bin", split)))
        rc = add_shard(s, path, split, o, err);
    return rc;
}

/* Return the shard with this file name. The search begins at index `near`, where the shard is if
 * the manifest and the folder have the same order. */
static inspect_shard *find_shard(const inspect_set *s, const char *file, size_t near)
{
    for (size_t i = 0; i < s->count; i++) {
        inspect_shard *d = &s->shards[(near + i) % s->count];
        /* the path begins with the folder, so it has a slash */
        if (!strcmp(strrchr(d->path, '/') + 1, file)) return d;
    }
    return NULL;
}

/* Check that the manifest and the header agree about a shard. */
static int compare_shard(const inspect_set *s, const inspect_shard *got,
                         const sgt_manifest_shard *want, sgt_error *err)
{
    const sgt_manifest *m = s->manifest;
    const sgt_shard_header *h = &got->header;
    if (h->tokens != want->tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: %" PRIu64 " tokens, but %s/manifest.json says %" PRIu64, got->path,
                        h->tokens, s->path, want->tokens);
    /* the shard is another program's, or like one, so there is nothing more to compare */
    if (!h->revision) return SGT_OK;
    const struct {
        const char *what;
        int byte;
        uint64_t got, want;
    } marks[] = {{"checksum", 32, h->xxh3, want->xxh3},
                 {"vocabulary", 24, h->fingerprint, m->fingerprint}};
    for (size_t i = 0; i < 2; i++)
        if (marks[i].got != marks[i].want)
            return sgt_fail(
                err, SGT_EFORMAT,
                "%s: at byte %d: %s %016" PRIx64 ", but %s/manifest.json says %016" PRIx64,
                got->path, marks[i].byte, marks[i].what, marks[i].got, s->path, marks[i].want);
    if (h->vocab != m->vocab || h->eot != m->eot)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 16: %" PRIu32 " ids, end of text %" PRIu32
                        ", but %s/manifest.json says %" PRIu32 " and %" PRIu32,
                        got->path, h->vocab, h->eot, s->path, m->vocab, m->eot);
    return SGT_OK;
}

/* Add a shard that the manifest lists and the folder lacks. */
static int add_missing(inspect_set *s, const sgt_manifest_shard *want, sgt_error *err)
{
    char path[SGT_PATH];
    inspect_shard *d = append_shard(s, sgt_path(path, s->path, "%s", want->file), want->split, err);
    if (!d) return SGT_ENOMEM;
    int rc =
        sgt_fail(err, SGT_EFORMAT, "%s: missing, but %s/manifest.json lists it", d->path, s->path);
    return inspect_keep_damage(s, d, rc, err);
}

/* Compare two shards by split, then by name: the order of a set. */
static int compare_by_split_and_name(const void *a, const void *b)
{
    const inspect_shard *x = a, *y = b;
    int order = strcmp(x->split, y->split);
    return order ? order : strcmp(x->path, y->path);
}

/* Check that all shards in the manifest exist, with the sizes and checksums that it has. */
static int compare_listed(inspect_set *s, const inspect *o, sgt_error *err)
{
    const sgt_manifest *m = s->manifest;
    for (size_t i = 0; i < m->count; i++) {
        const sgt_manifest_shard *want = &m->shards[i];
        if (o->split && strcmp(o->split, want->split)) continue;
        inspect_shard *got = find_shard(s, want->file, i);
        int rc = SGT_OK;
        if (!got) {
            if ((rc = add_missing(s, want, err)) < 0) return rc;
            got = &s->shards[s->count - 1];
        }
        if (!got->damage) rc = inspect_keep_damage(s, got, compare_shard(s, got, want, err), err);
        if (rc < 0) return rc;
        got->documents = want->documents;
        got->documents_known = got->listed = 1;
        if (!m->foreign || got->damage) continue;
        got->header.vocab = m->vocab; /* which a file without a header cannot tell */
        got->header.eot = m->eot;
        got->header.fingerprint = m->fingerprint;
        got->header.xxh3 = want->xxh3;
    }
    /* missing shards were added at the end: sort all shards again */
    if (s->damaged) qsort(s->shards, s->count, sizeof *s->shards, compare_by_split_and_name);
    return SGT_OK;
}

/* Check that the folder has exactly the shards in the manifest, and that the totals agree. */
static int compare_manifest(inspect_set *s, const inspect *o, sgt_error *err)
{
    const sgt_manifest *m = s->manifest;
    uint64_t documents = 0;
    int rc = compare_listed(s, o, err);
    for (size_t i = 0; i < m->count; i++) documents += m->shards[i].documents;
    for (size_t i = 0; i < s->count && !rc; i++) {
        inspect_shard *d = &s->shards[i];
        if (d->listed) continue;
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: not listed in %s/manifest.json (left from another run? remove it)",
                      d->path, s->path);
        rc = inspect_keep_damage(s, d, rc, err);
    }
    if (rc < 0 || o->split || s->damaged) return rc;
    if (m->tokens != s->tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s/manifest.json: totals say %" PRIu64 " tokens, its shards hold %" PRIu64,
                        s->path, m->tokens, s->tokens);
    if (m->documents != documents)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s/manifest.json: totals say %" PRIu64
                        " documents, of its shards it says %" PRIu64,
                        s->path, m->documents, documents);
    return SGT_OK;
}

static int open_folder(inspect_set *s, const inspect *o, sgt_error *err)
{
    int rc = SGT_OK;
    s->folder = 1;
    if (sgt_folder_has(s->path, ".work") && !sgt_folder_has(s->path, "manifest.json"))
        s->unfinished = 1;
    if (sgt_folder_has(s->path, "manifest.json")) {
        s->manifest = calloc(1, sizeof *s->manifest);
        if (!s->manifest) return sgt_fail_memory(err, s->path);
        if ((rc = sgt_manifest_read(s->manifest, s->path, err)) < 0) return rc;
    }
    for (int i = 0; i < INSPECT_SPLITS; i++) {
        if (o->split && strcmp(o->split, inspect_splits[i])) continue;
        if ((rc = add_split(s, inspect_splits[i], o, err)) < 0) return rc;
    }
    if (s->manifest && (rc = compare_manifest(s, o, err)) < 0) return rc;
    if (!s->count && s->unfinished)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: no shards yet: unfinished (the same command again finishes it)",
                        s->path);
    if (!s->count && (!s->manifest || s->manifest->count || o->split))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: no shards, %s_NNNNNN.bin (sgt-tokenize INPUT... OUT/ makes them)",
                        s->path, o->split ? o->split : "train_NNNNNN.bin or val");
    return SGT_OK;
}

/* ---- what a path is ---- */

const char *const inspect_kinds[] = {"set of shards", "run", "checkpoint"};

inspect_kind inspect_find_kind(const char *folder)
{
    static const struct {
        const char *name;
        inspect_kind kind;
    } signs[] = {{"config.json", INSPECT_CHECKPOINT},
                 {"log.jsonl", INSPECT_RUN},
                 {"latest", INSPECT_RUN},
                 {"options.json", INSPECT_RUN}};
    char path[SGT_PATH];
    /* a sign that cannot be looked for is none: whoever opens the folder later reports the error */
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (access(sgt_path(path, folder, "%s", signs[i].name), F_OK) == 0) return signs[i].kind;
    return INSPECT_SHARDS;
}

#define PREFIX 4096 /* bytes that tell what a file is, so that any bytes are not read as tokens */

static int ends(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && !strcmp(name + n - m, ending);
}

/* Read the first bytes of a regular file and append a NUL. Return their number, or -1 on failure,
 * whose reason is reported by the code that opens the file later. */
static ssize_t first_bytes(const char *path, char p[PREFIX + 1])
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n =
        fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, p, PREFIX, 0) : -1;
    if (fd >= 0) close(fd);
    p[n > 0 ? n : 0] = 0;
    return n;
}

/* Return whether the file has a header of our shards or of llm.c's, valid or not: the magic number
 * of either is in the first four bytes. */
static int has_header(const char *p, ssize_t n)
{
    uint32_t magic = 0;
    if (n >= 4) memcpy(&magic, p, sizeof magic); /* little-endian, like this machine */
    return magic == SGT_SHARD_MAGIC || magic == SGT_SHARD_LLMC_WIDE;
}

int inspect_known(const char *path, sgt_error *err)
{
    char p[PREFIX + 1];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    ssize_t n = first_bytes(path, p);
    if (n < 0 || ends(name, ".bin") || has_header(p, n)) return SGT_OK;
    char *shard = sgt_megatron_shard(path);
    free(shard);
    if (shard) return SGT_OK; /* path is the shard's .idx, or its name without the extension */
    char folder[SGT_PATH];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 2,
             slash ? path : "./");
    const inspect_kind kind = inspect_find_kind(folder);
    if (ends(name, ".idx"))
        return sgt_fail(err, SGT_EFORMAT, "%s: where the documents of a shard begin: pass %.*s.bin",
                        path, (int)strlen(path) - 4, path);
    if (kind != INSPECT_SHARDS || sgt_folder_has(folder, "manifest.json"))
        return sgt_fail(err, SGT_EFORMAT, "%s: part of a %s, not a shard: pass %s", path,
                        inspect_kinds[kind], folder);
    const sgt_magic *b = sgt_binary_of((const uint8_t *)p, (size_t)n, 0, 1);
    if (b) return sgt_fail(err, SGT_EFORMAT, "%s: %s, not a shard", path, b->what);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: not a file that sgt knows (a shard without a header is read with --raw, "
                    "or under a name that ends in .bin)",
                    path);
}

/* ---- a set ---- */

int inspect_set_open(inspect_set *s, const inspect *o, sgt_error *err)
{
    struct stat st;
    int rc, folder = stat(o->path, &st) == 0 && S_ISDIR(st.st_mode);
    *s = (inspect_set){.path = o->path, .verify = o->verify};
    char *shard = folder ? NULL : sgt_megatron_shard(o->path);
    if (folder) rc = open_folder(s, o, err);
    else if (!shard && access(o->path, F_OK) < 0) rc = sgt_fail_errno(err, "%s", o->path);
    else if (shard || o->raw || (rc = inspect_known(o->path, err)) == SGT_OK)
        rc = add_shard(s, shard ? shard : o->path, "", o, err);
    free(shard);
    if (rc < 0) {
        inspect_set_close(s);
        return rc;
    }
    s->documents_known = 1;
    /* a whole set without a document has no shard */
    if (s->count) s->first = s->shards[0].header;
    else s->first.fingerprint = s->manifest->fingerprint;
    for (size_t i = 0; i < s->count; i++) {
        s->documents += s->shards[i].documents;
        s->documents_known &= s->shards[i].documents_known;
    }
    return SGT_OK;
}

void inspect_set_close(inspect_set *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->shards[i].path);
        free(s->shards[i].damage);
    }
    inspect_close_shard(s);
    free(s->shards);
    if (s->manifest) sgt_manifest_free(s->manifest);
    free(s->manifest);
    *s = (inspect_set){0};
}
