/* run.c: the run directory. The process may be killed at any time without damage, because files are
 * written in this order: first the log lines of a checkpoint's steps, then the complete checkpoint,
 * and then the file `latest`, which names the checkpoint. */
#include "train/run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/base/version.h"

#define STEP_NAME "step-%08" PRIu64
/* size in bytes of the buffer for one line of log.jsonl; a line with its newline must be shorter
 * than this */
#define LINE 1024
/* maximum size of starts.jsonl in bytes; an entry has a few hundred bytes */
#define MOST_STARTS ((size_t)1 << 20)
/* prefix of temporary folders, which contain checkpoints that are being written or removed */
#define WORK_PREFIX ".step-"

struct sgt_run {
    char path[SGT_PATH];
    sgt_owner *owner;
    int log;
    /* errno of the latest write to the log if it failed, otherwise 0. After a failure, log lines
     * are collected in `waiting`. Access `log_error` atomically, because the thread that saves a
     * checkpoint also reads it. */
    int log_error;
    /* step of the checkpoint with the lowest validation loss; 0 if no checkpoint has a validation
     * loss */
    uint64_t best;
    double best_loss;
    char last[LINE]; /* last line of the log */
    /* log lines that have not been written to the file yet: one string of `waits` bytes in total */
    char *waiting;
    size_t waits, room;
};

/* ---- listing checkpoints ---- */

