/* out.c: claims, completes and releases the output folder OUT. To decide if an earlier run can be
 * resumed, it compares the contents of OUT with the request of this run. */
#include "tokenize/out/out.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/shards/shard.h"
#include "tokenize/input/feed.h"
#include "tokenize/out/record.h"
#include "tokenize/out/writer.h"
#include "tokenize/vocab/vocab.h"

/* size in bytes of a Megatron-LM index that lists no documents (megatron.h) */
#define MEGATRON_INDEX 42
/* subfolder of .work for shards that are made only to be converted to another layout */
#define SET "set"
/* Maximum number of attempts to create .work. An attempt fails if another process removes the
 * output folder at the same moment. */
#define MOST_TRIES 1000
/* value returned by check_joined if this rank cannot join the ranks that are running */
#define NOT_JOINED 2
#define WAIT_MS 50
/* Maximum number of times that a rank waits for WAIT_MS while another rank sets up or completes the
 * output folder. Together, these waits take ten seconds, which is more than the other rank
 * needs. */
#define WAIT_TURNS 200

/* names of the files of a complete set, except its shards; .inputs.jsonl exists only in sets made
 * before 2026-11-29 */
static const char *const finished_names[] = {"manifest.json",  "sources.jsonl",
                                             "tokenizer.json", SGT_TOKENIZER_CONFIG,
                                             SGT_DEDUP_FILE,   ".inputs.jsonl"};
/* names that .work always holds */
static const char *const guards[] = {".", "..", "lock", "owner"};
#define COUNT(a) (sizeof(a) / sizeof *(a))
/* Size in bytes of the buffer for an option's value in an error message. Longer values are
 * truncated, because the message itself has a limited size. */
#define VALUE_SHOWN 1024

/* ---- files ---- */

static int has_file(const char *folder, const char *name)
{
    struct stat st;
    char path[SGT_PATH];
    return lstat(sgt_path(path, folder, "%s", name), &st) == 0;
}

int sgt_out_is_begun(const char *out)
{
    return has_file(out, "manifest.json") || has_file(out, ".work");
}

int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count)
{
    int found = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        found = strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
        for (size_t i = 0; i < count && found; i++) found = strcmp(e->d_name, names[i]) != 0;
    }
    if (d) closedir(d);
    return found;
}

/* Return 1 if .work has an entry whose name is `begin` followed by a rank's number, else 0. `begin`
 * is "part-" for folders in which ranks write their shards, or "owner-" for ranks' owner files. */
static int has_rank(const char *work, const char *begin)
{
    const size_t n = strlen(begin);
    int found = 0;
    DIR *d = opendir(work);
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = !strncmp(e->d_name, begin, n) && strspn(e->d_name + n, "0123456789") == 6 &&
                !e->d_name[n + 6];
    if (d) closedir(d);
    return found;
}

/* Return an error unless the file `name` in `folder` has exactly `want` bytes or, if `at_least` is
 * 1, `want` bytes or more. */
static int check_size(const char *folder, const char *name, uint64_t want, int at_least,
                      sgt_error *err)
{
    struct stat st;
    char path[SGT_PATH];
    if (stat(sgt_path(path, folder, "%s", name), &st) < 0)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: was written earlier, but cannot be found: %s (--force starts over)",
                        path, strerror(errno));
    if (at_least ? (uint64_t)st.st_size >= want : (uint64_t)st.st_size == want) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: has %lld bytes, but %" PRIu64 " were written (--force starts over)", path,
                    (long long)st.st_size, want);
}

/* ---- options ---- */

/* Return the value of an option as a user would type it on the command line. If the value is a JSON
 * string, return the string itself. Otherwise, write the value to `to`, which must be all zeros on
 * entry, and return `to`; a value that is too long is truncated. */
static const char *as_typed(char to[VALUE_SHOWN], const json_t *v)
{
    if (!v) return "not given";
    if (json_is_string(v)) return json_string_value(v);
    json_dumpb(v, to, VALUE_SHOWN - 1, JSON_ENCODE_ANY);
    return to;
}

/* Return the name of the first option in `a` that is missing in `b` or has a different value there,
 * or NULL if there is no such option. */
static const char *first_difference(json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    json_object_foreach(a, key, value) if (!json_equal(json_object_get(b, key), value)) return key;
    return NULL;
}

/* Return an error if `a`, the options of the set in the output folder, and `b`, the options of this
 * run, differ. Both are JSON objects. */
static int compare_objects(const char *out, json_t *a, json_t *b, sgt_error *err)
{
    char had[VALUE_SHOWN] = {0}, has[VALUE_SHOWN] = {0}, option[64];
    const json_t *x = json_object_get(a, "shards"), *y = json_object_get(b, "shards");
    /* compare the layout first, because a different layout has different other options */
    const char *key = (x || y) && !json_equal(x, y) ? "shards" : first_difference(b, a);
    if (!key) key = first_difference(a, b);
    if (!key) return SGT_OK;
    snprintf(option, sizeof option, "%s", key);
    for (char *c = option; (c = strchr(c, '_'));) *c = '-';
    return sgt_fail(err, SGT_EFORMAT, "%s: made with --%s %s, now %s (--force replaces it)", out,
                    option, as_typed(had, json_object_get(a, key)),
                    as_typed(has, json_object_get(b, key)));
}

