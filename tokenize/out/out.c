/* out.c: claim OUT, complete it and release it. out_compare.c decides whether a run can be
 * resumed. */
#include "tokenize/out/out.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tokenize/out/record.h"
#include "tokenize/out/export.h"
#include "tokenize/out/out_compare.h"
#include "loader/shards/shard.h"
#include "loader/shards/manifest.h"
#include "tokenize/out/writer.h"
#include "tokenize/vocab/vocab.h"

#define WAIT_MS 50
#define WAIT_TURNS 200 /* ten seconds of waits of WAIT_MS: a rank sets OUT up in less */

static const char *const finished_names[] = {"manifest.json",  "sources.jsonl",
                                             "tokenizer.json", SGT_TOKENIZER_CONFIG,
                                             SGT_DEDUP_FILE,   SGT_OUT_INPUTS};
static const char *const work_names[] = {
    "journal",       "inputs.jsonl",   "sources.jsonl",
    "manifest.json", "tokenizer.json", SGT_TOKENIZER_CONFIG,
    SGT_DEDUP_FILE,  "helpers"}; /* helpers: a lock of earlier versions */
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- names ---- */

static int listed(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i])) return 1;
    return 0;
}

/* Return whether `name` in OUT belongs to a complete set and is not a shard that the journal `ctx`
 * (NULL: none) lists. */
static int stale_in_out(const char *name, const void *ctx)
{
    const sgt_journal *j = ctx;
    int split;
    uint64_t index;
    if (listed(name, finished_names, COUNT(finished_names))) return 1;
    return sgt_writer_reads_name(name, &split, &index) && !(j && index < j->count[split]);
}

/* Return whether `name` in .work is a rank's file (meet.h). */
static int is_of_rank(const char *name, const void *ctx)
{
    (void)ctx;
    return !strncmp(name, SGT_OUT_RANK, strlen(SGT_OUT_RANK));
}

/* Return whether `name` in .work is a file to remove: one of ours, but not the lock. With `j`, only
 * temporary files count, and not those of the shard that `j` has begun. */
static int stale_in_work(const char *name, const void *ctx)
{
    const sgt_journal *j = ctx;
    char known[64];
    size_t n = strlen(name);
    if (!j && (listed(name, work_names, COUNT(work_names)) || is_of_rank(name, NULL))) return 1;
    if (n < 4 || strcmp(name + n - 4, ".tmp")) return 0;
    for (int s = 0; j && s < SGT_SPLITS; s++)
        for (int k = 0; k < 2; k++) {
            if (!j->now.tokens[s]) continue;
            sgt_writer_name(known, sgt_split_names[s], j->count[s], k ? "idx.tmp" : "bin.tmp");
            if (!strcmp(name, known)) return 0;
        }
    return 1;
}

void sgt_out_part_name(char name[32], uint32_t part) { snprintf(name, 32, "part-%06u", part); }

static int remove_parts(const char *work, sgt_error *err)
{
    int rc = SGT_OK;
    DIR *d = opendir(work);
    if (!d) return sgt_fail_errno(err, "%s", work);
    for (const struct dirent *e; !rc && (e = readdir(d));) {
        if (!sgt_out_is_part(e->d_name)) continue;
        char *path = sgt_join(work, e->d_name);
        rc = path ? sgt_remove_tree(path, err) : sgt_fail_memory(err, work);
        free(path);
    }
    closedir(d);
    return rc;
}

/* ---- the lock ---- */

/* Make .work, which must be a real folder. Refuse a symbolic link: cleaning up would delete files
 * somewhere else, and a link that leads nowhere would make us wait for ever. */
static int make_work(const char *work, sgt_error *err)
{
    struct stat st;
    /* flush OUT's entry: if a crash lost .work and its journal, OUT would have no owner */
    if (mkdir(work, 0777) == 0) return sgt_sync_parent(work, err);
    if (errno != EEXIST) return sgt_fail_errno(err, "%s: cannot make this folder", work);
    if (lstat(work, &st) == 0 && !S_ISDIR(st.st_mode))
        return sgt_fail(err, SGT_EIO, "%s: is not a folder (remove it, or name another OUT)", work);
    return SGT_OK; /* a folder; or the run that just ended has removed it */
}