static int is_step(const char *name, uint64_t *step)
{
    if (strncmp(name, "step-", 5) != 0 || strlen(name) != 13 || strspn(name + 5, "0123456789") != 8)
        return 0;
    *step = strtoull(name + 5, NULL, 10);
    return 1;
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

int sgt_run_steps(uint64_t **steps, size_t *count, const char *run, sgt_error *err)
{
    size_t room = 0;
    DIR *d = opendir(run);
    *steps = NULL;
    *count = 0;
    if (!d) return errno == ENOENT ? SGT_OK : sgt_fail_errno(err, "%s", run);
    int rc = SGT_OK;
    for (const struct dirent *e; rc == SGT_OK && (errno = 0, e = readdir(d));) {
        uint64_t step;
        if (!is_step(e->d_name, &step)) continue;
        rc = sgt_reserve(steps, &room, *count + 1, sizeof **steps, run, err);
        if (rc == SGT_OK) (*steps)[(*count)++] = step;
    }
    /* report this error: if it were ignored, the run would seem to have no checkpoints, and
     * training would start at step 0 */
    if (rc == SGT_OK && errno) rc = sgt_fail_errno(err, "%s", run);
    closedir(d);
    if (rc < 0) {
        free(*steps);
        *steps = NULL;
        *count = 0;
    }
    if (*count) qsort(*steps, *count, sizeof **steps, descending);
    return rc;
}

static char *step_path(char to[SGT_PATH], const char *run, uint64_t step)
{
    return sgt_path(to, run, STEP_NAME, step);
}

int sgt_run_named(char to[SGT_PATH], const char *path, sgt_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *text = NULL;
    size_t n;
    uint64_t step;
    struct stat st;
    if ((strcmp(name, "latest") && strcmp(name, "best")) ||
        (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
        return 0;
    if (*name == 'b' && sgt_file_gone(path))
        return sgt_fail(err, SGT_EIO,
                        "%s: no such file (a run has one after its first checkpoint with a "
                        "validation loss: see --eval-every)",
                        path);
    int rc = sgt_file_get(&text, &n, path, 1024, err);
    if (rc < 0) return rc;
    text[strcspn(text, "\n")] = '\0';
    snprintf(to, SGT_PATH, "%.*s%s", (int)(name - path), path, text);
    if (!is_step(text, &step) || access(to, F_OK) < 0)
        rc = sgt_fail(err, SGT_EFORMAT, "%s names '%s', but there is no such checkpoint", path,
                      text);
    free(text);
    return rc < 0 ? rc : 1;
}

/* rc: the error returned by a check of the checkpoint `dir`. Return 1 if the error means that the
 * checkpoint is incomplete, because a file is missing or damaged. Otherwise return 0, for example
 * for a disk error or if memory ran out. */
static int is_incomplete(const char *dir, int rc)
{
    static const char *const files[] = {"config.json", "model.safetensors", "optimizer.safetensors",
                                        "state.json"};
    int missing = 0;
    for (size_t i = 0; rc == SGT_EIO && i < sizeof files / sizeof *files; i++) {
        char path[SGT_PATH];
        missing |= sgt_file_gone(sgt_path(path, dir, "%s", files[i]));
    }
    return rc == SGT_EFORMAT || missing;
}

int sgt_run_newest(char **dir, const char *run, int sums, const sgt_notice *notice, sgt_error *err)
{
    uint64_t *steps;
    size_t count;
    sgt_error why;
    char path[SGT_PATH], to[SGT_PATH];
    int rc = sgt_run_steps(&steps, &count, run, err);
    *dir = NULL;
    if (rc == SGT_OK && sgt_run_named(to, sgt_path(path, run, "latest"), &why) == SGT_EFORMAT)
        sgt_say(notice, "%s", why.text);
    for (size_t i = 0; i < count && rc == SGT_OK && !*dir; i++) {
        int bad = sgt_checkpoint_check(step_path(path, run, steps[i]), steps[i], sums, &why);
        if (bad == SGT_OK) {
            if (!(*dir = strdup(path))) rc = sgt_fail_memory(err, run);
        } else if (is_incomplete(path, bad))
            sgt_say(notice, "skipped an incomplete checkpoint: %s", why.text);
        else rc = sgt_fail(err, bad, "%s", why.text);
    }
    free(steps);
    return rc;
}

int sgt_run_find(char **dir, const char *path, const sgt_notice *notice, sgt_error *err)
{
    char named[SGT_PATH];
    struct stat st;
    int rc = sgt_run_named(named, path, err);
    *dir = NULL;
    if (rc == 0 && stat(path, &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (rc == 0 && S_ISDIR(st.st_mode) && sgt_file_gone(sgt_path(named, path, "config.json"))) {
        rc = sgt_run_newest(dir, path, 0, notice, err);
        if (rc == SGT_OK && !*dir)
            rc = sgt_fail(
                err, SGT_EFORMAT,
                "%s: neither a checkpoint (it has no config.json) nor a run that holds one", path);
    } else if (rc >= 0 && !(*dir = strdup(rc ? named : path))) rc = sgt_fail_memory(err, path);
    return rc < 0 ? rc : SGT_OK;
}

/* ---- removing ---- */

/* Remove a checkpoint: rename its folder to a temporary name, then delete the folder. Even if the
 * process is killed in between, a folder with the name of a checkpoint is therefore always
 * complete. */
static int remove_step(const sgt_run *r, uint64_t step, sgt_error *err)
{
    char from[SGT_PATH], to[SGT_PATH];
    int rc = sgt_remove_tree(sgt_path(to, r->path, WORK_PREFIX "%08" PRIu64 ".old.tmp", step), err);
    if (rc == SGT_OK && rename(step_path(from, r->path, step), to) < 0)
        rc = sgt_fail_errno(err, "%s", from);
    return rc < 0 ? rc : sgt_remove_tree(to, err);
}

int sgt_run_rotate(const sgt_run *r, uint64_t last, uint64_t keep, sgt_error *err)
{
    uint64_t *steps, kept = 0;
    size_t count;
    int rc = sgt_run_steps(&steps, &count, r->path, err);
    for (size_t i = 0; i < count && rc == SGT_OK; i++)
        if (steps[i] > last || (keep && ++kept > keep && steps[i] != r->best))
            rc = remove_step(r, steps[i], err);
    free(steps);
    return rc;
}

/* Return 1 if `name` is the name of a temporary file or folder that an interrupted process has left
 * behind; otherwise return 0. */
static int is_leftover(const char *name)
{
    static const char *const begins[] = {WORK_PREFIX,     "latest.",       "best.",
                                         "log.jsonl.",    "memory.jsonl.", "options.json.",
                                         "starts.jsonl.", "owner."};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0 && n > 4 &&
            strcmp(name + n - 4, ".tmp") == 0)
            return 1;
    return 0;
}

static int remove_leftovers(const sgt_run *r, sgt_error *err)
{
    int rc = SGT_OK;
    DIR *d = opendir(r->path);
    if (!d) return sgt_fail_errno(err, "%s", r->path);
    for (struct dirent *e; rc == SGT_OK && (e = readdir(d));) {
        char path[SGT_PATH];
        if (is_leftover(e->d_name))
            rc = sgt_remove_tree(sgt_path(path, r->path, "%s", e->d_name), err);
    }
    closedir(d);
    return rc;
}

static int remove_name(const sgt_run *r, const char *name, sgt_error *err)
{
    char path[SGT_PATH];
    const int removed = unlink(sgt_path(path, r->path, "%s", name)) == 0 || errno == ENOENT;
    return removed ? SGT_OK : sgt_fail_errno(err, "%s", path);
}

/* ---- the log ---- */

/* Return the step number, the member "step", of a log line with n bytes. Return -1 if the line is
 * damaged or incomplete. */
static json_int_t line_step(const char *line, size_t n)
{
    if (n == LINE || line[n - 1] != '\n') return -1;
    json_t *json = json_loadb(line, n, 0, NULL);
    const json_t *step = json_object_get(json, "step");
    json_int_t s = json_is_integer(step) ? json_integer_value(step) : -1;
    json_decref(json);
    return s;
}

/* Copy the complete log lines of steps before `step` from `in` to `out`. Skip every line whose step
 * is not above the step of the last copied line, because it repeats an earlier step. Set *cut to 1
 * if any line is skipped. */
static int copy_lines(sgt_run *r, FILE *in, FILE *out, uint64_t step, uint64_t *kept, int *cut,
                      sgt_error *err)
{
    char line[LINE];
    size_t n;
    json_int_t last = -1;
    while ((n = sgt_file_line(line, LINE, in)) > 0) {
        json_int_t s = line_step(line, n);
        if (s <= last || s >= (json_int_t)step) {
            *cut = 1;
            continue;
        }
        /* no check needed: if fwrite fails, the stream's error flag is set, which sgt_file_commit
         * checks */
        fwrite(line, 1, n, out);
        last = s;
        (*kept)++;
        snprintf(r->last, LINE, "%.*s", (int)n - 1, line);
    }
    return ferror(in) ? sgt_fail_errno(err, "%s/log.jsonl", r->path) : SGT_OK;
}

static int cut_log(sgt_run *r, const char *path, uint64_t step, const sgt_notice *notice,
                   sgt_error *err)
{
    int cut = 0;
    uint64_t kept = 0;
    sgt_file out = {0};
    FILE *in = NULL;
    int rc = sgt_file_gone(path) ? SGT_OK : sgt_file_lines(&in, path, err);
    if (in) rc = sgt_file_begin(&out, path, err);
    if (in && rc == SGT_OK) rc = copy_lines(r, in, out.stream, step, &kept, &cut, err);
    if (in) fclose(in);
    if (rc == SGT_OK && cut) rc = sgt_file_commit(&out, err);
    sgt_file_abandon(&out);
    if (rc == SGT_OK && kept < step)
        sgt_say(notice,
                "%s: the lines of %" PRIu64 " of the %" PRIu64
                " steps before the checkpoint are missing or damaged; the others are kept",
                path, step - kept, step);
    return rc;
}

static int open_log(sgt_run *r, uint64_t step, const sgt_notice *notice, sgt_error *err)
{
    char path[SGT_PATH];
    int rc = cut_log(r, sgt_path(path, r->path, "log.jsonl"), step, notice, err);
    /* allocate the memory for waiting lines now, because no memory may be allocated while steps
     * run */
    if (rc == SGT_OK) rc = sgt_reserve(&r->waiting, &r->room, LINE, 1, path, err);
    if (rc < 0) return rc;
    r->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (r->log < 0 && errno == ELOOP)
        return sgt_fail(err, SGT_EIO,
                        "%s: is a symbolic link, which sgt does not write through (remove it)",
                        path);
    return r->log < 0 ? sgt_fail_errno(err, "%s", path) : SGT_OK;
}

int sgt_run_log(sgt_run *r, const char *line, sgt_error *err)
{
    size_t n = strlen(line);
    if (n >= LINE)
        return sgt_fail(err, SGT_EUSAGE, "%s/log.jsonl: a line of %zu bytes is too long", r->path,
                        n);
    int rc = sgt_owner_check(r->owner, err), error = 0;
    if (rc == SGT_OK) rc = sgt_reserve(&r->waiting, &r->room, r->waits + n + 1, 1, r->path, err);
    if (rc < 0) return rc;
    memcpy(r->last, line, n + 1);
    memcpy(r->waiting + r->waits, line, n);
    r->waiting[r->waits + n] = '\n';
    r->waits += n + 1;
    while (r->waits && !error) {
        ssize_t done = write(r->log, r->waiting, r->waits);
        if (done < 0 && errno != EINTR) error = errno;
        if (done <= 0) continue;
        r->waits -= (size_t)done;
        memmove(r->waiting, r->waiting + done, r->waits);
    }
    __atomic_store_n(&r->log_error, error, __ATOMIC_RELAXED);
    return SGT_OK;
}

char *sgt_run_last_line(const sgt_run *r) { return *r->last ? strdup(r->last) : NULL; }

/* ---- open, save, close ---- */

int sgt_run_put(const sgt_run *r, const char *name, const char *text, sgt_error *err)
{
    char path[SGT_PATH];
    const int rc = sgt_owner_check(r->owner, err);
    if (rc < 0) return rc;
    return sgt_file_put(sgt_path(path, r->path, "%s", name), text, strlen(text), err);
}

/* Write the name of the checkpoint of step `step` to the file `name`, which is "latest" or "best".
 * If `step` is 0, remove this file. */
static int point(const sgt_run *r, const char *name, uint64_t step, sgt_error *err)
{
    char text[32];
    snprintf(text, sizeof text, STEP_NAME "\n", step);
    return step ? sgt_run_put(r, name, text, err) : remove_name(r, name, err);
}

/* Set r->best to `step` if the validation loss `loss` of its checkpoint is lower than r->best_loss.
 * If the losses are equal, the earlier step is the best. */
static void compare_best(sgt_run *r, uint64_t step, double loss)
{
    if (!(loss > 0) ||
        (r->best && (loss > r->best_loss || (loss == r->best_loss && step > r->best))))
        return;
    r->best = step;
    r->best_loss = loss;
}

int sgt_run_owned(const char *run, int rc, sgt_error *err)
{
    char path[SGT_PATH];
    if (rc < 0 && sgt_owner_lives(sgt_path(path, run, "owner"), NULL, NULL) != 1) return rc;
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "%s: another sgt-train is writing to this run (wait for it, or use another --run)", run);
}

/* Set r->best to the best checkpoint of a step <= `step`. If `force` is not set, return an error if
 * there is a complete checkpoint of a later step. When the caller chose `step`, this later
 * checkpoint did not exist. Another process must have saved it since, so it must not be removed. */
static int look_at_steps(sgt_run *r, uint64_t step, int force, sgt_error *err)
{
    uint64_t *steps;
    size_t count;
    int rc = sgt_run_steps(&steps, &count, r->path, err);
    for (size_t i = 0; i < count && rc == SGT_OK; i++) {
        sgt_checkpoint_state state = {0};
        char path[SGT_PATH];
        step_path(path, r->path, steps[i]);
        if (steps[i] <= step && sgt_checkpoint_read(&state, path, NULL) == SGT_OK)
            compare_best(r, steps[i], state.val_loss);
        if (steps[i] > step && !force && sgt_checkpoint_check(path, steps[i], 1, NULL) == SGT_OK)
            rc = sgt_fail(err, SGT_EUNSUPPORTED,
                          "%s: another sgt-train has just saved " STEP_NAME
                          " (run the same command again)",
                          r->path, steps[i]);
        sgt_checkpoint_state_free(&state);
    }
    free(steps);
    return rc;
}

int sgt_run_open(sgt_run **out, uint64_t step, int force, sgt_claimant *who,
                 const sgt_notice *warning, sgt_error *err)
{
    sgt_run *r = calloc(1, sizeof *r);
    if (!r) return sgt_fail_memory(err, who->folder);
    r->log = -1;
    snprintf(r->path, sizeof r->path, "%s", who->folder);
    int rc = sgt_make_folders(r->path, err);
    if (rc == SGT_OK) rc = sgt_owner_take(&r->owner, r->path, "owner", ".", who, err);
    if (rc == 1) rc = sgt_run_owned(r->path, rc, err);
    if (rc == SGT_OK) rc = look_at_steps(r, step, force, err);
    if (rc == SGT_OK) rc = remove_leftovers(r, err);
    /* Write `latest` and `best` before removing checkpoints. If an earlier save was killed, these
     * files may be out of date, and may name a checkpoint that is removed below. */
    if (rc == SGT_OK) rc = point(r, "latest", step, err);
    if (rc == SGT_OK) rc = point(r, "best", r->best, err);
    if (rc == SGT_OK && !step) rc = remove_name(r, "memory.jsonl", err);
    /* Remove the checkpoints of steps after `step`. They are incomplete, or the user has passed
     * --force to start again. */
    if (rc == SGT_OK) rc = sgt_run_rotate(r, step, 0, err);
    if (rc == SGT_OK) rc = open_log(r, step, warning, err);
    if (rc < 0) sgt_run_close(r);
    else *out = r;
    return rc;
}

void sgt_run_close(sgt_run *r)
{
    if (!r) return;
    if (r->log >= 0) close(r->log);
    sgt_owner_leave(&r->owner);
    free(r->waiting);
    free(r);
}

char *sgt_run_checkpoint(const sgt_run *r, uint64_t step)
{
    char path[SGT_PATH];
    return strdup(step_path(path, r->path, step));
}

/* Return a JSON object for starts.jsonl as text allocated with malloc, or NULL if out of memory.
 * Invalid UTF-8 in host or command is escaped. */
static char *start_json(uint64_t step, const char *machine, const char *command)
{
    char time_text[32] = "", host[65] = "", printable[4 * 4096];
    time_t now = time(NULL);
    struct tm t;
    if (gmtime_r(&now, &t)) strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", &t);
    gethostname(host, sizeof host - 1);
    json_t *json = json_pack("{s:s, s:s*, s:s*, s:s, s:I}", "time", time_text, "host",
                             sgt_printable(printable, sizeof printable, host), "machine", machine,
                             "version", SGT_VERSION, "step", (json_int_t)step);
    if (json && command && json_object_set_new(json, "command", json_string(command)) < 0)
        json_object_set_new(json, "command",
                            json_string(sgt_printable(printable, sizeof printable, command)));
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

int sgt_run_start(sgt_run *r, uint64_t step, const char *machine, const char *command,
                  sgt_error *err)
{
    char *before = NULL, *text = NULL, path[SGT_PATH];
    char *line = start_json(step, machine, command);
    size_t n = 0;
    sgt_path(path, r->path, "starts.jsonl");
    /* ignore errors, because older versions did not write this file */
    if (step) (void)sgt_file_get(&before, &n, path, MOST_STARTS, NULL);
    if (!line || asprintf(&text, "%.*s%s\n", (int)n, before ? before : "", line) < 0) text = NULL;
    int rc = text ? sgt_run_put(r, "starts.jsonl", text, err) : sgt_fail_memory(err, path);
    free(text);
    free(line);
    free(before);
    return rc;
}

int sgt_run_save(sgt_run *r, const sgt_checkpoint_state *state, sgt_backend *b, const sgt_model *m,
                 const char *tokenizer, int64_t eot, uint64_t keep, sgt_error *err)
{
    int rc;
    char work[SGT_PATH], path[SGT_PATH];
    sgt_path(work, r->path, WORK_PREFIX "%08" PRIu64 ".tmp", state->step);
    step_path(path, r->path, state->step);
    errno = __atomic_load_n(&r->log_error, __ATOMIC_RELAXED);
    rc = errno || fsync(r->log) < 0 ? sgt_fail_errno(err, "%s/log.jsonl", r->path)
                                    : sgt_owner_check(r->owner, err);
    if (rc == SGT_OK) rc = sgt_remove_tree(work, err);
    if (rc == SGT_OK) rc = sgt_make_folders(work, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_write(work, state, b, m, tokenizer, eot, err);
    if (rc == SGT_OK) rc = sgt_sync_folder(work, err);
    if (rc == SGT_OK) rc = sgt_owner_check(r->owner, err);
    /* The folder `path` may exist: it is an incomplete checkpoint, whose steps the run has
     * repeated. Remove it, so that the new checkpoint can replace it. */
    if (rc == SGT_OK && access(path, F_OK) == 0) rc = remove_step(r, state->step, err);
    if (rc == SGT_OK && rename(work, path) < 0) rc = sgt_fail_errno(err, "%s", path);
    if (rc == SGT_OK) rc = sgt_sync_folder(r->path, err);
    if (rc == SGT_OK) rc = point(r, "latest", state->step, err);
    if (rc == SGT_OK) compare_best(r, state->step, state->val_loss);
    if (rc == SGT_OK && r->best == state->step) rc = point(r, "best", r->best, err);
    if (rc == SGT_OK) rc = sgt_run_rotate(r, UINT64_MAX, keep, err);
    /* If another process now owns the run, do not remove the folder `work`. The new owner removes
     * leftover folders, and may be writing a folder with the same name now. */
    if (rc < 0 && sgt_owner_check(r->owner, err) < 0) rc = SGT_EUNSUPPORTED;
    else if (rc < 0) sgt_remove_tree(work, NULL);
    return rc;
}