static int compare_options(const char *out, const char *made, const char *now, sgt_error *err)
{
    json_t *a = json_loads(made, 0, NULL), *b = json_loads(now, 0, NULL);
    int rc = json_is_object(a) && json_is_object(b)
                 ? compare_objects(out, a, b, err)
                 : sgt_fail(err, SGT_EFORMAT,
                            "%s: does not record the options that it was made with (--force "
                            "replaces it)",
                            out);
    json_decref(a);
    json_decref(b);
    return rc;
}

static int compare_vocabulary(const char *out, uint64_t made, const sgt_vocab *v, sgt_error *err)
{
    if (made == sgt_vocab_fingerprint(v)) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: made with a different vocabulary: fingerprint %016" PRIx64
                    ", now %016" PRIx64 " (--force replaces it)",
                    out, made, sgt_vocab_fingerprint(v));
}

/* ---- inputs ---- */

/* Return an error that says how input i of the corpus differs from `line`, the corresponding line
 * of the list of inputs that the earlier run wrote. `line` is NULL if that list has fewer lines. */
static int other_input(const char *out, const char *line, const sgt_corpus *c, size_t i,
                       sgt_error *err)
{
    json_t *o = line ? json_loads(line, 0, NULL) : NULL;
    const char *path = json_string_value(json_object_get(o, "path"));
    const sgt_corpus_file *f = i < c->count ? &c->files[i] : NULL;
    const char *was = json_object_get(o, "format") ? " of JSONL" : "",
               *now = f && f->lines == 2 ? " of JSONL" : "";
    int rc;
    if (line && !path)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: its list of inputs is damaged (--force replaces it)",
                      out);
    else if (path && f && !strcmp(path, f->name))
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: made from different inputs: %s had %" JSON_INTEGER_FORMAT
                      " bytes%s, now %" PRIu64 "%s (--force replaces it)",
                      out, f->path, json_integer_value(json_object_get(o, "size")), was, f->size,
                      now);
    else
        rc = sgt_fail(
            err, SGT_EFORMAT,
            "%s: made from different inputs: input %zu was %s, now %s (--force replaces it)", out,
            i + 1, path ? path : "none", f ? f->path : "none");
    json_decref(o);
    return rc;
}

/* Records that an earlier run made of its inputs; they show if an input has changed since then
 * (feed.h). */
typedef struct known {
    /* list with one line per input: inputs.jsonl if the earlier run is to be resumed, or
     * sources.jsonl if its set is complete */
    FILE *list;
    /* the lines of sources.jsonl that the interrupted run has written so far; NULL if it has
     * written none */
    FILE *sources;
    /* checkpoint of the earlier run if it was interrupted; NULL if its set is complete */
    const sgt_checkpoint *now;
    /* buffer of SGT_CORPUS_LINE bytes for the line about the current input; if the earlier run read
     * this input to its end, the line has a hash of its content */
    char *line;
} known;

/* Read lines from f until one describes an input file and not a document, and store this line in
 * the buffer `line` of SGT_CORPUS_LINE bytes. At the end of the list, or if f is NULL, store "". */
static void next_line(char *line, FILE *f)
{
    do
        if (!f || !sgt_file_line(line, SGT_CORPUS_LINE, f)) *line = 0;
    while (*line && sgt_corpus_is_document(line));
}

/* Return an error if the content of input i has changed since the earlier run read it. If that run
 * was interrupted in this input, compare only the bytes before the position that it had reached. */
static int compare_bytes(const sgt_out_request *r, const known *k, size_t i, sgt_error *err)
{
    static const char key[] = "\"xxh3\": \"";
    const sgt_corpus_file *f = &r->corpus->files[i];
    const char *at = strstr(k->line, key);
    const int read = !k->now || i < k->now->file;
    uint64_t hash = 0;
    if (read && !at) return other_input(r->path, "", r->corpus, i, err);
    /* nothing to compare here: either the earlier run has not read this input, or its journal has
     * no hash because each rank compares the input when it resumes its own part */
    if (!read && (i > k->now->file || !k->now->hashed)) return SGT_OK;
    const uint64_t was = read ? strtoull(at + sizeof key - 1, NULL, 16) : k->now->hash;
    const int rc =
        sgt_same_hash(&hash, f, r->corpus->field, read ? UINT64_MAX : k->now->hashed, r->stop, err);
    if (rc < 0 || hash == was) return rc;
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: made from different inputs: the content of %s has changed (--force replaces it)",
        r->path, f->path);
}

/* Read the next line of each list, and compare the description of input i in it with input i of the
 * corpus. */
static int compare_input(const sgt_out_request *r, known *k, size_t i, sgt_error *err)
{
    const sgt_corpus *c = r->corpus;
    const char *line = k->line;
    next_line(k->line, k->list);
    if (k->sources && i < k->now->file) next_line(k->line, k->sources);
    if (!*line) return other_input(r->path, NULL, c, i, err);
    const uint64_t size = c->files[i].size;
    char *name = sgt_corpus_line(c, i, size, 0, NULL), *stat = sgt_corpus_line(c, i, size, 1, NULL);
    int rc = SGT_OK;
    if (!name || !stat) rc = sgt_fail_memory(err, r->path);
    else if (strncmp(line, name, strlen(name))) rc = other_input(r->path, line, c, i, err);
    else if (!c->stream && strncmp(line, stat, strlen(stat))) rc = compare_bytes(r, k, i, err);
    free(name);
    free(stat);
    return rc;
}