/* Lock OUT/.work/lock: LOCK_EX for this process alone, LOCK_SH shared. Return 1 if another run's
 * lock prevents that. A run that ends removes the file, so check that the locked file is the one
 * that exists. */
static int lock_work(sgt_out *o, int how, sgt_error *err)
{
    char *path = sgt_join(o->work, "lock");
    struct stat held, there;
    int rc = path ? SGT_OK : sgt_fail_memory(err, o->work);
    for (int done = 0; !rc && !done;) {
        if ((rc = make_work(o->work, err)) < 0) break;
        o->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        /* .work is gone: the run that just ended has removed it */
        if (o->lock < 0 && errno == ENOENT) continue;
        if (o->lock < 0) rc = sgt_fail_errno(err, "%s", path);
        else if (flock(o->lock, how | LOCK_NB) < 0)
            rc = errno == EWOULDBLOCK ? 1 : sgt_fail_errno(err, "%s: cannot lock", path);
        else
            done = fstat(o->lock, &held) == 0 && stat(path, &there) == 0 &&
                   held.st_ino == there.st_ino && held.st_dev == there.st_dev;
        if (!done && o->lock >= 0) {
            close(o->lock);
            o->lock = -1;
        }
    }
    free(path);
    return rc;
}

static int at_work(const sgt_out *o, sgt_error *err)
{
    return sgt_fail(err, SGT_EIO, "%s: another sgt-tokenize is running here (wait for it)",
                    o->path);
}

static void unlock(sgt_out *o)
{
    if (o->lock >= 0) close(o->lock);
    o->lock = -1;
}

/* Remove .work with the lock, as far as it holds only our files. */
static void remove_work(sgt_out *o)
{
    char *path = sgt_join(o->work, "lock");
    sgt_sweep(o->work, stale_in_work, NULL, NULL);
    remove_parts(o->work, NULL);
    if (path) unlink(path);
    rmdir(o->work); /* fails, as it should, if another program keeps a file there */
    free(path);
}

/* ---- claiming ---- */

/* Check whether OUT may be used at all, before anything in it is changed. */
static int check_folder(const sgt_out_request *r, sgt_error *err)
{
    struct stat st;
    /* .work: another rank may be making it at this moment */
    static const char *const harmless[] = {"lost+found", ".work"};
    if (stat(r->path, &st) < 0)
        return errno == ENOENT ? SGT_OK : sgt_fail_errno(err, "%s", r->path);
    if (!S_ISDIR(st.st_mode))
        return sgt_fail(err, SGT_EIO, "%s: OUT is a file, not a folder (name another OUT)",
                        r->path);
    if (r->force || sgt_out_file_exists(r->path, "manifest.json") ||
        sgt_out_file_exists(r->path, ".work"))
        return SGT_OK;
    if (sgt_out_holds_other_than(r->path, harmless, COUNT(harmless)))
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: OUT is not empty, and sgt-tokenize did not make it (name a new folder, "
            "or --force writes beside what is there)",
            r->path);
    return SGT_OK;
}

int sgt_out_clear(const sgt_out *o, sgt_error *err)
{
    int rc = sgt_export_retire(o->path, o->work, err);
    return rc < 0 ? rc : sgt_sweep(o->path, stale_in_out, NULL, err);
}

/* Start over, ignoring any earlier run. Once the new journal exists, the old files are stale, and
 * are then removed. */
static int start_over(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc;
    sgt_journal_close(o->journal);
    o->journal = NULL;
    if ((rc = sgt_sweep(o->work, stale_in_work, NULL, err)) < 0 ||
        (rc = sgt_out_write_inputs(o->work, "inputs.jsonl", r->corpus, err)) < 0 ||
        (rc = sgt_journal_create(&o->journal, o->work, sgt_vocab_fingerprint(r->vocab),
                                 r->journal_options ? r->journal_options : r->options, err)) < 0 ||
        (rc = remove_parts(o->work, err)) < 0)
        return rc;
    if ((rc = sgt_out_clear(o, err)) < 0) return rc;
    /* Parts begin from a clean OUT. Until the journal has a state, every later run starts over. */
    const sgt_manifest_shard none[SGT_SPLITS] = {0};
    return r->journal_options ? sgt_journal_commit(o->journal, none, &o->journal->now, err)
                              : SGT_OK;
}

