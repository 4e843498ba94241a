/* paths.c: starts the child processes of the self-check, and reads their messages. Each message is
 * a struct shorter than PIPE_BUF, so that the pipe does not split it. All other output of a child
 * goes to a file in memory; if the child dies, the last line of this file is part of the reported
 * reason. Verdicts are stored in the cache folder. */
#include "train/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "loader/base/owner.h"
#include "loader/base/thread.h"
#include "train/cache.h"
#include "train/device.h"
#include "loader/base/json.h"

/* time limit in seconds for a child process to load the libraries and open the device */
#define START_SECONDS 120
/* how many seconds to wait for a child process to exit, before and after killing it */
#define DYING_SECONDS 5

/* ---- the child process ---- */

/* Send a message to the parent process. If the parent has exited, exit too. */
static void send_message(int seconds, const char *verdict, const char *why)
{
    sgt_check_message m = {.seconds = seconds};
    snprintf(m.verdict, sizeof m.verdict, "%s", verdict);
    sgt_printable(m.why, sizeof m.why, why);
    if (write(SGT_CHECK_PIPE, &m, sizeof m) < 0) _exit(1);
}

static const char *word_of(int rc)
{
    return rc == SGT_OK             ? "ok"
           : rc == SGT_EUNSUPPORTED ? "absent"
           : rc == SGT_EFORMAT      ? "wrong"
                                    : "failed";
}

/* Tell the parent process that, because of *err, this process cannot try any path. Return the exit
 * code for main. */
static int stop(const sgt_error *err)
{
    send_message(-1, "", err->text);
    return 1;
}

/* Try path number i and send the verdict to the parent. Return 0 if this process can try further
 * paths. If it cannot, return 1 plus the exit code for main. */
static int try_path(const sgt_cuda_checks *c, size_t i, int device)
{
    sgt_error err = {0};
    send_message(c->seconds(i), "", "");
    int rc = c->run(i, device, &err);
    if (rc == SGT_ENOMEM) return 1 + stop(&err);
    send_message(0, word_of(rc), rc == SGT_OK ? "" : err.text);
    return rc != SGT_OK && rc != SGT_EUNSUPPORTED;
}

int sgt_paths_child(const char *what)
{
    sgt_error err;
    char *end;
    const sgt_cuda_library *lib;
    sgt_cuda_device d;
    /* let the kernel kill this process when the parent exits, because no other process reads the
     * messages */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    size_t first = strtoul(what, &end, 10);
    int device = *end == ':' ? (int)strtoul(end + 1, &end, 10) : -1;
    if (device < 0 || *end) return 2;
    /* libraries may print to standard output, which would corrupt the messages: duplicate the pipe
     * to descriptor SGT_CHECK_PIPE, and let standard output go where standard error goes */
    if (dup2(STDOUT_FILENO, SGT_CHECK_PIPE) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
    if (sgt_device_cuda(&lib, &d, &err) < 0) return stop(&err);
    int ended = 0;
    for (size_t i = first; i < lib->checks->count() && !ended; i++)
        ended = try_path(lib->checks, i, device);
    return ended ? ended - 1 : 0;
}

/* ---- the parent process ---- */

typedef struct listener {
    const sgt_paths_options *o;
    sgt_verdicts *v;
    /* index of the path that the child is trying or, if it is not trying any, of the next path */
    size_t next;
    int trying;   /* 1: path `next` has begun */
    int noise;    /* descriptor of the memory file for the child's output */
    double until; /* deadline for the child's next message, as a time of sgt_now */
} listener;

static void verdict(listener *l, const char *word, const char *why)
{
    sgt_checked *c = &l->v->of[l->next++];
    snprintf(c->verdict, sizeof c->verdict, "%s", word);
    snprintf(c->why, sizeof c->why, "%s", why);
    l->trying = 0;
}

enum { CLOSED, MESSAGE, LATE };

/* Wait for a message from the child and store it in *m. Return MESSAGE if a message was read,
 * CLOSED if the child has closed the pipe (for example by exiting), LATE if the deadline l->until
 * has passed, or SGT_ESTOPPED if a stop was requested. */
static int receive(const listener *l, int fd, sgt_check_message *m)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (sgt_stopped(l->o->stop)) return SGT_ESTOPPED;
        if (sgt_now() > l->until) return LATE;
        if (poll(&p, 1, 50) <= 0) continue; /* a signal, or nothing to read */
        ssize_t n = read(fd, m, sizeof *m);
        if (n == sizeof *m) return MESSAGE;
        if (n >= 0 || errno != EINTR) return CLOSED;
    }
}

