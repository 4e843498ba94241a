/* process.c: handles signals, ends the program if memory runs out, limits how long OpenMP's threads
 * spin, and finds folders. */
#include "tools/cli/process.h"

#include <glob.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "loader/base/library.h"
#include "tools/cli/options.h"

/* ---- signals ---- */

/* the flag that sgt_catch_signals returns. It is global because a signal handler receives no
 * pointer to it */
static sgt_stop stop;

/* signals that set the flag `stop`: SIGINT and SIGTERM, and also SIGHUP unless it is ignored */
static sigset_t handled;

/* number of seconds within which a repeated signal counts as the same signal */
#define TOGETHER 1

/* Handle a signal. The first signal requests a stop, and a second signal ends the program at once.
 * A single event can send the same signal twice, which must count as one: timeout(1) signals the
 * process and then its process group, and when a terminal is closed, both the shell and the kernel
 * send SIGHUP. */
static void on_signal(int number)
{
    static volatile sig_atomic_t first;
    static double since;
    if (number == first && (number == SIGHUP || sgt_now() - since < TOGETHER)) return;
    sgt_end_at_signal(1);
    first = number;
    since = sgt_now();
}

/* If `on` is 0, clear the flag. If `on` is 1, set the flag, so that the next signal ends the
 * program at once. If the flag was already set, a signal has arrived before, so end the program
 * now. */
void sgt_end_at_signal(int on)
{
    if (!on) __atomic_store_n(&stop.requested, 0, __ATOMIC_RELEASE);
    else if (__atomic_exchange_n(&stop.requested, 1, __ATOMIC_ACQ_REL)) _exit(SGT_EXIT_INTERRUPTED);
}

static void *wait_for_signals(void *unused)
{
    int number;
    for (;;)
        if (sigwait(&handled, &number) == 0) on_signal(number);
    return unused;
}

/* Block the signals in this thread and in all threads that it starts, and receive the signals in a
 * separate thread. A signal handler would have two disadvantages: it would interrupt system calls
 * of the thread in which it runs, including calls in third-party libraries, and it would need space
 * on that thread's stack. */
sgt_stop *sgt_catch_signals(void)
{
    pthread_t thread;
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    /* install a handler even for signals that are ignored: shells make background processes ignore
     * SIGINT */
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&handled);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGTERM);
    /* handle SIGHUP (sent when a terminal is closed) unless the process ignores it, as under
     * nohup(1) */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaddset(&handled, SIGHUP);
    /* ignore SIGXFSZ, so that a write beyond the limit of `ulimit -f` returns EFBIG, which is
     * reported, instead of killing the process */
    signal(SIGXFSZ, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &handled, NULL);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&handled, number) == 1) sigaction(number, &action, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) == 0) pthread_detach(thread);
    /* if the thread cannot be started, unblock the signals, so that on_signal runs as a signal
     * handler */
    else pthread_sigmask(SIG_UNBLOCK, &handled, NULL);
    return &stop;
}

/* ---- memory ---- */

/* name of the program, which sgt_no_memory prints. That function runs when memory has run out, so
 * it allocates none. It does not flush stdout, whose buffer may hold an incomplete result */
static const char *program = "sgt";

void sgt_no_memory(void)
{
    dprintf(STDERR_FILENO, "%s: out of memory\n", program);
    _exit(SGT_EXIT_FAILED);
}

static void *allocate(size_t n)
{
    void *p = malloc(n);
    if (!p && n) sgt_no_memory();
    return p;
}

void sgt_end_without_memory(const char *name)
{
    program = name;
    json_set_alloc_funcs(allocate, free);
}

/* ---- OpenMP ---- */

/* number of times that an idle OpenMP thread polls for work before it sleeps, which takes about 20
 * us in total. The threads of train/generate poll for the same time (SGT_TEAM_SPINS) */
#define SPINS "1000"

void sgt_spin_little(char **argv)
{
    const char *spins = getenv("GOMP_SPINCOUNT");
    char self[PATH_MAX] = "";
    if (spins && strcmp(spins, SPINS) == 0) {
        /* The program has been executed a second time, and libgomp has read the variable. Remove
         * the variable, so that child processes see only what the user has set. */
        unsetenv("GOMP_SPINCOUNT");
        return;
    }
    if (spins || getenv("OMP_WAIT_POLICY") || setenv("GOMP_SPINCOUNT", SPINS, 1) < 0) return;
    /* execute the file of this program by its own path instead of /proc/self/exe, so that ps and
     * pkill still show the program's name */
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) execv(self, argv);
    /* execv has failed, perhaps because /proc is not mounted, so restore the environment and
     * continue */
    unsetenv("GOMP_SPINCOUNT");
}

