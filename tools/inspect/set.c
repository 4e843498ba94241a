/* set.c: opens a data set (a folder of shards, or a single shard), and compares the headers and the
 * sizes of its files with the manifest. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/shards/megatron.h"
#include "loader/shards/set.h"
#include "tools/cli/process.h"
#include "tools/inspect/inspect.h"

/* ---- a folder ---- */

/* Return 1 if `path` is the path of a shard of the data set with index `first` or higher, otherwise
 * 0. The search starts at the index `first + near` and wraps around to `first`, so that the first
 * comparison succeeds if the manifest and the folder list the shards in the same order. */
static int has_path(const sgt_set *s, uint32_t first, const char *path, size_t near)
{
    const uint32_t n = s->count - first;
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(s->shards[first + (near + i) % n].path, path)) return 1;
    return 0;
}

/* Add the shards of a split that are in the folder, but that the manifest does not list, to the
 * data set, and mark them as damaged. first: index in the data set of the first shard of this
 * split. */
static int add_unlisted(inspect_set *s, const char *split, uint32_t first, sgt_error *err)
{
    const sgt_manifest none = {0}, *m = &s->manifest;
    const int raw = m->raw ? 8 * (int)sgt_id_width(m->vocab) + SGT_SHARD_SURE : 0;
    sgt_set there = {.survey = 1};
    int rc = sgt_set_add_split(&there, s->path, split, raw, &none, err);
    for (uint32_t i = 0; i < there.count && rc == SGT_OK; i++) {
        const char *path = there.shards[i].path;
        if (has_path(&s->set, first, path, i)) continue;
        if ((rc = sgt_set_add(&s->set, path, 0, err)) < 0) break;
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: not listed in %s/manifest.json (left by another command? remove it)",
                      path, s->path);
        rc = sgt_set_keep_damage(&s->set, &s->set.shards[s->set.count - 1], rc, err);
    }
    sgt_set_close(&there);
    return rc;
}

static int open_folder(inspect_set *s, const inspect *o, sgt_error *err)
{
    s->folder = 1;
    int rc = sgt_manifest_find(&s->manifest, s->path, err);
    s->unfinished = !s->manifest.options && sgt_folder_has(s->path, ".work");
    for (int i = 0; i < SGT_SPLITS && rc == SGT_OK; i++) {
        const char *split = sgt_split_names[i];
        const uint32_t first = s->set.count;
        if (!o->split || !strcmp(o->split, split)) {
            rc = sgt_set_add_split(&s->set, s->path, split, o->raw, &s->manifest, err);
            if (rc == SGT_OK && s->manifest.options) rc = add_unlisted(s, split, first, err);
        }
        s->ends[i] = s->set.count;
    }
    if (rc < 0 || s->set.count) return rc;
    if (s->unfinished)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: no shard is complete yet (repeat the sgt-tokenize command)", s->path);
    if (s->manifest.options && !s->manifest.count && !o->split) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: no shards named %s_NNNNNN.bin (make them with sgt-tokenize)", s->path,
                    o->split ? o->split : "train_NNNNNN.bin or val");
}

/* Return SGT_EFORMAT if the total numbers of tokens or documents in the manifest differ from the
 * sums over all shards, otherwise 0. */
static int check_totals(const inspect_set *s, sgt_error *err)
{
    const sgt_manifest *m = &s->manifest;
    if (m->tokens != s->tokens)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s/manifest.json: total of %" PRIu64 " tokens, but shards with %" PRIu64,
                        s->path, m->tokens, s->tokens);
    if (m->documents != s->documents)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s/manifest.json: total of %" PRIu64
                        " documents, but shards with %" PRIu64,
                        s->path, m->documents, s->documents);
    return SGT_OK;
}

/* ---- kinds of files ---- */

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
    /* Treat any error of access() like a missing file, because an error such as EACCES is reported
     * later, when the folder is opened. */
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (access(sgt_path(path, folder, "%s", signs[i].name), F_OK) == 0) return signs[i].kind;
    return INSPECT_SHARDS;
}

int inspect_known(const char *path, sgt_error *err)
{
    char folder[SGT_PATH];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    sgt_shard_header head;
    sgt_error why;
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) return SGT_OK;
    /* for a shard in Megatron-LM's format, `path` can also be that of its .idx file, or the shard's
     * path without .bin */
    if (sgt_shard_is_bin(path) || sgt_megatron_shard(folder, path)) return SGT_OK;
    const int fd = sgt_shard_open(&head, path, -1, &why);
    if (fd >= 0) close(fd);
    /* ignore errors other than SGT_EFORMAT, because they are reported later, when the file is
     * opened again */
    if (fd >= 0 ? head.format != SGT_SHARD_RAW : fd != SGT_EFORMAT) return SGT_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - path) : 2,
             slash ? path : "./");
    const inspect_kind kind = inspect_find_kind(folder);
    if (fnmatch("?*.idx", name, 0) == 0)
        return sgt_fail(err, SGT_EFORMAT, "%s: an index of documents, not a shard (pass %.*s.bin)",
                        path, (int)strlen(path) - 4, path);
    if (kind != INSPECT_SHARDS || sgt_folder_has(folder, "manifest.json"))
        return sgt_fail(err, SGT_EFORMAT, "%s: part of a %s, not a shard (pass %s)", path,
                        inspect_kinds[kind], folder);
    if (fd < 0) return sgt_fail(err, fd, "%s", why.text);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: unknown file format (for a shard without a header, pass --raw 16 or "
                    "32, or give it a name that ends in .bin)",
                    path);
}

/* ---- a data set ---- */

/* If the number of documents in a shard is unknown, but the shard has an .idx file, compute the
 * number from the size of that file. */
static void count_documents(sgt_set_shard *h)
{
    struct stat st;
    char path[SGT_PATH];
    if (h->documents == UINT64_MAX && sgt_index_path(path, h->path) && stat(path, &st) == 0 &&
        S_ISREG(st.st_mode) && st.st_size % 8 == 0)
        h->documents = (uint64_t)st.st_size / 8;
}

/* Set the fields of *s that describe the entire data set: `first`, `tokens` and `documents`. */
static void describe(inspect_set *s)
{
    const sgt_manifest *m = &s->manifest;
    /* a complete data set can have no shards, because it can have been made from no documents */
    if (s->set.count) s->first = s->set.shards[0].head;
    if (m->options) {
        s->first.vocab = m->vocab;
        s->first.eot = m->eot;
        s->first.fingerprint = m->fingerprint;
    }
    for (uint32_t i = 0; i < s->set.count; i++) count_documents(&s->set.shards[i]);
    s->tokens = inspect_count(s, -1, &s->documents);
}

int inspect_set_open(inspect_set *s, const inspect *o, const char *path, sgt_error *err)
{
    struct stat st;
    int rc, folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    *s = (inspect_set){.path = path, .set.survey = o->verify};
    if (folder) rc = open_folder(s, o, err);
    else if (o->raw || (rc = inspect_known(path, err)) == SGT_OK)
        rc = sgt_set_add(&s->set, path, o->raw ? o->raw : -1, err);
    if (rc == SGT_OK && s->set.count && !s->manifest.options)
        rc = sgt_set_check_alike(&s->set, err);
    describe(s);
    if (rc == SGT_OK && s->manifest.options && !o->split && !s->set.damaged)
        rc = check_totals(s, err);
    if (rc < 0) inspect_set_close(s);
    return rc;
}

void inspect_set_close(inspect_set *s)
{
    inspect_close_shard(s);
    sgt_set_close(&s->set);
    sgt_manifest_free(&s->manifest);
    *s = (inspect_set){0};
}