/* Read messages until the child closes the pipe or misses its deadline, and store the verdicts.
 * Return CLOSED or LATE (see `receive`), or a negative SGT_E* if a stop was requested or the child
 * cannot try any path. */
static int listen_to(listener *l, int fd, sgt_error *err)
{
    sgt_check_message m;
    int got;
    while ((got = receive(l, fd, &m)) == MESSAGE) {
        if (m.seconds < 0) return sgt_fail(err, SGT_EUNSUPPORTED, "self-check: %s", m.why);
        if (m.seconds == 0 && l->trying) verdict(l, m.verdict, m.why);
        l->trying = m.seconds > 0;
        l->until = sgt_now() + (l->trying ? m.seconds : START_SECONDS);
    }
    return got == SGT_ESTOPPED ? sgt_fail(err, got, "interrupted") : got;
}

/* Wait until the child exits, and return its exit status. If kill_it is 1, or if the child has not
 * exited after DYING_SECONDS, kill it and wait again. A child that hangs in the driver may not exit
 * even then; in that case stop waiting and return 0. */
static int reap(pid_t pid, int kill_it)
{
    int status = 0;
    for (int i = kill_it; i < 2; i++) {
        double until = sgt_now() + DYING_SECONDS;
        if (i) kill(pid, SIGKILL);
        while (sgt_now() < until) {
            if (waitpid(pid, &status, WNOHANG) == pid) return status;
            poll(NULL, 0, 10);
        }
    }
    return status;
}

/* Start a child process. It gets its own process group, so that Ctrl-C interrupts only the parent,
 * which then kills the child. */
static int start(pid_t *pid, int *fd, const listener *l, sgt_error *err)
{
    char what[48], *argv[] = {"sgt-train", SGT_PATHS_CHILD, what, NULL};
    int pipe_fds[2];
    snprintf(what, sizeof what, "%zu:%d", l->next, l->o->device);
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return sgt_fail_errno(err, "self-check: cannot make a pipe");
    /* discard the output of the previous child */
    if (ftruncate(l->noise, 0) == 0) lseek(l->noise, 0, SEEK_SET);
    int code = sgt_process_start(pid, &(sgt_process){.program = l->o->program,
                                                     .argv = argv,
                                                     .out = pipe_fds[1],
                                                     .errors = l->noise,
                                                     .group = 1});
    close(pipe_fds[1]);
    *fd = pipe_fds[0];
    if (!code) return SGT_OK;
    close(pipe_fds[0]);
    errno = code;
    return sgt_fail_errno(err, "self-check: %s", l->o->program);
}

/* Copy the last line of the child's output to `line`, replacing unprintable characters. */
static void read_noise(const listener *l, char line[200])
{
    char text[200] = "", *end;
    off_t size = lseek(l->noise, 0, SEEK_END), n = sizeof text - 1;
    if (size < n) n = size;
    if (pread(l->noise, text, (size_t)n, size - n) != n) text[0] = '\0';
    while ((end = strrchr(text, '\n')) && !end[1]) *end = '\0';
    sgt_printable(line, 200, end ? end + 1 : text);
}

/* Handle a child that exited early. Record the verdict "crashed" for the path that it was trying.
 * If it had not begun to try a path, or if it was killed by one of the signals in `outsiders`,
 * which come from other processes, return an error instead. */
static int ended(listener *l, int status, sgt_error *err)
{
    static const char outsiders[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, 0};
    char how[64], why[SGT_CHECKED_WHY], noise[200];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d, %s", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(status));
    read_noise(l, noise);
    snprintf(why, sizeof why, "%s%s%.160s", how, *noise ? ": " : "", noise);
    int outside = WIFSIGNALED(status) && strchr(outsiders, WTERMSIG(status));
    if (!l->trying || outside)
        return sgt_fail(err, SGT_EUNSUPPORTED, "self-check: its process ended early (%s)", why);
    verdict(l, "crashed", why);
    return SGT_OK;
}

/* Start a child process, store the verdicts that it sends, and return after it has exited or been
 * killed. */
static int one_process(listener *l, sgt_error *err)
{
    pid_t pid;
    int fd = -1, rc = start(&pid, &fd, l, err);
    size_t first = l->next;
    if (rc < 0) return rc;
    l->until = sgt_now() + START_SECONDS;
    rc = listen_to(l, fd, err);
    int status = reap(pid, rc != CLOSED);
    close(fd);
    if (rc < 0) return rc;
    if (rc == CLOSED) return l->trying || l->next == first ? ended(l, status, err) : SGT_OK;
    if (!l->trying)
        return sgt_fail(err, SGT_EUNSUPPORTED, "self-check: its process did not start within %d s",
                        START_SECONDS);
    verdict(l, "hung", "it did not end within its time limit");
    return SGT_OK;
}