/* Open the file `name` in `folder`, to be read line by line, as *f. */
static int open_list(FILE **f, const char *folder, const char *name, sgt_error *err)
{
    char path[SGT_PATH];
    sgt_error why;
    const int rc = sgt_file_lines(f, sgt_path(path, folder, "%s", name), &why);
    return rc < 0 ? sgt_fail(err, rc, "%s (--force starts over)", why.text) : SGT_OK;
}

/* Write inputs.jsonl into `work`, with one line per input. A later run that resumes this one
 * compares its inputs with these lines. */
static int write_inputs(const char *work, const sgt_corpus *c, sgt_error *err)
{
    char path[SGT_PATH], *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int rc = f ? SGT_OK : sgt_fail_memory(err, work);
    for (size_t i = 0; i < c->count && !rc; i++) {
        char *line = sgt_corpus_line(c, i, c->files[i].size, 1, NULL);
        if (!line || fprintf(f, "%s}\n", line) < 0) rc = sgt_fail_memory(err, work);
        free(line);
    }
    if (f && fclose(f) != 0 && !rc) rc = sgt_fail_memory(err, work);
    if (!rc) rc = sgt_file_put(sgt_path(path, work, "inputs.jsonl"), text, n, err);
    free(text);
    return rc;
}

int sgt_out_compare_inputs(const sgt_out_request *r, const char *folder, const sgt_checkpoint *now,
                           sgt_error *err)
{
    const size_t count = r->corpus->count;
    known k = {.now = now, .line = malloc(SGT_CORPUS_LINE)};
    if (!k.line) return sgt_fail_memory(err, folder);
    int rc = open_list(&k.list, folder, now ? "inputs.jsonl" : "sources.jsonl", err);
    /* if .work has no sources.jsonl, open the one in the output folder: the earlier run may have
     * moved it there before it was killed */
    if (!rc && now && now->sources)
        rc = open_list(&k.sources, has_file(folder, "sources.jsonl") ? folder : r->path,
                       "sources.jsonl", err);
    for (size_t i = 0; i < count && !rc; i++) rc = compare_input(r, &k, i, err);
    if (!rc) next_line(k.line, k.list);
    if (!rc && *k.line) rc = other_input(r->path, k.line, r->corpus, count, err);
    if (k.list) fclose(k.list);
    if (k.sources) fclose(k.sources);
    free(k.line);
    return rc;
}

/* ---- OUT as a whole ---- */

/* Return an error if a file of shard s does not have the size that follows from the counts in the
 * manifest m. In layouts other than sgt's, the token file has no header, and a document index
 * exists only for Megatron-LM, with 20 bytes per document. */
static int check_shard(const char *out, const sgt_manifest *m, const sgt_manifest_shard *s,
                       sgt_error *err)
{
    const uint64_t header = m->foreign ? 0 : SGT_SHARD_HEADER;
    const uint64_t index = m->foreign ? MEGATRON_INDEX + 20 * s->documents : 8 * s->documents;
    char idx[64];
    sgt_writer_index_name(idx, s->file);
    const int rc = check_size(out, s->file, header + sgt_id_width(m->vocab) * s->tokens, 0, err);
    return rc || m->raw ? rc : check_size(out, idx, index, 0, err);
}

/* Return 1 if the output folder holds a complete set that was made for the same request, or 0 if
 * the folder has no manifest. Return a negative SGT_E* in these cases:
 * - the set was made with a different vocabulary or different options;
 * - the set was made from inputs with different paths, sizes or contents (feed.h);
 * - the request reads standard input, which cannot be compared with earlier input;
 * - the set is damaged. */
static int is_complete(const sgt_out_request *r, sgt_error *err)
{
    sgt_manifest m;
    if (!has_file(r->path, "manifest.json")) return 0;
    int rc = sgt_manifest_read(&m, r->path, err);
    if (rc < 0) return rc;
    rc = compare_vocabulary(r->path, m.fingerprint, r->vocab, err);
    if (!rc) rc = compare_options(r->path, m.options, r->options, err);
    if (!rc && r->corpus->stream)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: already complete, and its input cannot be compared with standard input "
                      "(--force replaces it)",
                      r->path);
    if (!rc) rc = sgt_out_compare_inputs(r, r->path, NULL, err);
    for (size_t i = 0; i < m.count && !rc; i++) rc = check_shard(r->path, &m, &m.shards[i], err);
    sgt_manifest_free(&m);
    return rc < 0 ? rc : 1;
}

/* Return an error if the journal has values that are impossible for these inputs and options, for
 * example because someone has edited the journal. */
static int check_journal(const sgt_journal *j, const sgt_out_request *r, sgt_error *err)
{
    const sgt_corpus_file *f =
        j->now.file < r->corpus->count ? &r->corpus->files[j->now.file] : NULL;
    int sound = f ? !sgt_corpus_sought(f) || j->now.offset <= f->size
                  : j->now.file == r->corpus->count && !j->now.offset;
    for (size_t i = 0; i < j->invalid_count; i++) sound &= j->invalid[i].file < r->corpus->count;
    for (int s = 0; s < SGT_SPLITS; s++)
        sound &= j->now.shards[s] <= SGT_WRITER_SHARDS &&
                 j->now.tokens[s] <= SGT_SHARD_MAX_TOKENS &&
                 j->now.documents[s] <= j->now.tokens[s];
    return sound ? SGT_OK
                 : sgt_fail(err, SGT_EFORMAT, "%s: damaged (--force starts over)", j->path);
}

