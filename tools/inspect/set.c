/* set.c: a folder of shards, or one shard: what it holds, and whether it still is what was written. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tools/inspect/inspect.h"

#define GPT2_VOCAB 50257 /* ids are held to this where neither header nor manifest says another size */

const char *const inspect_splits[INSPECT_SPLITS] = {"train", "val"};

int inspect_exists(const char *folder, const char *name)
{
    char *path = sgt_join(folder, name);
    int found = path && access(path, F_OK) == 0;
    free(path);
    return found;
}

/* "x.idx" for "x.bin", malloc'd. */
static char *index_path(const char *shard)
{
    size_t n = strlen(shard);
    if (n < 4 || strcmp(shard + n - 4, ".bin")) return NULL;
    char *path = strdup(shard);
    if (path) memcpy(path + n - 4, ".idx", 4);
    return path;
}

static void read_index_size(inspect_shard *s)
{
    struct stat st;
    char *path = index_path(s->path);
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size % 8 == 0) {
        s->indexed = 1;
        s->documents = (uint64_t)st.st_size / 8;
        s->documents_known = 1;
    }
    free(path);
}

static int add_shard(inspect_set *s, const char *path, const char *split, int raw, sgt_error *err)
{
    inspect_shard *more = realloc(s->shards, (s->count + 1) * sizeof *more);
    if (!more) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", path);
    s->shards = more;
    inspect_shard *d = &s->shards[s->count];
    *d = (inspect_shard){.split = split};
    int fd = sgt_shard_open(&d->header, path, raw, err);
    if (fd < 0) return fd;
    close(fd);
    d->path = strdup(path);
    if (!d->path) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", path);
    s->count++;
    read_index_size(d);
    s->tokens += d->header.tokens;
    return SGT_OK;
}

static int add_split(inspect_set *s, const char *split, int raw, sgt_error *err)
{
    char **paths;
    size_t n;
    int rc = sgt_shard_list(&paths, &n, s->path, split, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n && rc == SGT_OK; i++) rc = add_shard(s, paths[i], split, raw, err);
    sgt_shard_list_free(paths, n);
    if (n || !raw) return rc;
    char name[32]; /* nanoGPT's folders hold train.bin and val.bin */
    snprintf(name, sizeof name, "%s.bin", split);
    char *path = sgt_join(s->path, name);
    if (!path) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", s->path);
    if (access(path, F_OK) == 0) rc = add_shard(s, path, split, raw, err);
    free(path);
    return rc;
}

/* `near`: where it is when manifest and folder have the same order. */
static inspect_shard *find_shard(const inspect_set *s, const char *file, size_t near)
{
    for (size_t i = 0; i < s->count; i++) {
        inspect_shard *d = &s->shards[(near + i) % s->count];
        if (!strcmp(strrchr(d->path, '/') + 1, file)) return d; /* a path in a folder: it has a slash */
    }
    return NULL;
}

static int compare_shard(inspect_set *s, const sgt_manifest_shard *want, sgt_error *err)
{
    inspect_shard *got = find_shard(s, want->file, (size_t)(want - s->manifest->shards));
    if (!got)
        return sgt_fail(err, SGT_EFORMAT, "%s/%s: missing, but %s/manifest.json lists it", s->path, want->file,
                        s->path);
    if (got->header.tokens != want->tokens)
        return sgt_fail(err, SGT_EFORMAT, "%s: %" PRIu64 " tokens, but %s/manifest.json says %" PRIu64, got->path,
                        got->header.tokens, s->path, want->tokens);
    if (got->header.xxh3 && got->header.xxh3 != want->xxh3)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: at byte 32: checksum %016" PRIx64 ", but %s/manifest.json says %016" PRIx64, got->path,
                        got->header.xxh3, s->path, want->xxh3);
    got->documents = want->documents;
    got->documents_known = got->listed = 1;
    return SGT_OK;
}

/* What the manifest lists must be there, as long as it says and with the checksum that it names, and nothing else. */
static int compare_manifest(inspect_set *s, const char *only, sgt_error *err)
{
    const sgt_manifest *m = s->manifest;
    for (size_t i = 0; i < m->count; i++) {
        if (only && strcmp(only, m->shards[i].split)) continue;
        int rc = compare_shard(s, &m->shards[i], err);
        if (rc < 0) return rc;
    }
    for (size_t i = 0; i < s->count; i++)
        if (!s->shards[i].listed)
            return sgt_fail(err, SGT_EFORMAT, "%s: not listed in %s/manifest.json (left from another run? remove it)",
                            s->shards[i].path, s->path);
    if (!only && m->tokens != s->tokens)
        return sgt_fail(err, SGT_EFORMAT, "%s/manifest.json: totals say %" PRIu64 " tokens, its shards hold %" PRIu64,
                        s->path, m->tokens, s->tokens);
    return SGT_OK;
}

