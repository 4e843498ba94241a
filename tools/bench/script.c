/* script.c: runs a Python script that is in memory, or another program, in a child process, and
 * reads the JSON that the child prints. */

#include "tools/bench/bench.h"

#include <errno.h>
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
#include "loader/base/thread.h"

struct bench_child {
    const bench_script *s;
    char name[1024]; /* text with which messages about the child begin */
    pid_t id;        /* process id of the child; 0 if it is not running */
    /* descriptor of a socket that is connected to the child's standard output and, if s->stays is
     * 1, also to its standard input */
    int line;
    /* descriptors of two files in memory: one that contains the script (`script`), and one to which
     * the child's standard error is written (`errors`) */
    int script, errors;
    FILE *output; /* stream that reads from the socket */
    char *answer; /* buffer of `room` bytes that contains the last answer */
    size_t room;
};

int bench_memory_file(const char *name, const char *text, size_t n, sgt_error *err)
{
    int fd = memfd_create(name, 0);
    if (fd < 0) return sgt_fail_errno(err, "cannot create the file %s in memory", name);
    int rc = sgt_write_all(fd, text, n, name, err);
    if (rc < 0) close(fd);
    return rc < 0 ? rc : fd;
}

/* Restrict this thread to `threads` of the CPU cores on which it can run, so that a child process
 * that it starts also uses only these. Store the cores on which the thread could run before in
 * *before. */