/* Compare this request with the request of the earlier run that left the journal `j` in `work`. The
 * result is
 *
 *   1    the requests are the same
 *   0    they were not compared: there is no journal, it has no checkpoint, or the request
 *        reads standard input
 *   < 0  an error (SGT_E*): for example, the requests differ */
static int compare_run(const sgt_journal *j, const sgt_out_request *r, const char *work,
                       sgt_error *err)
{
    int rc;
    if (!j || !j->begun) return 0;
    if ((rc = compare_vocabulary(r->path, j->fingerprint, r->vocab, err)) == 0 &&
        (rc = compare_options(r->path, j->options,
                              r->journal_options ? r->journal_options : r->options, err)) == 0 &&
        (rc = sgt_out_compare_inputs(r, work, &j->now, err)) == 0 && !r->corpus->stream)
        rc = check_journal(j, r, err);
    return rc < 0 ? rc : !r->corpus->stream;
}

/* Decide if the run that left the journal `j` in `work` can be resumed. `j` is NULL if there is no
 * journal. The result is
 *
 *   1    the run can be resumed
 *   0    start over: there are no complete shards or parts to keep, or the request reads
 *        standard input
 *   < 0  an error (SGT_E*): `work` has complete shards or parts of a different request */
static int may_resume(const sgt_journal *j, const sgt_out_request *r, const char *work,
                      sgt_error *err)
{
    int rc = compare_run(j, r, work, err);
    /* if neither a complete shard nor a rank's part exists, starting over loses no work: do so
     * instead of returning the error */
    return rc < 0 && j && sgt_journal_empty(j) && !has_rank(work, "part-") ? 0 : rc;
}

/* ---- names ---- */

/* Return 1 if the file `name` in the output folder belongs to an earlier set and must be removed,
 * else 0. This is the case if complete sets have a file of this name, unless it belongs to a shard
 * that the journal `ctx` counts as complete. `ctx` is NULL if there is no journal. */
static int stale_in_out(const char *name, const void *ctx)
{
    const sgt_journal *j = ctx;
    int split;
    uint64_t index;
    for (size_t i = 0; i < COUNT(finished_names); i++)
        if (!strcmp(name, finished_names[i])) return 1;
    return sgt_writer_reads_name(name, &split, &index) && !(j && index < j->now.shards[split]);
}

/* Remove everything in the folder .work except its lock and its owner file. */
static int empty_work(const char *work, sgt_error *err)
{
    int rc = SGT_OK;
    DIR *d = opendir(work);
    if (!d) return sgt_fail_errno(err, "%s", work);
    for (const struct dirent *e; !rc && (e = readdir(d));) {
        char path[SGT_PATH];
        int keep = 0;
        for (size_t i = 0; i < COUNT(guards); i++) keep |= !strcmp(e->d_name, guards[i]);
        if (!keep) rc = sgt_remove_tree(sgt_path(path, work, "%s", e->d_name), err);
    }
    closedir(d);
    return rc;
}

/* ---- the lock ---- */

/* Return 1 if .work has entries other than the lock and the owner file, else 0. */
static int holds_work(const char *work)
{
    return sgt_out_holds_other_than(work, guards, COUNT(guards));
}

/* Create the output folder and the folder .work in it, unless they exist. Return an error if .work
 * is a symbolic link: removing its contents later would delete files in another folder, and if the
 * link leads nowhere, this process would wait forever. */
static int make_work(const char *out, const char *work, sgt_error *err)
{
    struct stat st;
    int tries = 0;
    /* Repeat this, because a rank that has no inputs may remove the output folder before .work is
     * created in it. */
    do {
        const int rc = sgt_make_folders(out, err);
        if (rc < 0) return rc;
        /* Flush the folder that contains .work to disk. If a crash lost .work and the journal in
         * it, nothing would show that the shards in the output folder are incomplete. */
        if (mkdir(work, 0777) == 0) return sgt_sync_parent(work, err);
    } while (errno == ENOENT && tries++ < MOST_TRIES);
    if (errno != EEXIST) return sgt_fail_errno(err, "%s: cannot create this folder", work);
    if (lstat(work, &st) == 0 && !S_ISDIR(st.st_mode))
        return sgt_fail(err, SGT_EIO, "%s: is not a folder (remove it, or name another OUT)", work);
    /* Accept an existing .work if it is empty or has an entry that only sgt creates: a lock, an
     * owner file, a rank's owner file, or a rank's part. Otherwise, return an error, because
     * everything in .work will be removed. (A rank's owner file can be the only such entry, if
     * another rank has just removed the lock and the owner file.) */
    if (!has_file(work, "lock") && !has_file(work, "owner") && !has_rank(work, "owner-") &&
        !has_rank(work, "part-") && holds_work(work))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: holds files that sgt did not create (move them, or name another OUT)",
                        work);
    /* .work is a folder now, unless a run that has just ended has removed it; the caller checks
     * this */
    return SGT_OK;
}

/* Lock OUT/.work for this process. Return 1 if another run holds the lock. A run that ends removes
 * the lock and .work, so after locking, check that both still exist; otherwise, try again. */