static int open_folder(inspect_set *s, const inspect *o, sgt_error *err)
{
    int rc = SGT_OK;
    s->folder = 1;
    s->unfinished = inspect_exists(s->path, ".work");
    for (int i = 0; i < INSPECT_SPLITS; i++) {
        if (o->split && strcmp(o->split, inspect_splits[i])) continue;
        if ((rc = add_split(s, inspect_splits[i], o->raw, err)) < 0) return rc;
    }
    if (inspect_exists(s->path, "manifest.json")) {
        s->manifest = calloc(1, sizeof *s->manifest);
        if (!s->manifest) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", s->path);
        if ((rc = sgt_manifest_read(s->manifest, s->path, err)) < 0 || (rc = compare_manifest(s, o->split, err)) < 0)
            return rc;
    }
    if (!s->count && s->unfinished)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: no shards yet: sgt-tokenize has not ended there (the same command again finishes it)",
                        s->path);
    if (!s->count)
        return sgt_fail(err, SGT_EFORMAT, "%s: no shards (wanted %s_NNNNNN.bin)", s->path,
                        o->split ? o->split : "train_NNNNNN.bin or val");
    return SGT_OK;
}

int inspect_set_open(inspect_set *s, const inspect *o, sgt_error *err)
{
    struct stat st;
    *s = (inspect_set){.path = o->path};
    int rc = stat(o->path, &st) < 0 ? sgt_fail_errno(err, "%s", o->path)
             : S_ISDIR(st.st_mode)  ? open_folder(s, o, err)
                                    : add_shard(s, o->path, "", o->raw ? 1 : -1, err);
    if (rc < 0) {
        inspect_set_close(s);
        return rc;
    }
    s->documents_known = 1;
    for (size_t i = 0; i < s->count; i++) {
        s->documents += s->shards[i].documents;
        s->documents_known &= s->shards[i].documents_known;
    }
    return SGT_OK;
}

void inspect_set_close(inspect_set *s)
{
    for (size_t i = 0; i < s->count; i++) free(s->shards[i].path);
    free(s->shards);
    if (s->manifest) sgt_manifest_free(s->manifest);
    free(s->manifest);
    *s = (inspect_set){0};
}

/* ---- verify ---- */

/* Offsets of documents rise, stay within the shard and point at end-of-text ids. */
static int verify_index(const inspect_shard *s, const char *path, const uint64_t *at, uint64_t count, sgt_error *err)
{
    sgt_shard_header h;
    int rc = SGT_OK, fd = sgt_shard_open(&h, s->path, 0, err);
    if (fd < 0) return fd;
    for (uint64_t i = 0; i < count && rc == SGT_OK; i++) {
        uint16_t id;
        if (at[i] >= h.tokens || (i && at[i] <= at[i - 1]))
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: at byte %" PRIu64 ": document %" PRIu64 " starts at token %" PRIu64
                          ", wanted after the one before and below %" PRIu64,
                          path, 8 * i, i, at[i], h.tokens);
        else if ((rc = sgt_pread_all(fd, &id, sizeof id, h.data + 2 * at[i], s->path, err)) == SGT_OK && h.vocab &&
                 id != h.eot)
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: at byte %" PRIu64 ": document %" PRIu64 " starts at token %" PRIu64
                          ", which is %u, wanted the end-of-text id %" PRIu32,
                          path, 8 * i, i, at[i], id, h.eot);
    }
    close(fd);
    return rc;
}

static int verify_shard_index(const inspect_shard *s, sgt_error *err)
{
    char *path = index_path(s->path), *text = NULL;
    size_t n = 0;
    if (!path) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", s->path);
    int rc = sgt_file_get(&text, &n, path, (size_t)8 * SGT_SHARD_MAX_TOKENS, err);
    if (rc == SGT_OK && n / 8 != s->documents)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: %zu documents, but the manifest says %" PRIu64, path, n / 8, s->documents);
    if (rc == SGT_OK)
        rc = verify_index(s, path, (const uint64_t *)(const void *)text, n / 8, err); /* malloc'd: aligned */
    free(text);
    free(path);
    return rc;
}

int inspect_set_verify(const inspect_set *s, const inspect *o, sgt_error *err)
{
    for (size_t i = 0; i < s->count; i++) {
        const inspect_shard *d = &s->shards[i];
        uint32_t vocab = d->header.vocab ? d->header.vocab : GPT2_VOCAB;
        int raw = d->header.data == 0;
        int rc = sgt_shard_verify(d->path, raw, vocab, o->stop, err);
        if (rc < 0) return rc;
        if (s->manifest && !d->indexed) {
            char *path = index_path(d->path);
            rc = sgt_fail(err, SGT_EFORMAT, "%s: missing, or not a whole number of 8-byte offsets",
                          path ? path : d->path);
            free(path);
            return rc;
        }
        if (d->indexed && (rc = verify_shard_index(d, err)) < 0) return rc;
    }
    return SGT_OK;
}