/* Move `name` from OUT back to .work as `as`, where the journal expects it. It was moved to OUT
 * after the last line of the journal that survived. */
static int take_back(const sgt_out *o, const char *name, const char *as, sgt_error *err)
{
    if (sgt_out_file_exists(o->work, as) || !sgt_out_file_exists(o->path, name)) return SGT_OK;
    return sgt_move(o->path, o->work, name, as, NULL, err);
}

/* Check a file of the unfinished shard: it has at least the bytes that the journal says. It is in
 * OUT if the journal lost its last lines after the shard was completed. That happens on a disk that
 * loses acknowledged writes. */
static int check_begun_file(const sgt_out *o, int split, const char *suffix, uint64_t bytes,
                            sgt_error *err)
{
    char name[64], begun[72];
    sgt_writer_name(name, sgt_split_names[split], o->journal->count[split], suffix);
    snprintf(begun, sizeof begun, "%s.tmp", name);
    int rc = take_back(o, name, begun, err);
    return rc < 0 ? rc : sgt_out_check_size(o->work, begun, bytes, 1, err);
}

static int check_begun(const sgt_out *o, int split, sgt_error *err)
{
    const sgt_checkpoint *now = &o->journal->now;
    if (!now->tokens[split]) return SGT_OK;
    int rc = check_begun_file(o, split, "bin", SGT_SHARD_HEADER + 2 * now->tokens[split], err);
    return rc < 0 ? rc : check_begun_file(o, split, "idx", 8 * now->documents[split], err);
}

/* Resume: move the complete shards that the journal lists to OUT, and remove everything else of
 * ours in .work and OUT. */
static int go_on(sgt_out *o, sgt_error *err)
{
    const sgt_journal *j = o->journal;
    int rc = SGT_OK;
    for (int s = 0; s < SGT_SPLITS && !rc; s++) {
        for (size_t i = 0; i < j->count[s] && !rc; i++) {
            const sgt_manifest_shard *shard = &j->shards[s][i];
            char idx[64];
            sgt_writer_name(idx, shard->split, i, "idx");
            if ((rc = sgt_out_move_shard(o, shard, err)) == 0 &&
                (rc = sgt_out_check_size(o->path, shard->file, SGT_SHARD_HEADER + 2 * shard->tokens,
                                         0, err)) == 0)
                rc = sgt_out_check_size(o->path, idx, 8 * shard->documents, 0, err);
        }
        if (!rc) rc = check_begun(o, s, err);
    }
    if (!rc && j->now.sources) rc = take_back(o, "sources.jsonl", "sources.jsonl", err);
    if (!rc) rc = take_back(o, SGT_DEDUP_FILE, SGT_DEDUP_FILE, err);
    if (!rc) rc = sgt_out_check_size(o->work, "sources.jsonl", j->now.sources, 1, err);
    if (!rc) rc = sgt_sweep(o->work, stale_in_work, j, err);
    if (!rc) rc = sgt_sweep(o->path, stale_in_out, j, err);
    return rc;
}

/* Under the lock, find out whether OUT is complete or a run can be resumed; otherwise start
 * over. */
static int take_over(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    if (r->force == SGT_OUT_ANEW && sgt_out_file_exists(r->path, "manifest.json"))
        return start_over(o, r, err);
    int rc = sgt_out_is_complete(r, err);
    if (rc == 1) {
        remove_work(o); /* .work was left by a run that was killed at its very end */
        return 1;
    }
    if (!rc && (rc = sgt_journal_open(&o->journal, o->work, err)) == 0)
        rc = sgt_out_may_resume(o->journal, r, o->work, err);
    /* with parts, each part resumes by its own journal */
    if (rc == 1 && (r->journal_options || (rc = go_on(o, err)) == 0)) return SGT_OK;
    return rc < 0 && !r->force ? rc : start_over(o, r, err);
}

/* Check what needs no lock. Return 1 if OUT is complete; it is then not changed at all, as it may
 * be read-only. */