/* torchrun sets OMP_NUM_THREADS to 1 if the user has not set it. That value is meant for PyTorch's
 * threads, so ignore it. */
int sgt_most_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    if (!text || (!strcmp(text, "1") && getenv("TORCHELASTIC_RUN_ID"))) return 0;
    /* read only the first number of a comma-separated list, whose numbers are for nesting levels */
    const long n = strtol(text, NULL, 10);
    return n < 1 || n > INT_MAX ? 0 : (int)n;
}

int sgt_threads(uint64_t typed, uint32_t sharing)
{
    return typed ? (int)typed : sgt_cpu_threads(sharing, sgt_most_threads());
}

/* ---- folders ---- */

#define PACKAGES "/lib/python3*/site-packages"

/* Append to *found all existing folders whose path is `root`, followed by `packages` and
 * /nvidia/NAME/lib. */
static void find_libraries(glob_t *found, const char *root, const char *packages)
{
    char pattern[PATH_MAX];
    if (!root || *root != '/' || strpbrk(root, "*?[\\:")) return;
    int n = snprintf(pattern, sizeof pattern, "%s%s/nvidia/*/lib", root, packages);
    if ((size_t)n < sizeof pattern) glob(pattern, GLOB_APPEND, NULL, found);
}

/* Return the prefix under which a program is installed, such as /usr if `file` is /usr/bin/python3.
 * The function overwrites `file`. */
static char *prefix_of(char *file) { return dirname(dirname(file)); }

/* Append NVIDIA's folders below the prefix of the first python3 in PATH. If that path is a symbolic
 * link, search below two prefixes: the prefix of the link, which may be a virtual environment, and
 * the prefix of the file to which the link leads. */
static void find_below_python_of_path(glob_t *found)
{
    char file[PATH_MAX], real[PATH_MAX];
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/python3", (int)n, at);
        at += n + (at[n] == ':');
        if (*file != '/' || access(file, X_OK) < 0) continue;
        int behind = realpath(file, real) != NULL;
        find_libraries(found, prefix_of(file), PACKAGES);
        if (behind) find_libraries(found, prefix_of(real), PACKAGES);
        return;
    }
}

/* Return the found paths as one string in malloc'd memory, joined with colons. Duplicate paths and
 * paths that contain a colon are skipped. */
static char *join(const glob_t *found)
{
    size_t room = 1, at = 0;
    for (size_t i = 0; i < found->gl_pathc; i++) room += strlen(found->gl_pathv[i]) + 1;
    char *list = calloc(1, room);
    for (size_t i = 0; list && i < found->gl_pathc; i++) {
        const char *path = found->gl_pathv[i];
        if (strstr(list, path) || strchr(path, ':')) continue;
        at += (size_t)snprintf(list + at, room - at, "%s%s", at ? ":" : "", path);
    }
    return list;
}

char *sgt_wheel_folders(void)
{
    glob_t found = {0};
    char own[PATH_MAX];
    find_libraries(&found, getenv("VIRTUAL_ENV"), PACKAGES);
    find_libraries(&found, getenv("CONDA_PREFIX"), PACKAGES);
    /* search below the prefix of this program, because pip may have installed it in a virtual
     * environment */
    if (realpath("/proc/self/exe", own)) find_libraries(&found, prefix_of(own), PACKAGES);
    find_below_python_of_path(&found);
    find_libraries(&found, getenv("HOME"), "/.local" PACKAGES);
    find_libraries(&found, "/usr/local", "/lib/python3*/dist-packages");
    find_libraries(&found, "/usr", "/lib/python3/dist-packages");
    char *list = join(&found);
    globfree(&found);
    return list;
}

void sgt_search_wheels(void)
{
    static char *list;
    if (!list) sgt_library_search(list = sgt_wheel_folders());
}

int sgt_folder_has(const char *folder, const char *name)
{
    char path[SGT_PATH];
    return !sgt_file_gone(sgt_path(path, folder, "%s", name));
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
