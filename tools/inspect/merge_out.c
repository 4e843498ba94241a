/* merge_out.c: locks the folder OUT of a merge or an export, completes it, and unlocks it. One
 * program at a time may use OUT; sgt-tokenize takes the same lock, in OUT/.work. The file
 * OUT/.work/merge tells that the other files there are sgt-inspect's, and can be deleted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/shards/tokenizer.h"
#include "tokenize/out/export.h"
#include "tokenize/out/out.h"
#include "tools/inspect/merge.h"

static const char *const own_names[] = {"manifest.json", "sources.jsonl", "tokenizer.json",
                                        SGT_TOKENIZER_CONFIG, SGT_OUT_INPUTS};

/* Return whether the name is like "train_000000.bin" or "val_000012.idx". */
static int is_shard_name(const char *name)
{
    for (int i = 0; i < INSPECT_SPLITS; i++) {
        size_t n = strlen(inspect_splits[i]);
        if (strncmp(name, inspect_splits[i], n) || name[n] != '_' ||
            strspn(name + n + 1, "0123456789") != 6)
            continue;
        return !strcmp(name + n + 7, ".bin") || !strcmp(name + n + 7, ".idx");
    }
    return 0;
}

static int is_own_name(const char *name, const void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
        if (!strcmp(name, own_names[i])) return 1;
    return is_shard_name(name);
}

static int is_not_lock(const char *name, const void *ctx)
{
    (void)ctx;
    return strcmp(name, ".") && strcmp(name, "..") && strcmp(name, "lock");
}

/* Count a name that may be of worth; accept none. */
static int is_of_worth(const char *name, const void *ctx)
{
    size_t *const *found = ctx;
    **found += is_not_lock(name, NULL) && strcmp(name, "lost+found") && strcmp(name, ".work");
    return 0;
}

/* ---- claiming ---- */

int merge_check_not_out(const merge *m, const char *path, sgt_error *err)
{
    struct stat set, out;
    if (stat(path, &set) < 0) return sgt_fail_errno(err, "%s", path);
    if (stat(m->out, &out) < 0 || set.st_dev != out.st_dev || set.st_ino != out.st_ino)
        return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE,
                    "%s: is one of the sets, and cannot be OUT (name a new folder)", m->out);
}

static int check_out(const merge *m, sgt_error *err)
{
    size_t found = 0, *const count = &found;
    struct stat st;
    if (stat(m->out, &st) < 0) return errno == ENOENT ? SGT_OK : sgt_fail_errno(err, "%s", m->out);
    if (!S_ISDIR(st.st_mode))
        return sgt_fail(err, SGT_EIO, "%s: OUT is a file, not a folder (name another OUT)", m->out);
    int rc = sgt_sweep(m->out, is_of_worth, &count, err);
    if (rc < 0 || m->o->force) return rc;
    /* with a journal, sgt-tokenize has begun a set there */
    if (!found && !inspect_exists(m->work, "journal")) return SGT_OK;
    if (!inspect_exists(m->out, "manifest.json") && inspect_exists(m->work, "merge")) return SGT_OK;
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: OUT is there already (name a new folder, or --force replaces the set in it)", m->out);
}

/* Lock OUT/.work/lock. A program that ends removes this file, so check that the locked file is
 * still the one at its path. */
static int lock_out(merge *m, sgt_error *err)
{
    struct stat held, there;
    char *path = sgt_join(m->work, "lock");
    int rc = path ? SGT_OK : sgt_fail_memory(err, m->out);
    for (int done = 0; !rc && !done;) {
        if (mkdir(m->work, 0777) < 0 && errno != EEXIST)
            rc = sgt_fail_errno(err, "%s: cannot make this folder", m->work);
        else if (lstat(m->work, &there) == 0 && !S_ISDIR(there.st_mode))
            rc = sgt_fail(err, SGT_EIO, "%s: is not a folder (remove it, or name another OUT)",
                          m->work);
        if (rc < 0) break;
        m->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        /* another program has just ended and removed .work */
        if (m->lock < 0 && errno == ENOENT) continue;
        if (m->lock < 0) rc = sgt_fail_errno(err, "%s", path);
        else if (flock(m->lock, LOCK_EX | LOCK_NB) < 0)
            rc = errno == EWOULDBLOCK
                     ? sgt_fail(err, SGT_EIO, "%s: another program is at work here (wait for it)",
                                m->out)
                     : sgt_fail_errno(err, "%s: cannot lock", path);
        else
            done = fstat(m->lock, &held) == 0 && stat(path, &there) == 0 &&
                   held.st_ino == there.st_ino && held.st_dev == there.st_dev;
        if (!done && m->lock >= 0) {
            close(m->lock);
            m->lock = -1;
        }
    }
    free(path);
    return rc;
}