static int lock_work(sgt_out *o, sgt_error *err)
{
    int rc;
    do {
        sgt_owner_leave(&o->owner);
        if ((rc = make_work(o->path, o->work, err)) < 0) return rc;
        rc = sgt_owner_take(&o->owner, o->work, "owner", "lock", &o->who, err);
    } while (rc < 0 ? sgt_file_gone(o->work) : !rc && !has_file(o->work, "lock"));
    return rc;
}

/* Return an error that says that another run is using the output folder. If `rank` is 1 and
 * this rank is not rank 0, it also says that the other run has the same rank. */
static int at_work(const sgt_out_request *r, int rank, sgt_error *err)
{
    return sgt_fail(err, SGT_EIO, "%s: another %s this folder%s (wait until it ends)", r->path,
                    r->corpus ? "sgt-tokenize is using" : "program is using",
                    rank && r->rank ? " as this rank" : "");
}

/* Remove .work with its contents. Keep the lock until all other files are removed. */
static void remove_work(sgt_out *o)
{
    char path[SGT_PATH];
    /* leave .work to the next run if this run no longer owns the folder or cannot empty .work */
    if (sgt_out_check(o, NULL) < 0 || empty_work(o->work, NULL) < 0) return;
    unlink(sgt_path(path, o->work, "owner"));
    /* once the lock is removed, another run may create a new one and claim the folder */
    unlink(sgt_path(path, o->work, "lock"));
    /* if another run has just created a lock in .work, rmdir fails, as it should */
    rmdir(o->work);
    sgt_owner_leave(&o->owner);
}

/* ---- claiming ---- */

/* Return an error if this request must not use the output folder, because it is not a folder or
 * holds files that the request must not replace. Nothing is changed. */
static int check_folder(const sgt_out_request *r, sgt_error *err)
{
    struct stat st;
    /* names of entries that a folder may have and still count as empty; another rank may be
     * creating .work at this moment */
    static const char *const harmless[] = {"lost+found", ".work"};
    /* Files whose existence shows that the folder holds a set. The shards at the end of the list
     * are looked for only if the request has no corpus: such a request would otherwise add its
     * files to these shards, which may be in the folder without a journal or manifest. */
    static const char *const of_a_set[] = {"manifest.json", ".work/journal", "train_000000.bin",
                                           "val_000000.bin"};
    int taken = 0;
    for (size_t i = 0; i < (r->corpus ? 2 : COUNT(of_a_set)); i++)
        taken |= has_file(r->path, of_a_set[i]);
    if (stat(r->path, &st) < 0)
        return errno == ENOENT ? SGT_OK : sgt_fail_errno(err, "%s", r->path);
    if (!S_ISDIR(st.st_mode))
        return sgt_fail(err, SGT_EIO, "%s: OUT is a file, not a folder (name another OUT)",
                        r->path);
    if (r->force || (r->corpus ? taken : !taken && has_file(r->path, ".work")))
        /* accept the folder: either `force` allows overwriting it, or its files are from an earlier
         * request of the same kind */
        return SGT_OK;
    if (taken)
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: OUT already holds a set of shards (name a new folder, or --force replaces it)",
            r->path);
    if (sgt_out_holds_other_than(r->path, harmless, COUNT(harmless)))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: OUT is not empty, and has neither manifest.json nor .work/journal "
                        "(name a new folder, or --force adds the shards to it)",
                        r->path);
    return SGT_OK;
}

static int remove_file(const char *folder, const char *name, sgt_error *err)
{
    char path[SGT_PATH];
    if (unlink(sgt_path(path, folder, "%s", name)) == 0 || errno == ENOENT) return SGT_OK;
    return sgt_fail_errno(err, "%s: cannot remove", path);
}

/* If a set has another layout than sgt's, remove its files from the output folder `out`. The names
 * of these files are only in the set's manifest, in `folder`: this is `out` or, if the set's files
 * have not all been moved out of .work yet (export.h), .work. The manifest is kept, so that a later
 * call can finish if this one is killed. A set without its files does not count as complete. */
static int remove_listed(const char *out, const char *folder, sgt_error *err)
{
    sgt_manifest m = {0};
    char idx[64];
    int rc = has_file(folder, "manifest.json") ? sgt_manifest_read(&m, folder, err) : 0;
    /* treat a damaged manifest as one that lists no files, but return read errors, because a later
     * call may succeed in reading it */
    if (rc != SGT_ENOMEM && rc != SGT_EIO) rc = SGT_OK;
    for (size_t i = 0; i < m.count && m.foreign && !rc; i++) {
        sgt_writer_index_name(idx, m.shards[i].file);
        rc = m.raw ? SGT_OK : remove_file(out, idx, err);
        if (!rc) rc = remove_file(out, m.shards[i].file, err);
    }
    sgt_manifest_free(&m);
    return rc;
}

/* Remove the files of an earlier run that will not be resumed: files of another layout in the
 * output folder, and everything in .work. */
static int remove_begun(const sgt_out *o, sgt_error *err)
{
    const int rc = remove_listed(o->path, o->work, err);
    return rc ? rc : empty_work(o->work, err);
}

int sgt_out_clear(const sgt_out *o, sgt_error *err)
{
    int rc = sgt_out_check(o, err);
    if (!rc) rc = remove_listed(o->path, o->path, err);
    if (!rc) rc = remove_file(o->path, "manifest.json", err);
    if (!rc) rc = sgt_sync_folder(o->path, err);
    return rc < 0 ? rc : sgt_sweep(o->path, stale_in_out, NULL, err);
}

