/* peer.c: the peer's script, an interpreter that reads it, and the one line of JSON that comes back. */
#include "tools/bench/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
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
#include "tools/bench/step.h"

__asm__(".section .rodata\n"
        "sgt_torch_step: .incbin \"tests/peers/torch_step.py\"\n"
        "sgt_torch_step_end: .byte 0\n"
        ".previous\n");
extern const char sgt_torch_step[], sgt_torch_step_end[];

extern char **environ;

enum { SAID = 65536 }; /* the most that is kept of what it says on either way out */

typedef struct child {
    pid_t id;
    int script, out, errors; /* descriptors: the script, the reading end, what it says of failures */
} child;

/* glibc's allocator gives large blocks back at every step, and PyTorch then waits for pages: up to 1.9 times slower on
 * a CPU without these. */
static const char *const settings[] = {
    "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=34359738368:glibc.malloc.trim_threshold=34359738368:"
    "glibc.malloc.hugetlb=1",
    "THP_MEM_ALLOC_ENABLE=1", NULL};

static int file_in_memory(const char *name, const char *text, size_t n, sgt_error *err)
{
    int fd = memfd_create(name, 0);
    if (fd < 0) return sgt_fail_errno(err, "%s", name);
    int rc = sgt_write_all(fd, text, n, name, err);
    if (rc < 0) close(fd);
    return rc < 0 ? rc : fd;
}

/* Our environment and the settings before it: of equal names the first counts. */
static char **environment(int cpu)
{
    size_t n = 0, at = 0;
    while (environ[n]) n++;
    char **all = calloc(n + 3, sizeof *all);
    for (size_t i = 0; all && cpu && settings[i]; i++) all[at++] = (char *)(uintptr_t)settings[i];
    for (size_t i = 0; all && i < n; i++) all[at++] = environ[i];
    return all;
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
static int spawn(child *c, const char *python, char *const *argv, char **env, int out, sgt_error *err)
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
    int failed = posix_spawnp(&c->id, python, &files, &attributes, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (!failed) return SGT_OK;
    errno = failed;
    return sgt_fail_errno(err, "--peer %s", python);
}

typedef struct command {
    char script[32], shape[48], batch[16], seq[16], steps[16], accum[16];
    const char *argv[16];
} command;

static void fill_command(command *k, const child *c, const peer_run *p)
{
    const sgt_backend_options *o = p->backend;
    snprintf(k->script, sizeof k->script, "/proc/self/fd/%d", c->script);
    snprintf(k->shape, sizeof k->shape, "%ux%ux%u", o->model.layers, o->model.channels, o->model.heads);
    snprintf(k->batch, sizeof k->batch, "%u", o->batch);
    snprintf(k->seq, sizeof k->seq, "%u", o->seq);
    snprintf(k->steps, sizeof k->steps, "%u", p->steps);
    snprintf(k->accum, sizeof k->accum, "%u", o->accum ? o->accum : 1);
    const char *argv[] = {p->python, k->script, k->shape, k->batch, k->seq,
                          "--precision", sgt_precision_words[o->precision], "--device", p->device,
                          "--mode", p->mode, "--steps", k->steps, "--accum", k->accum};
    memcpy(k->argv, argv, sizeof argv);
    k->argv[sizeof argv / sizeof *argv] = NULL;
}

static int start(child *c, const peer_run *p, sgt_error *err)
{
    int ends[2], cpu = strcmp(p->device, "cpu") == 0;
    command k;
    cpu_set_t before;
    fill_command(&k, c, p);
    if (pipe2(ends, O_CLOEXEC) < 0) return sgt_fail_errno(err, "--peer: pipe");
    char **env = environment(cpu);
    if (cpu) narrow(&before, p->backend->threads);
    int rc = env ? spawn(c, p->python, (char *const *)(uintptr_t)k.argv, env, ends[1], err)
                 : sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (cpu) sched_setaffinity(0, sizeof before, &before);
    free(env);
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
        size_t room = SAID - 1 - n;
        ssize_t got = read(c->out, room ? said + n : beyond, room ? room : sizeof beyond);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        if (room) n += (size_t)got;
    }
    said[n] = 0;
    return SGT_OK;
}

/* The last line of what it had to say. */
static int failed(const child *c, const peer_run *p, char *said, int status, sgt_error *err)
{
    char why[32];
    off_t all = lseek(c->errors, 0, SEEK_END);
    ssize_t n = pread(c->errors, said, SAID - 1, all < SAID ? 0 : all - SAID + 1);
    if (n < 0) n = 0;
    while (n && said[n - 1] == '\n') n--;
    said[n] = 0;
    const char *last = strrchr(said, '\n'), *line = last ? last + 1 : said;
    if (WIFSIGNALED(status)) snprintf(why, sizeof why, "signal %d", WTERMSIG(status));
    else snprintf(why, sizeof why, "exit %d", WEXITSTATUS(status));
    return sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: %s%s%.300s", p->python, why, *line ? ": " : "", line);
}

static int take(peer_result *r, const peer_run *p, const char *said, sgt_error *err)
{
    json_t *j = json_loads(said, 0, NULL);
    const char *name = json_string_value(json_object_get(j, "peer"));
    *r = (peer_result){.ms = json_number_value(json_object_get(j, "ms_per_step")),
                       .tokens_per_s = json_number_value(json_object_get(j, "tokens_per_s")),
                       .first_steps_s = json_number_value(json_object_get(j, "first_steps_s")),
                       .peak_bytes = (uint64_t)json_number_value(json_object_get(j, "peak_bytes"))};
    snprintf(r->name, sizeof r->name, "%s", name ? name : "");
    json_decref(j);
    if (r->ms > 0) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED, "--peer %s: no ms_per_step in what it said: %.*s", p->python,
                    (int)strcspn(said, "\n"), said);
}

/* Until it has ended, one way or the other. */
static int run_child(child *c, const peer_run *p, char *said, sgt_error *err)
{
    size_t script = (size_t)(sgt_torch_step_end - sgt_torch_step);
    int status = 0;
    if ((c->script = file_in_memory("torch_step.py", sgt_torch_step, script, err)) < 0) return c->script;
    if ((c->errors = file_in_memory("errors", "", 0, err)) < 0) return c->errors;
    int rc = start(c, p, err);
    if (rc < 0) return rc;
    rc = listen_to(c, said, p->stop, err);
    if (rc < 0) kill(c->id, SIGKILL);
    waitpid(c->id, &status, 0);
    if (rc == SGT_OK && sgt_stopped(p->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "interrupted");
    return rc == SGT_OK && status ? failed(c, p, said, status, err) : rc;
}

int bench_peer(peer_result *r, const peer_run *p, sgt_error *err)
{
    child c = {.script = -1, .out = -1, .errors = -1};
    char *said = malloc(SAID);
    int rc = said ? run_child(&c, p, said, err) : sgt_fail(err, SGT_ENOMEM, "out of memory");
    if (rc == SGT_OK) rc = take(r, p, said, err);
    if (c.script >= 0) close(c.script);
    if (c.errors >= 0) close(c.errors);
    if (c.out >= 0) close(c.out);
    free(said);
    return rc;
}
