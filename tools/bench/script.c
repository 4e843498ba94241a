/* script.c: an interpreter that reads a script from memory, and what it says. */
#include "tools/bench/script.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

extern char **environ;

typedef struct child {
    pid_t id;
    int script, out, errors; /* descriptors: the script, the reading end, what it says of failures */
} child;

int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err)
{
    int fd = memfd_create(name, 0);
    if (fd < 0) return sgt_fail_errno(err, "%s", name);
    int rc = sgt_write_all(fd, text, n, name, err);
    if (rc < 0) close(fd);
    return rc < 0 ? rc : fd;
}

/* Our environment and the settings before it: of equal names the first counts. */
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

/* What begins a message: the option that named the interpreter. */
static const char *said_by(const bench_script *s)
{
    return s->text ? "--peer " : "";
}

/* A child takes the cores of the thread that makes it: as many of ours as there are threads. */
static void narrow(cpu_set_t *before, int threads)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof *before, before) < 0) return;
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&set) < threads; c++)
        if (CPU_ISSET(c, before)) CPU_SET(c, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Signals are blocked in our threads (sgt_catch_signals), and are not to be in the child. */
static int spawn(child *c, const bench_script *s, char *const *argv, char **env, int out, sgt_error *err)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, c->errors, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    int failed = posix_spawnp(&c->id, s->python, &files, &attributes, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (!failed) return SGT_OK;
    errno = failed;
    return sgt_fail_errno(err, "%s%s", said_by(s), s->python);
}

/* The interpreter, the script, its arguments. */
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

static int start(child *c, const bench_script *s, sgt_error *err)
{
    int ends[2];
    char script[32];
    cpu_set_t before;
    snprintf(script, sizeof script, "/proc/self/fd/%d", c->script);
    if (pipe2(ends, O_CLOEXEC) < 0) return sgt_fail_errno(err, "--peer: pipe");
    char **env = environment(s->settings);
    const char **argv = arguments(s, script);
    if (s->threads) narrow(&before, s->threads);
    int rc = env && argv ? spawn(c, s, (char *const *)(uintptr_t)argv, env, ends[1], err)
                         : sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (s->threads) sched_setaffinity(0, sizeof before, &before);
    free(env);
    free(argv);
    close(ends[1]);
    c->out = ends[0];
    return rc;
}

/* All that it writes until it closes its end. */
static int listen_to(child *c, char *said, const sgt_stop *stop, sgt_error *err)
{
    size_t n = 0;
    for (;;) {
        struct pollfd f = {.fd = c->out, .events = POLLIN};
        char beyond[4096];
        if (sgt_stopped(stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
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

/* The last line of what it had to say. */
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
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s%s: %s%s%.300s", said_by(p), p->python, why, *line ? ": " : "", line);
}

/* Until it has ended, one way or the other. */
static int run_child(child *c, const bench_script *p, char *said, sgt_error *err)
{
    int status = 0;
    if ((c->script = bench_memory_file(p->name, p->text, p->size, err)) < 0) return c->script;
    if ((c->errors = bench_memory_file("errors", "", 0, err)) < 0) return c->errors;
    int rc = start(c, p, err);
    if (rc < 0) return rc;
    rc = listen_to(c, said, p->stop, err);
    if (rc < 0) kill(c->id, SIGKILL);
    waitpid(c->id, &status, 0);
    if (rc == SGT_OK && sgt_stopped(p->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "interrupted");
    return rc == SGT_OK && status ? failed(c, p, said, status, err) : rc;
}

int bench_script_run(const bench_script *s, char *said, sgt_error *err)
{
    child c = {.script = -1, .out = -1, .errors = -1};
    int rc = run_child(&c, s, said, err);
    if (c.script >= 0) close(c.script);
    if (c.errors >= 0) close(c.errors);
    if (c.out >= 0) close(c.out);
    return rc;
}