/* Start a new set instead of resuming an earlier run. The earlier run's files are removed from the
 * output folder after the new journal has been created, which does not count any of them. */
static int start_over(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc;
    sgt_journal_close(o->journal);
    o->journal = NULL;
    if ((rc = remove_begun(o, err)) < 0 || (rc = write_inputs(o->work, r->corpus, err)) < 0 ||
        (rc = sgt_journal_create(&o->journal, o->work, sgt_vocab_fingerprint(r->vocab),
                                 r->journal_options ? r->journal_options : r->options, err)) < 0 ||
        (rc = sgt_out_clear(o, err)) < 0 || (rc = sgt_make_folders(o->shards, err)) < 0)
        return rc;
    /* If there are parts, write a checkpoint that counts no shards. A journal without a checkpoint
     * would make a later run start over and remove the parts. */
    return r->journal_options ? sgt_journal_commit(o->journal, &o->journal->now, err) : SGT_OK;
}

/* Move the file `name` from the output folder back to .work, so that this run can continue writing
 * it. An earlier run may have moved it to the output folder while completing the set. */
static int move_back(const sgt_out *o, const char *name, sgt_error *err)
{
    if (has_file(o->work, name) || !has_file(o->path, name)) return SGT_OK;
    return sgt_move(o->path, o->work, name, name, NULL, err);
}

/* Return an error if a file of the unfinished shard of a split is shorter than the journal says.
 * The file may be longer, because the earlier run may have written more after its last
 * checkpoint. */
static int check_begun(const sgt_out *o, int split, const char *suffix, uint64_t bytes,
                       sgt_error *err)
{
    char name[64];
    if (!o->journal->now.tokens[split]) return SGT_OK;
    sgt_writer_name(name, sgt_split_names[split], o->journal->now.shards[split], suffix);
    return check_size(o->work, name, bytes, 1, err);
}

/* Prepare a split for resuming. Move the complete shards that the journal counts to o->shards,
 * unless they are already there, and check the files of these shards and of the unfinished
 * shard. */
static int go_on_with_split(const sgt_out *o, int split, sgt_error *err)
{
    const sgt_checkpoint *now = &o->journal->now;
    int rc = SGT_OK;
    for (uint64_t i = 0; i < now->shards[split] && !rc; i++) {
        sgt_manifest_shard s = {0};
        sgt_writer_name(s.file, sgt_split_names[split], i, "bin");
        rc = sgt_out_move_shard(o, &s, err);
        if (!rc && (rc = sgt_out_find_shard(o, split, i, &s, err)) == 1) rc = SGT_OK;
    }
    if (!rc)
        rc =
            check_begun(o, split, "bin.tmp", SGT_SHARD_HEADER + o->width * now->tokens[split], err);
    return rc ? rc : check_begun(o, split, "idx.tmp", 8 * now->documents[split], err);
}

/* Resume an earlier run at the state that its journal describes. Remove all other files of a set
 * from the output folder and from o->shards. */
static int go_on(sgt_out *o, sgt_error *err)
{
    const sgt_journal *j = o->journal;
    int rc = SGT_OK;
    for (int s = 0; s < SGT_SPLITS && !rc; s++) rc = go_on_with_split(o, s, err);
    if (!rc && j->now.sources) rc = move_back(o, "sources.jsonl", err);
    if (!rc) rc = move_back(o, SGT_DEDUP_FILE, err);
    if (!rc) rc = check_size(o->work, "sources.jsonl", j->now.sources, 1, err);
    if (!rc) rc = sgt_sweep(o->path, stale_in_out, j, err);
    if (!rc) rc = sgt_sweep(o->shards, stale_in_out, j, err);
    return rc;
}

/* If the set is already complete, return 1. Otherwise, resume an earlier run or, if that is
 * impossible, start over; then return 0. The caller must hold the lock. */
static int resume_or_start(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    char path[SGT_PATH];
    if (r->force == SGT_OUT_ANEW && has_file(r->path, "manifest.json"))
        return start_over(o, r, err);
    int rc = is_complete(r, err);
    if (rc == 1) {
        /* an earlier run completed the set, but was killed before it could remove .work */
        remove_work(o);
        return 1;
    }
    if (!rc && (rc = sgt_journal_open(&o->journal, o->work, err)) == 0)
        rc = may_resume(o->journal, r, o->work, err);
    /* If there are parts, each rank uses its part's own journal to resume the part. Only the files
     * that the ranks share (copies of documents for shuffling, and the list of duplicates) remain
     * to be handled here. With `force`, remove them, because they may be damaged. */
    if (rc == 1 && r->journal_options)
        return r->force ? sgt_remove_tree(sgt_path(path, o->work, SGT_OUT_SORTING), err) : SGT_OK;
    if (rc == 1 && (rc = go_on(o, err)) == 0) return SGT_OK;
    return rc < 0 && !r->force ? rc : start_over(o, r, err);
}

/* Return 1 if another rank that shares the output folder is running, else 0. It can take some time
 * to find out if a rank is still alive (owner.h). If `who` is NULL, the call does not wait for
 * this, and may also return 1 if a rank has died. */
static int find_sharer(const sgt_out *o, sgt_claimant *who, sgt_error *err)
{
    char path[SGT_PATH];
    int rc = 0;
    DIR *d = opendir(o->work);
    if (!d) return sgt_fail_errno(err, "%s", o->work);
    for (const struct dirent *e; !rc && (e = readdir(d));)
        if (!strncmp(e->d_name, "owner-", 6) && !strchr(e->d_name, '.'))
            rc = sgt_owner_lives(sgt_path(path, o->work, "%s", e->d_name), who, err);
    closedir(d);
    return rc;
}

