/* talk.c: formats numbers with units, prints notices, handles signals. */
#include "tools/cli/talk.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/wrap.h"

char *sgt_format_bytes(char *buf, size_t n, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double x = (double)bytes;
    int u = 0;
    while (x >= 1023.95 && u < 5) x /= 1024, u++;
    snprintf(buf, n, u ? "%.1f %s" : "%.0f %s", x, units[u]);
    return buf;
}

char *sgt_format_rate(char *buf, size_t n, double per_s, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int u = 0;
    while (per_s >= 999.5 && u < 4) per_s /= 1000, u++;
    snprintf(buf, n,
             per_s < 9.995   ? "%.2f %s%s"
             : per_s < 99.95 ? "%.1f %s%s"
                             : "%.0f %s%s",
             per_s, prefixes[u], unit);
    return buf;
}

char *sgt_format_count(char *buf, size_t n, uint64_t count)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t at = 0;
    for (int i = 0; i < len && at + 2 < n; i++) {
        if (i && (len - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    if (n) buf[at] = 0;
    return buf;
}

char *sgt_format_time(char *buf, size_t n, double seconds)
{
    if (!(seconds >= 0 && seconds < 1e9)) {
        snprintf(buf, n, "--:--");
        return buf;
    }
    unsigned long s = (unsigned long)(seconds + .5);
    if (s < 3600) snprintf(buf, n, "%02lu:%02lu", s / 60, s % 60);
    else snprintf(buf, n, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    return buf;
}

const char *sgt_format_things(char *buf, size_t n, uint64_t count, const char *singular,
                              const char *plural)
{
    char digits[32];
    snprintf(buf, n, "%s %s", sgt_format_count(digits, sizeof digits, count),
             count == 1 ? singular : plural);
    return buf;
}

int sgt_can_redraw(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && !(term && !strcmp(term, "dumb"));
}

char *sgt_cache_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[4096];
    if (cache && *cache == '/') snprintf(path, sizeof path, "%s/sgt", cache);
    else if (home && *home == '/') snprintf(path, sizeof path, "%s/.cache/sgt", home);
    else return NULL;
    return strlen(path) + 1 < sizeof path ? strdup(path) : NULL;
}

static void print_notice(void *ctx, const char *line)
{
    const sgt_talk *t = ctx;
    if (!t->quiet) sgt_put_line(stderr, "%s: %s", t->program, line);
}

sgt_notice sgt_talk_notice(sgt_talk *t) { return (sgt_notice){print_notice, t}; }

static sgt_stop stop; /* global, because a signal handler gets no argument that could lead to it */

static struct {
    sigset_t set;
    pthread_t thread;
    int ending; /* 1: the thread must return; set before the signal that wakes it */
} waiter;

static void on_signal(int number)
{
    (void)number;
    if (sgt_stopped(&stop)) _exit(130);
    sgt_stop_request(&stop);
}

static void *wait_for_signals(void *unused)
{
    int number;
    while (!__atomic_load_n(&waiter.ending, __ATOMIC_ACQUIRE))
        if (sigwait(&waiter.set, &number) == 0 &&
            !__atomic_load_n(&waiter.ending, __ATOMIC_ACQUIRE))
            on_signal(number);
    return unused;
}

static void end_waiting(void)
{
    __atomic_store_n(&waiter.ending, 1, __ATOMIC_RELEASE);
    pthread_kill(waiter.thread, SIGTERM);
    pthread_join(waiter.thread, NULL);
}

/* Block the signals in this thread and in every later one, and let a separate thread take them. A
 * handler would interrupt the system calls of the thread that it runs on, also those of libraries
 * that we cannot change, and would need space on that thread's stack. */
sgt_stop *sgt_catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    /* shells ignore SIGINT in background processes; a handler undoes that */
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&waiter.set);
    sigaddset(&waiter.set, SIGINT);
    sigaddset(&waiter.set, SIGTERM);
    /* a write beyond `ulimit -f` then fails with EFBIG, which gives a message and exit code 1 */
    signal(SIGXFSZ, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &waiter.set, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (pthread_create(&waiter.thread, NULL, wait_for_signals, NULL) == 0) atexit(end_waiting);
    else
        pthread_sigmask(SIG_UNBLOCK, &waiter.set,
                        NULL); /* if the thread cannot be started, use the handler after all */
    return &stop;
}