static void narrow(cpu_set_t *before, int threads)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof *before, before) < 0) return;
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&set) < threads; c++)
        if (CPU_ISSET(c, before)) CPU_SET(c, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Return the arguments of the child, as an array that ends with NULL and that the caller frees: the
 * interpreter or program, the path of the script if there is one, the strings in s->args, and the
 * words in `words`, which is overwritten. Return NULL if memory runs out. */
static char **arguments(const bench_script *s, char *script, char *words)
{
    size_t n = 0, at = 0;
    char *rest;
    while (s->args && s->args[n]) n++;
    char **argv = calloc(n + strlen(words) / 2 + 4, sizeof *argv);
    if (!argv) return NULL;
    argv[at++] = (char *)(uintptr_t)s->python;
    if (s->text) argv[at++] = script;
    if (n) memcpy(argv + at, s->args, n * sizeof *argv);
    at += n;
    for (char *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) argv[at++] = w;
    return argv;
}

/* Start the child process. Its standard output is the socket `theirs`. If the child keeps running
 * between answers (s->stays is 1), the socket is also its standard input. */
static int start(bench_child *c, int theirs, sgt_error *err)
{
    const bench_script *s = c->s;
    char script[32], words[sizeof s->words];
    cpu_set_t before;
    memcpy(words, s->words, sizeof words);
    snprintf(script, sizeof script, "/proc/self/fd/%d", c->script);
    char **argv = arguments(s, script, words);
    if (!argv) return sgt_fail_memory(err, NULL);
    const sgt_process process = {.program = s->python,
                                 .argv = argv,
                                 .in = s->stays ? theirs : 0,
                                 .out = theirs,
                                 .errors = c->errors,
                                 /* let the child inherit the descriptor of the script */
                                 .keeps = 1};
    if (s->threads) narrow(&before, s->threads);
    errno = sgt_process_start(&c->id, &process);
    int rc = errno ? sgt_fail_errno(err, "%s", c->name) : SGT_OK;
    if (s->threads) sched_setaffinity(0, sizeof before, &before);
    free(argv);
    return rc;
}

/* Read from the child's output like read(2), but return 0, which stands for the end of a file,
 * after an interrupt. */
static ssize_t read_output(void *self, char *to, size_t n)
{
    const bench_child *c = self;
    struct pollfd f = {.fd = c->line, .events = POLLIN};
    while (!sgt_stopped(bench.stop))
        if (poll(&f, 1, 100) > 0) return read(c->line, to, n);
    return 0;
}

static int open_child(bench_child *c, sgt_error *err)
{
    const cookie_io_functions_t calls = {.read = read_output};
    const char *text = c->s->text ? c->s->text : "";
    int ends[2];
    if ((c->script = bench_memory_file("script", text, strlen(text), err)) < 0) return c->script;
    if ((c->errors = bench_memory_file("errors", "", 0, err)) < 0) return c->errors;
    if (!(c->output = fopencookie(c, "r", calls))) return sgt_fail_memory(err, NULL);
    /* Use a socket instead of a pipe, because send(2), unlike write(2) to a pipe, can fail without
     * raising SIGPIPE if the child has closed its end. */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return sgt_fail_errno(err, "--peer: cannot create a socket");
    c->line = ends[0];
    int rc = start(c, ends[1], err);
    close(ends[1]);
    return rc;
}

int bench_script_open(bench_child **out, const bench_script *s, sgt_error *err)
{
    bench_child *c = calloc(1, sizeof *c);
    if (!c) return sgt_fail_memory(err, NULL);
    c->s = s;
    /* beginning of messages: for a script, the option --peer and its value, the interpreter;
     * otherwise, the program */
    snprintf(c->name, sizeof c->name, "%s%s", s->text ? "--peer " : "", s->python);
    c->line = c->script = c->errors = -1;
    int rc = open_child(c, err);
    if (rc < 0) bench_script_close(c);
    else *out = c;
    return rc;
}

/* Wait until the child has exited. If it failed, return SGT_EUNSUPPORTED with a message that
 * contains its exit status and the last line of its standard error. A child that should have kept
 * running (s->stays is 1) has failed even if its exit status is 0. */
static int wait_for_end(bench_child *c, sgt_error *err)
{
    int status = 0;
    char why[48] = "exited without an answer", said[1024];
    /* Shut down the socket first. Otherwise, a child that is writing to it would wait forever for
     * this process to read. */
    shutdown(c->line, SHUT_RDWR);
    waitpid(c->id, &status, 0);
    c->id = 0;
    if (!status && !c->s->stays) return SGT_OK;
    if (WIFSIGNALED(status)) snprintf(why, sizeof why, "killed by signal %d", WTERMSIG(status));
    else if (status) snprintf(why, sizeof why, "exited with code %d", WEXITSTATUS(status));
    off_t all = status ? lseek(c->errors, 0, SEEK_END) : 0, most = sizeof said - 1;
    ssize_t n = pread(c->errors, said, sizeof said - 1, all < most ? 0 : all - most);
    if (n < 0 || !status) n = 0;
    while (n && said[n - 1] == '\n') n--;
    said[n] = 0;
    const char *last = strrchr(said, '\n'), *line = last ? last + 1 : said;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s%s%.300s", c->name, why, *line ? ": " : "", line);
}

/* Parse an answer of the child, and set *answer to the JSON object. Return SGT_EUNSUPPORTED if the
 * object lacks the member c->s->needs or has a member "error". */
static int parse(json_t **answer, const bench_child *c, const char *text, sgt_error *err)
{
    const char *brace = strchr(text, '{'), *needs = c->s->needs;
    json_t *j = brace ? json_loads(brace, JSON_DISABLE_EOF_CHECK, NULL) : NULL,
           *needed = needs ? json_object_get(j, needs) : j;
    const char *why = bench_get_text(j, "error");
    if (!why && needed && (!json_is_number(needed) || json_number_value(needed) > 0)) {
        *answer = j;
        return SGT_OK;
    }
    int rc = why ? sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s", c->name, why)
                 : sgt_fail(err, SGT_EUNSUPPORTED, "%s: no %s in its output: %.*s", c->name,
                            needs ? needs : "JSON object", (int)strcspn(text, "\n"), text);
    json_decref(j);
    return rc;
}

int bench_script_ask(bench_child *c, const char *line, json_t **answer, sgt_error *err)
{
    const bench_script *s = c->s;
    int rc = SGT_OK;
    if (!c->id) return sgt_fail(err, SGT_EUNSUPPORTED, "%s: has already exited", c->name);
    /* ignore an error of send: if the child has ended, reading the answer fails and reports it */
    if (line) (void)!send(c->line, line, strlen(line), MSG_NOSIGNAL);
    /* If s->stays is 1, read one line. Otherwise, read all output: the delimiter is a NUL, which
     * the output does not contain. */
    ssize_t n = getdelim(&c->answer, &c->room, s->stays ? '\n' : '\0', c->output);
    int whole = s->stays && n > 0 && c->answer[n - 1] == '\n';
    if (!whole && !sgt_stopped(bench.stop)) rc = wait_for_end(c, err);
    if (sgt_stopped(bench.stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
    return rc < 0 ? rc : parse(answer, c, n > 0 ? c->answer : "", err);
}

int bench_script_run(const bench_script *s, json_t **answer, sgt_error *err)
{
    bench_child *c;
    int rc = bench_script_open(&c, s, err);
    if (rc < 0) return rc;
    rc = bench_script_ask(c, NULL, answer, err);
    bench_script_close(c);
    return rc;
}

void bench_script_close(bench_child *c)
{
    if (!c) return;
    /* after an interrupt, ask the child to end; it gets five seconds to remove its temporary
     * files */
    if (c->id && sgt_stopped(bench.stop)) kill(c->id, SIGTERM);
    if (c->output) fclose(c->output);
    if (c->line >= 0) close(c->line);
    for (int tries = 0; c->id && waitpid(c->id, NULL, WNOHANG) == 0; tries++) {
        if (tries == 500) kill(c->id, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (c->script >= 0) close(c->script);
    if (c->errors >= 0) close(c->errors);
    free(c->answer);
    free(c);
}