/* Fill in *o, and make all checks that do not need the lock. If the set is complete, return 1
 * without having written anything, because the output folder may be read-only. */
static int approach(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    struct stat st;
    char owner[SGT_PATH];
    int rc = check_folder(r, err);
    *o = (sgt_out){.path = r->path,
                   .width = r->vocab ? sgt_vocab_width(r->vocab) : 0,
                   .who = {.folder = r->path, .notice = r->notice, .stop = r->stop},
                   .made = stat(r->path, &st) < 0};
    o->had_work = has_file(r->path, ".work");
    sgt_path(o->work, r->path, ".work");
    snprintf(o->shards, sizeof o->shards, "%s", r->path);
    if (r->layout) sgt_path(o->shards, o->work, SET);
    if (rc < 0 && o->had_work &&
        (sgt_owner_lives(sgt_path(owner, o->work, "owner"), &o->who, NULL) == 1 ||
         find_sharer(o, &o->who, NULL) == 1))
        return at_work(r, 0, err);
    if (rc < 0) return rc;
    if (!o->had_work && r->corpus && r->force != SGT_OUT_ANEW && (rc = is_complete(r, err)) != 0 &&
        (rc > 0 || !r->force))
        return rc;
    if (!o->made && access(r->path, R_OK | W_OK | X_OK) < 0)
        return sgt_fail_errno(err, "%s: cannot write to OUT", r->path);
    return SGT_OK;
}

/* ---- ranks ---- */

static int wait_a_turn(const sgt_out_request *r, sgt_error *err)
{
    nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    return sgt_stopped(r->stop) ? sgt_fail(err, SGT_ESTOPPED, "stopped") : SGT_OK;
}

/* Decide if this rank can join the ranks that are running, which requires that they make the same
 * set. The result is
 *
 *   0           this rank can join them
 *   1           the set is already complete
 *   NOT_JOINED  this rank's request cannot be compared with theirs, because there is no usable
 *               journal, or with `force`, the requests differ
 *   < 0         an error (SGT_E*) */
static int check_joined(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc = is_complete(r, err);
    if (!rc && (rc = sgt_journal_open(&o->journal, o->work, err)) == 0 &&
        (rc = compare_run(o->journal, r, o->work, err)) == 1)
        return SGT_OK;
    if (rc > 0 || (rc < 0 && !r->force)) return rc;
    sgt_journal_close(o->journal);
    o->journal = NULL;
    return NOT_JOINED;
}

/* Set up the output folder, which this rank has locked. If other ranks are running, join them.
 * Otherwise, resume an earlier run or start over. */
static int set_up(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc = find_sharer(o, NULL, err);
    if (rc == 1) {
        /* do not remove .work later: another rank may have created it after approach() looked for
         * it */
        o->had_work = 1;
        if (r->journal_options && (rc = check_joined(o, r, err)) != NOT_JOINED) return rc;
        rc = find_sharer(o, &o->who, err);
    }
    if (rc) return rc < 0 ? rc : at_work(r, 0, err);
    if (r->force == SGT_OUT_BESIDE) {
        o->had_work = holds_work(o->work);
        return SGT_OK;
    }
    return r->corpus ? resume_or_start(o, r, err) : remove_begun(o, err);
}

int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    const int shared = r->journal_options != NULL;
    char name[32], own[SGT_PATH];
    int rc = approach(o, r, err);
    snprintf(name, sizeof name, "owner-%06" PRIu32, r->rank);
    sgt_path(own, o->work, "%s", name);
    /* Check the owner file to find out if a process is already running as this rank. This may take
     * a minute, so it is done before locking, because other ranks wait for the lock. */
    if (!rc && shared && (rc = sgt_owner_lives(own, &o->who, err)) == 1) rc = at_work(r, 1, err);
    for (int turn = 0; !rc && (rc = lock_work(o, err)) == 1; turn++)
        rc = shared && turn < WAIT_TURNS ? wait_a_turn(r, err) : at_work(r, 0, err);
    if (!rc) rc = set_up(o, r, err);
    if (!rc && shared && (rc = sgt_owner_take(&o->sharer, o->work, name, NULL, &o->who, err)) == 1)
        rc = at_work(r, 1, err);
    if (!rc && shared) sgt_owner_leave(&o->owner);
    if (rc) sgt_out_release(o, rc == 1 || (o->had_work && (!o->owner || holds_work(o->work))));
    return rc;
}

int sgt_out_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err)
{
    int rc;
    sgt_owner_leave(&o->sharer);
    while ((rc = lock_work(o, err)) == 1 || (!rc && (rc = find_sharer(o, &o->who, err)) == 1)) {
        sgt_owner_leave(&o->owner);
        if ((rc = wait_a_turn(r, err)) < 0) return rc;
    }
    if (rc < 0) return rc;
    sgt_journal_close(o->journal);
    o->journal = NULL;
    if ((rc = is_complete(r, err)) == 1) remove_work(o);
    if (!rc && (rc = sgt_journal_open(&o->journal, o->work, err)) == 0)
        rc = r->corpus->stream || may_resume(o->journal, r, o->work, err) == 1
                 ? SGT_OK
                 : sgt_fail(err, SGT_EIO,
                            "%s: another command has taken over OUT (name another OUT)", o->path);
    return rc;
}