static int write_mark(const merge *m, sgt_error *err)
{
    static const char text[] =
        "sgt-inspect is at work here, or was killed: the same command again does it\n";
    char *path = sgt_join(m->work, "merge");
    int rc = path ? sgt_file_put(path, text, sizeof text - 1, err) : sgt_fail_memory(err, m->out);
    free(path);
    return rc;
}

int merge_claim(merge *m, sgt_error *err)
{
    struct stat st;
    if (!(m->work = sgt_join(m->out, ".work"))) return sgt_fail_memory(err, m->out);
    int rc = check_out(m, err);
    m->made = stat(m->out, &st) < 0;
    if (!rc) rc = sgt_make_folders(m->out, err);
    if (!rc) rc = lock_out(m, err);
    if (rc < 0) {
        if (m->made) { /* both are empty, unless another program has begun to use them */
            rmdir(m->work);
            rmdir(m->out);
        }
        free(m->work);
        m->work = NULL;
        return rc;
    }
    if ((rc = sgt_export_retire_rest(m->out, m->work, err)) < 0 ||
        (rc = sgt_sweep(m->work, is_not_lock, NULL, err)) < 0 || (rc = write_mark(m, err)) < 0)
        merge_release(m, 1);
    return rc;
}

/* ---- completing ---- */

static int move(const merge *m, const char *from, const char *to, sgt_error *err)
{
    return sgt_move(m->work, m->out, from, to, NULL, err);
}

static int move_shard(const merge *m, const sgt_manifest_shard *s, sgt_error *err)
{
    static const char *const suffixes[] = {"bin", "idx"};
    int rc = SGT_OK;
    for (int i = 0; i < 2 && !rc; i++) {
        char name[64], temporary[80];
        snprintf(name, sizeof name, "%.*s.%s", (int)strcspn(s->file, "."), s->file, suffixes[i]);
        snprintf(temporary, sizeof temporary, "%s.tmp", name);
        rc = move(m, temporary, name, err);
    }
    return rc;
}

static int move_all(const merge *m, sgt_error *err)
{
    const sgt_manifest *all = &m->manifest;
    int rc = SGT_OK;
    if (all->foreign) rc = sgt_export_move(m->work, m->out, all, err);
    for (size_t i = 0; i < all->count && !all->foreign && !rc; i++)
        rc = move_shard(m, &all->shards[i], err);
    if (!rc && all->foreign) rc = move(m, SGT_TOKENIZER_CONFIG, SGT_TOKENIZER_CONFIG, err);
    if (!rc) rc = move(m, "sources.jsonl", "sources.jsonl", err);
    return rc < 0 ? rc : move(m, "tokenizer.json", "tokenizer.json", err);
}

int merge_publish(merge *m, sgt_error *err)
{
    int rc = sgt_sync_folder(m->work, err);
    if (!rc && sgt_stopped(m->o->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
    if (!rc) rc = sgt_export_retire(m->out, m->work, err);
    m->publishing = !rc;
    if (!rc) rc = sgt_sweep(m->out, is_own_name, NULL, err);
    if (!rc) rc = move_all(m, err);
    /* the manifest says that all files are there, so their names must be durable before its own
     * is */
    if (!rc) rc = sgt_sync_folder(m->out, err);
    if (!rc) rc = move(m, "manifest.json", "manifest.json", err);
    return rc < 0 ? rc : sgt_sync_folder(m->out, err);
}

void merge_release(merge *m, int failed)
{
    char *lock = sgt_join(m->work, "lock");
    if (failed && m->publishing) {
        sgt_export_remove(m->out, &m->manifest, NULL);
        sgt_sweep(m->out, is_own_name, NULL, NULL);
    }
    sgt_sweep(m->work, is_not_lock, NULL, NULL);
    if (lock) unlink(lock);
    rmdir(m->work);
    if (failed && m->made) rmdir(m->out);
    if (m->lock >= 0) close(m->lock);
    m->lock = -1;
    free(lock);
    free(m->work);
    m->work = NULL;
}
