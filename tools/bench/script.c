/* script.c: runs an interpreter that reads a script from memory, or another program, and reads its
 * output. */
#include "tools/bench/script.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/process.h"

extern char **environ;

typedef struct bench_child {
    const bench_script *s;
    pid_t id;           /* 0: it is not running */
    int asks;           /* 1: it answers requests, which are written to `in` */
    int in, out;        /* our ends of its standard input and output */
    int script, errors; /* descriptors of the files with the script and with its standard error */
    size_t kept;        /* bytes of output read beyond the line that was returned */
    char *said;         /* those bytes */
} child;

int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err)
{
    int fd = memfd_create(name, 0);
    if (fd < 0) return sgt_fail_errno(err, "%s", name);
    int rc = sgt_write_all(fd, text, n, name, err);
    if (rc < 0) close(fd);
    return rc < 0 ? rc : fd;
}

/* Return the child's environment: the settings, then our own. If a name is there twice, the first
 * counts. */
static char **environment(const char *const *settings)
{
    size_t n = 0, more = 0, at = 0;
    while (environ[n]) n++;
    while (settings && settings[more]) more++;
    char **all = calloc(n + more + 1, sizeof *all);
    for (size_t i = 0; all && i < more; i++) all[at++] = (char *)(uintptr_t)settings[i];
    for (size_t i = 0; all && i < n; i++) all[at++] = environ[i];
    return all;
}

/* Return the prefix of messages: the option that named the interpreter, or nothing for a
 * program. */
static const char *said_by(const bench_script *s) { return s->text ? "--peer " : ""; }

/* Limit this thread to `threads` of its cores, and store its cores in *before. A child inherits the
 * cores of the thread that starts it. */