static int approach(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    struct stat st;
    int rc = check_folder(r, err);
    *o = (sgt_out){.path = r->path, .lock = -1, .made = stat(r->path, &st) < 0};
    o->had_work = sgt_out_file_exists(r->path, ".work");
    if (rc < 0) return rc;
    if (!o->had_work && r->corpus && r->force != SGT_OUT_ANEW &&
        (rc = sgt_out_is_complete(r, err)) != 0 && (rc > 0 || !r->force))
        return rc;
    if (!o->made && access(r->path, R_OK | W_OK | X_OK) < 0)
        return sgt_fail_errno(err, "%s: cannot write to OUT", r->path);
    if (!(o->work = sgt_join(r->path, ".work"))) return sgt_fail_memory(err, r->path);
    return sgt_make_folders(r->path, err);
}

int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc = approach(o, r, err);
    if (rc > 0 || (rc < 0 && !o->work)) return rc;
    if (!rc && (rc = lock_work(o, LOCK_EX, err)) == 1) rc = at_work(o, err);
    if (!rc && (rc = take_over(o, r, err)) == 0) return SGT_OK;
    sgt_out_release(o, o->had_work);
    return rc;
}

int sgt_out_claim_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    static const char *const of_a_set[] = {"manifest.json", ".work/journal", "train_000000.bin",
                                           "val_000000.bin"};
    int found = 0;
    for (size_t i = 0; i < COUNT(of_a_set); i++) found |= sgt_out_file_exists(r->path, of_a_set[i]);
    if (found && !r->force)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: OUT is there already (name a new folder, or --force replaces the set "
                        "in it)",
                        r->path);
    int rc = approach(o, r, err);
    if (rc < 0 && !o->work) return rc;
    if (!rc && (rc = lock_work(o, LOCK_EX, err)) == 1)
        rc = sgt_fail(err, SGT_EIO, "%s: another program is at work here (wait for it)", o->path);
    if (!rc && (rc = sgt_sweep(o->work, stale_in_work, NULL, err)) == 0 &&
        (rc = remove_parts(o->work, err)) == 0)
        return SGT_OK;
    sgt_out_release(o, o->had_work);
    return rc;
}

/* ---- ranks ---- */

static int wait_a_turn(const sgt_out_request *r, sgt_error *err)
{
    nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    return sgt_stopped(r->stop) ? sgt_fail(err, SGT_ESTOPPED, "stopped") : SGT_OK;
}

/* Called with a shared lock: check that the ranks that share OUT make the same set. */
static int check_joined(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc = sgt_out_is_complete(r, err);
    if (!rc && (rc = sgt_journal_open(&o->journal, o->work, err)) == 0)
        if ((rc = sgt_out_matches(o->journal, r, o->work, err)) == 1) return SGT_OK;
    return rc > 0 || (rc < 0 && !r->force) ? rc : at_work(o, err);
}

/* Remove from .work, which no other rank uses, what ranks of an earlier run told each other; with
 * `force`, also what they have sorted. */
static int forget_ranks(const sgt_out *o, int force, sgt_error *err)
{
    char *sorting = sgt_join(o->work, SGT_OUT_SORTING);
    int rc = sorting ? sgt_sweep(o->work, is_of_rank, NULL, err) : sgt_fail_memory(err, o->work);
    if (!rc && force) rc = sgt_remove_tree(sorting, err);
    free(sorting);
    return rc;
}

int sgt_out_join(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc = approach(o, r, err);
    if (rc > 0 || (rc < 0 && !o->work)) return rc;
    for (int turn = 0; !rc; turn++) {
        if ((rc = lock_work(o, LOCK_EX, err)) == 0) {
            if ((rc = take_over(o, r, err)) == 0 && (rc = forget_ranks(o, r->force, err)) == 0 &&
                flock(o->lock, LOCK_SH) < 0)
                rc = sgt_fail_errno(err, "%s/lock: cannot lock", o->work);
            break;
        }
        if (rc == 1 && (rc = lock_work(o, LOCK_SH, err)) == 0) {
            rc = check_joined(o, r, err);
            break;
        }
        if (rc == 1) rc = turn < WAIT_TURNS ? wait_a_turn(r, err) : at_work(o, err);
    }
    if (rc) sgt_out_release(o, o->had_work);
    return rc;
}

void sgt_out_share_no_more(sgt_out *o) { unlock(o); }