static int try_all(sgt_verdicts *v, const sgt_paths_options *o, sgt_error *err)
{
    listener l = {.o = o, .v = v, .noise = memfd_create("self-check", MFD_CLOEXEC)};
    if (l.noise < 0) return sgt_fail_errno(err, "self-check: a file in memory");
    int rc = SGT_OK;
    while (rc == SGT_OK && l.next < v->count) rc = one_process(&l, err);
    close(l.noise);
    return rc;
}

/* ---- stored verdicts ---- */

/* File in the cache folder that stores verdicts of self-checks, as a JSON object {KEY: {path:
 * [verdict, reason], ...}, ...}. Each KEY is a text of sgt_cuda_checks.identity, which identifies a
 * machine and a build. */
#define CHECKED "self-check.json"

/* Wait until no other process owns the cache folder, then become its owner and set *owner. Return 0
 * on success, SGT_ESTOPPED if a stop was requested, or another negative SGT_E*. */
static int own_folder(sgt_owner **owner, const sgt_paths_options *o, sgt_error *err)
{
    sgt_claimant who = {.folder = o->cache, .notice = &o->notice, .stop = o->stop};
    int rc = sgt_make_folders(o->cache, err);
    if (rc < 0) return rc;
    while ((rc = sgt_owner_take(owner, o->cache, "self-check.owner", "self-check.lock", &who,
                                err)) == 1) {
        if (sgt_stopped(o->stop)) return SGT_ESTOPPED;
        poll(NULL, 0, 50);
    }
    return rc;
}

static int is_verdict(const char *word)
{
    static const char *const words[] = {"ok", "absent", "wrong", "failed", "crashed", "hung"};
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0) return 1;
    return 0;
}

/* Read the stored verdicts for the machine and build `key` into *v, in which the caller has filled
 * in the names of the paths. Return 1 if the file has a valid verdict for each path. Return 0 if a
 * verdict is missing or damaged, or if the file cannot be read. */
static int read_verdicts(sgt_verdicts *v, const char *folder, const char *key)
{
    json_t *json = sgt_cache_read(folder, CHECKED);
    const json_t *kept = json_object_get(json, key);
    int found = 1;
    for (size_t i = 0; i < v->count && found; i++) {
        const json_t *pair = json_object_get(kept, v->of[i].path);
        const char *word = json_string_value(json_array_get(pair, 0));
        const char *why = json_string_value(json_array_get(pair, 1));
        found = is_verdict(word) && why;
        if (!found) break;
        snprintf(v->of[i].verdict, sizeof v->of[i].verdict, "%s", word);
        snprintf(v->of[i].why, sizeof v->of[i].why, "%s", why);
    }
    json_decref(json);
    return found;
}

static json_t *verdicts_json(const sgt_verdicts *v)
{
    json_t *json = json_object();
    for (size_t i = 0; i < v->count && json; i++)
        if (json_object_set_new(json, v->of[i].path,
                                json_pack("[s, s]", v->of[i].verdict, v->of[i].why)) < 0)
            json_decref(json), json = NULL;
    return json;
}

/* ---- the check ---- */

int sgt_paths_check(sgt_verdicts *v, const sgt_cuda_library *lib, const sgt_paths_options *o,
                    sgt_error *err)
{
    char key[600];
    sgt_error why;
    sgt_owner *owner = NULL;
    int rc = SGT_OK;
    *v = (sgt_verdicts){0};
    if (!lib->checks) return SGT_OK;
    v->count = lib->checks->count();
    for (size_t i = 0; i < v->count; i++)
        snprintf(v->of[i].path, sizeof v->of[i].path, "%s", lib->checks->name(i));
    if ((rc = lib->checks->identity(key, sizeof key, o->device, err)) < 0) return rc;
    int kept = o->cache ? own_folder(&owner, o, &why) : SGT_OK;
    if (kept == SGT_ESTOPPED) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
    if (o->fresh || !owner || !read_verdicts(v, o->cache, key)) {
        rc = try_all(v, o, err);
        if (rc == SGT_OK && owner)
            kept = sgt_cache_write(o->cache, CHECKED, key, verdicts_json(v), &why);
    }
    sgt_owner_leave(&owner);
    if (kept < 0 && rc == SGT_OK)
        sgt_say(&o->warning, "self-check: its results cannot be kept for the next run: %s",
                why.text);
    if (rc < 0) v->count = 0;
    return rc;
}