static void narrow(cpu_set_t *before, int threads)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof *before, before) < 0) return;
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&set) < threads; c++)
        if (CPU_ISSET(c, before)) CPU_SET(c, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static int spawn(child *c, const bench_script *s, char *const *argv, char **env, int in, int out,
                 sgt_error *err)
{
    const sgt_process process = {.program = s->python,
                                 .argv = argv,
                                 .env = env,
                                 .in = in >= 0 ? in : 0,
                                 .out = out,
                                 .errors = c->errors,
                                 .keeps = 1}; /* the descriptor of its script stays open */
    int failed = sgt_process_start(&c->id, &process);
    if (!failed) return SGT_OK;
    errno = failed;
    return sgt_fail_errno(err, "%s%s", said_by(s), s->python);
}

/* Return the child's arguments: the interpreter, the script's path and the script's own arguments.
 * The caller frees the array. */
static const char **arguments(const bench_script *s, const char *script)
{
    size_t n = 0, at = 0;
    while (s->args[n]) n++;
    const char **argv = calloc(n + 3, sizeof *argv);
    if (!argv) return NULL;
    argv[at++] = s->python;
    if (s->text) argv[at++] = script;
    memcpy(argv + at, s->args, n * sizeof *argv);
    return argv;
}

/* Make the child's output a pipe. A child that answers requests gets a socket as input: writing to
 * a closed socket need not raise a signal. */
static int make_ends(child *c, int theirs[2], sgt_error *err)
{
    int ends[2];
    theirs[0] = theirs[1] = -1;
    if (pipe2(ends, O_CLOEXEC) < 0) return sgt_fail_errno(err, "--peer: pipe");
    c->out = ends[0];
    theirs[1] = ends[1];
    if (!c->asks) return SGT_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return sgt_fail_errno(err, "--peer: socket");
    c->in = ends[0];
    theirs[0] = ends[1];
    return SGT_OK;
}

static int start(child *c, const bench_script *s, sgt_error *err)
{
    int theirs[2], rc = make_ends(c, theirs, err);
    char script[32];
    cpu_set_t before;
    snprintf(script, sizeof script, "/proc/self/fd/%d", c->script);
    char **env = environment(s->settings);
    const char **argv = arguments(s, script);
    if (s->threads) narrow(&before, s->threads);
    if (rc == SGT_OK)
        rc = env && argv
                 ? spawn(c, s, (char *const *)(uintptr_t)argv, env, theirs[0], theirs[1], err)
                 : sgt_fail_memory(err, NULL);
    if (s->threads) sched_setaffinity(0, sizeof before, &before);
    free(env);
    free(argv);
    if (theirs[0] >= 0) close(theirs[0]);
    if (theirs[1] >= 0) close(theirs[1]);
    return rc;
}

/* Read everything that the child writes until it closes its output; keep the first BENCH_SAID - 1
 * bytes. */
static int listen_to(child *c, const bench_script *p, char *said, sgt_error *err)
{
    size_t n = 0;
    for (;;) {
        struct pollfd f = {.fd = c->out, .events = POLLIN};
        char beyond[4096];
        if (sgt_stopped(p->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        if (poll(&f, 1, 100) <= 0) continue;
        size_t room = BENCH_SAID - 1 - n;
        ssize_t got = read(c->out, room ? said + n : beyond, room ? room : sizeof beyond);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (room) n += (size_t)got;
    }
    said[n] = 0;
    return SGT_OK;
}

/* Fail with the exit status of the child and the last line of its standard error. */
static int failed(const child *c, const bench_script *p, char *said, int status, sgt_error *err)
{
    char why[32];
    off_t all = lseek(c->errors, 0, SEEK_END);
    ssize_t n = pread(c->errors, said, BENCH_SAID - 1, all < BENCH_SAID ? 0 : all - BENCH_SAID + 1);
    if (n < 0) n = 0;
    while (n && said[n - 1] == '\n') n--;
    said[n] = 0;
    const char *last = strrchr(said, '\n'), *line = last ? last + 1 : said;
    if (WIFSIGNALED(status)) snprintf(why, sizeof why, "signal %d", WTERMSIG(status));
    else snprintf(why, sizeof why, "exit %d", WEXITSTATUS(status));
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s%s: %s%s%.300s", said_by(p), p->python, why,
                    *line ? ": " : "", line);
}

static int make_files(child *c, const bench_script *s, sgt_error *err)
{
    if ((c->script = bench_memory_file(s->name, s->text, s->text ? strlen(s->text) : 0, err)) < 0)
        return c->script;
    if ((c->errors = bench_memory_file("errors", "", 0, err)) < 0) return c->errors;
    return SGT_OK;
}

static void close_ends(child *c)
{
    if (c->script >= 0) close(c->script);
    if (c->in >= 0) close(c->in);
    if (c->out >= 0) close(c->out);
    if (c->errors >= 0) close(c->errors);
}

/* End the child. It gets five seconds to remove its temporary files. */
static void end(pid_t id)
{
    kill(id, SIGTERM);
    for (int tries = 0; waitpid(id, NULL, WNOHANG) == 0; tries++) {
        if (tries == 500) kill(id, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

/* Start the child, read its output, and wait until it has ended. */
static int run_child(child *c, const bench_script *p, char *said, sgt_error *err)
{
    int status = 0, rc = make_files(c, p, err);
    if (rc < 0 || (rc = start(c, p, err)) < 0) return rc;
    if ((rc = listen_to(c, p, said, err)) < 0) end(c->id);
    else waitpid(c->id, &status, 0);
    if (rc == SGT_OK && sgt_stopped(p->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "interrupted");
    return rc == SGT_OK && status ? failed(c, p, said, status, err) : rc;
}

int bench_script_run(const bench_script *s, char *said, sgt_error *err)
{
    child c = {.script = -1, .in = -1, .out = -1, .errors = -1};
    int rc = run_child(&c, s, said, err);
    close_ends(&c);
    return rc;
}

/* ---- a script that stays ---- */

int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err)
{
    child *c = calloc(1, sizeof *c);
    if (!c) return sgt_fail_memory(err, NULL);
    *c = (child){.s = s,
                 .asks = 1,
                 .script = -1,
                 .in = -1,
                 .out = -1,
                 .errors = -1,
                 .said = malloc(BENCH_SAID)};
    int rc = c->said ? make_files(c, s, err) : sgt_fail_memory(err, NULL);
    if (rc == SGT_OK) rc = start(c, s, err);
    if (rc < 0) bench_script_close(c);
    else *out = c;
    return rc;
}

/* Fail with the reason why the child has ended. Kill it if its line of output does not end. */
static int ended(child *c, char *said, sgt_error *err)
{
    int status = 0;
    if (c->kept == BENCH_SAID) kill(c->id, SIGKILL);
    waitpid(c->id, &status, 0);
    c->id = 0;
    if (status) return failed(c, c->s, said, status, err);
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s%s: it ended without an answer", said_by(c->s),
                    c->s->python);
}

/* Move the first line of the output read so far to `said`. Return 1 if there was a whole one, else
 * 0. */
static int take_line(child *c, char *said)
{
    char *end = memchr(c->said, '\n', c->kept);
    if (!end) return 0;
    size_t n = (size_t)(end - c->said);
    memcpy(said, c->said, n);
    said[n] = 0;
    c->kept -= n + 1;
    memmove(c->said, end + 1, c->kept);
    return 1;
}

int bench_script_ask(bench_child *c, const char *line, char *said, sgt_error *err)
{
    if (!c->id)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%s%s: it has ended before", said_by(c->s),
                        c->s->python);
    /* a child that has ended cannot be written to; reading notices that below */
    for (size_t n = line ? strlen(line) : 0; n;) {
        ssize_t put = send(c->in, line, n, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR) break;
        if (put < 0) continue;
        line += put;
        n -= (size_t)put;
    }
    while (!take_line(c, said)) {
        struct pollfd f = {.fd = c->out, .events = POLLIN};
        if (sgt_stopped(c->s->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        if (poll(&f, 1, 100) <= 0) continue;
        ssize_t got = read(c->out, c->said + c->kept, BENCH_SAID - c->kept);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return ended(c, said, err);
        c->kept += (size_t)got;
    }
    return SGT_OK;
}

void bench_script_close(bench_child *c)
{
    if (!c) return;
    if (c->in >= 0) close(c->in);
    c->in = -1;
    for (int tries = 0; c->id && waitpid(c->id, NULL, WNOHANG) == 0; tries++) {
        if (sgt_stopped(c->s->stop) || tries == 500) kill(c->id, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    close_ends(c);
    free(c->said);
    free(c);
}