int sgt_out_check(const sgt_out *o, sgt_error *err)
{
    const int rc = sgt_owner_check(o->owner, err);
    return rc < 0 ? rc : sgt_owner_check(o->sharer, err);
}

void sgt_out_leave(sgt_out *o)
{
    int untouched = 0;
    if (o->sharer && !has_rank(o->work, "part-") && lock_work(o, NULL) == 0) {
        sgt_owner_leave(&o->sharer);
        untouched = !find_sharer(o, NULL, NULL) && !has_rank(o->work, "part-") &&
                    !has_file(o->path, "manifest.json");
    }
    sgt_out_release(o, !untouched);
}

/* Move a file of a shard from .work to o->shards, unless an earlier call has moved it. The file is
 * renamed without a check if it exists, because some file systems wrongly report that a file is
 * missing; the set would then be completed without it. */
static int move_if_there(const sgt_out *o, const char *name, sgt_error *err)
{
    char temporary[80];
    int gone = 0;
    sgt_writer_temporary_name(temporary, name);
    const int rc = sgt_move(o->work, o->shards, temporary, name, &gone, err);
    return gone ? check_size(o->shards, name, 0, 1, err) : rc;
}

int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err)
{
    char index[64];
    sgt_writer_index_name(index, s->file);
    int rc = sgt_out_check(o, err);
    if (!rc) rc = move_if_there(o, index, err);
    return rc < 0 ? rc : move_if_there(o, s->file, err);
}

int sgt_out_find_shard(const sgt_out *o, int split, uint64_t index, sgt_manifest_shard *s,
                       sgt_error *err)
{
    char bin[SGT_PATH], idx[SGT_PATH], name[64];
    struct stat st;
    sgt_shard_header h;
    *s = (sgt_manifest_shard){0};
    snprintf(s->split, sizeof s->split, "%s", sgt_split_names[split]);
    sgt_writer_name(s->file, s->split, index, "bin");
    sgt_writer_index_name(name, s->file);
    if (lstat(sgt_path(bin, o->shards, "%s", s->file), &st) < 0 ||
        lstat(sgt_path(idx, o->shards, "%s", name), &st) < 0)
        return 0;
    const int fd = sgt_shard_open(&h, bin, 0, err);
    if (fd < 0) return fd;
    close(fd);
    s->tokens = h.tokens;
    s->xxh3 = h.xxh3;
    s->documents = (uint64_t)st.st_size / 8;
    return 1;
}

int sgt_out_list_shards(const sgt_out *o, const uint64_t shards[SGT_SPLITS], sgt_manifest *m,
                        sgt_error *err)
{
    m->shards = calloc(shards[0] + shards[1] + 1, sizeof *m->shards);
    if (!m->shards) return sgt_fail_memory(err, o->path);
    for (int split = 0; split < SGT_SPLITS; split++)
        for (uint64_t i = 0; i < shards[split]; i++) {
            sgt_manifest_shard *s = &m->shards[m->count++];
            const int rc = sgt_out_find_shard(o, split, i, s, err);
            if (rc < 0) return rc;
            if (!rc)
                return sgt_fail(err, SGT_EIO, "%s/%s: no longer exists (--force starts over)",
                                o->shards, s->file);
            m->tokens += s->tokens;
            m->documents += s->documents;
        }
    return SGT_OK;
}

/* ---- completing ---- */

int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err)
{
    /* The files at odd indices are optional: only layouts other than sgt's have
     * tokenizer_config.json, and only the set of a rank's part has documents.sgt. */
    static const char *const names[] = {"tokenizer.json", SGT_TOKENIZER_CONFIG, "sources.jsonl",
                                        SGT_DEDUP_FILE};
    char path[SGT_PATH], *text = NULL;
    size_t n;
    int none;
    int rc = sgt_out_check(o, err);
    if (!rc) rc = sgt_vocab_tokenizer_json(v, &text, &n, err);
    if (!rc) rc = sgt_file_put(sgt_path(path, o->work, "tokenizer.json"), text, n, err);
    free(text);
    if (!rc && m->foreign) rc = sgt_tokenizer_config_write(o->work, v->eot_text, 0, err);
    for (size_t i = 0; i < COUNT(names) && !rc; i++)
        rc = sgt_move(o->work, o->path, names[i], names[i], i % 2 ? &none : NULL, err);
    if (!rc) rc = sgt_manifest_write(m, o->work, err);
    /* Flush all other files before manifest.json is moved, because a folder with a manifest counts
     * as complete. */
    if (!rc) rc = sgt_sync_folder(o->path, err);
    if (!rc) rc = sgt_move(o->work, o->path, "manifest.json", "manifest.json", NULL, err);
    if (!rc) rc = sgt_sync_folder(o->path, err);
    if (!rc) remove_work(o);
    return rc;
}

void sgt_out_release(sgt_out *o, int keep)
{
    if (!keep && !sgt_out_check(o, NULL)) {
        if (o->owner) remove_work(o);
        else rmdir(o->work); /* .work was created but never locked */
        if (o->made) rmdir(o->path);
    }
    sgt_journal_close(o->journal);
    o->journal = NULL;
    sgt_owner_leave(&o->sharer);
    sgt_owner_leave(&o->owner);
}