int sgt_out_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc;
    while ((rc = lock_work(o, LOCK_EX, err)) == 1)
        if ((rc = wait_a_turn(r, err)) < 0) return rc;
    if (rc < 0) return rc;
    sgt_journal_close(o->journal);
    o->journal = NULL;
    if ((rc = sgt_out_is_complete(r, err)) == 1) remove_work(o);
    if (!rc && (rc = sgt_journal_open(&o->journal, o->work, err)) == 0)
        rc = r->corpus->stream || sgt_out_may_resume(o->journal, r, o->work, err) == 1
                 ? SGT_OK
                 : sgt_fail(err, SGT_EIO, "%s: another command has taken it over", o->path);
    return rc ? rc : sgt_out_write_inputs(o->work, "inputs.jsonl", r->corpus, err);
}

void sgt_out_leave(sgt_out *o)
{
    int untouched = 0;
    if (o->work && o->lock >= 0 && flock(o->lock, LOCK_EX | LOCK_NB) == 0)
        untouched = !sgt_out_has_parts(o->work) && !sgt_out_file_exists(o->path, "manifest.json");
    else unlock(o);
    sgt_out_release(o, !untouched);
}

/* Move a file from .work to OUT; if it is not in .work, it must be in OUT. Only rename decides that
 * it is gone: a wrong lookup on some file system must not complete a set without it. */
static int move_if_there(const sgt_out *o, const char *from, const char *to, sgt_error *err)
{
    int gone = 0, rc = sgt_move(o->work, o->path, from, to, &gone, err);
    return gone ? sgt_out_check_size(o->path, to, 0, 1, err) : rc;
}

int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err)
{
    static const char *const suffixes[] = {"bin", "idx"};
    int rc = SGT_OK;
    for (size_t i = 0; i < COUNT(suffixes) && !rc; i++) {
        char name[64], temporary[80];
        size_t n = strlen(s->file) - 3; /* without "bin" */
        snprintf(name, sizeof name, "%.*s%s", (int)n, s->file, suffixes[i]);
        snprintf(temporary, sizeof temporary, "%s.tmp", name);
        rc = move_if_there(o, temporary, name, err);
    }
    return rc;
}

/* ---- completing ---- */

int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err)
{
    char *text = NULL, *path = sgt_join(o->work, "tokenizer.json");
    size_t n;
    int none = 0;
    int rc = path ? SGT_OK : sgt_fail_memory(err, o->path);
    if (rc < 0 || (rc = sgt_vocab_tokenizer_json(v, &text, &n, err)) < 0 ||
        (rc = sgt_file_put(path, text, n, err)) < 0 ||
        (rc = sgt_move(o->work, o->path, "tokenizer.json", "tokenizer.json", NULL, err)) < 0 ||
        (m->foreign && ((rc = sgt_tokenizer_config_write(o->work, v->eot_text, 0, err)) < 0 ||
                        (rc = sgt_move(o->work, o->path, SGT_TOKENIZER_CONFIG, SGT_TOKENIZER_CONFIG,
                                       NULL, err)) < 0)) ||
        (rc = sgt_move(o->work, o->path, "sources.jsonl", "sources.jsonl", NULL, err)) < 0 ||
        /* only a rank's part of a set has a SGT_DEDUP_FILE */
        (rc = sgt_move(o->work, o->path, SGT_DEDUP_FILE, SGT_DEDUP_FILE, &none, err)) < 0 ||
        (rc = sgt_manifest_write(m, o->work, err)) < 0)
        goto done;
    /* Every other name must be durable before the manifest, which says that they all are. */
    if ((rc = sgt_sync_folder(o->path, err)) < 0 ||
        (rc = sgt_move(o->work, o->path, "manifest.json", "manifest.json", NULL, err)) < 0 ||
        /* After the manifest: until that is there, a run that resumes looks for it in .work. A set
         * that was not made from text has none. */
        (rc = sgt_move(o->work, o->path, "inputs.jsonl", SGT_OUT_INPUTS, &none, err)) < 0 ||
        (rc = sgt_sync_folder(o->path, err)) < 0)
        goto done;
    remove_work(o);
done:
    free(text);
    free(path);
    return rc;
}

void sgt_out_release(sgt_out *o, int keep)
{
    if (!keep) {
        if (o->lock >= 0) remove_work(o);
        else rmdir(o->work); /* .work was made but never locked */
        if (o->made) rmdir(o->path);
    }
    sgt_journal_close(o->journal);
    unlock(o);
    free(o->work);
    *o = (sgt_out){.lock = -1};
}
