/* process.c: handles signals, ends the program if memory runs out, limits how long OpenMP threads
 * spin, and finds NVIDIA's libraries and the cache folder. */
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

/* flag that sgt_catch_signals returns; global because a signal handler receives no pointer to it */
static sgt_stop stop;

/* signals that set the flag `stop`: SIGINT, SIGTERM and, unless it is ignored, SIGHUP */
static sigset_t handled;

/* number of seconds within which two signals with the same number count as one */
#define TOGETHER 1

/* Handle a signal. The first signal requests a stop, and a second signal ends the program at once.
 * But a single event can send the same signal twice, which must count as one signal: timeout(1)
 * signals the process and then its process group, and when a terminal is closed, both the shell and
 * the kernel send SIGHUP. */
static void on_signal(int number)
{
    static volatile sig_atomic_t first;
    static double since;
    if (number == first && (number == SIGHUP || sgt_now() - since < TOGETHER)) return;
    sgt_end_at_signal(1);
    first = number;
    since = sgt_now();
}

/* If `on` is 1, set the flag, as a first signal would, so that the next signal ends the program at
 * once. If the flag is already set, a signal has arrived before, so end the program now. If `on` is
 * 0, clear the flag. */
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

/* The signals are blocked in this thread and in all threads that it starts, and a separate thread
 * receives them. A signal handler would have two disadvantages: it would interrupt the system calls
 * of the thread in which it runs, even those in third-party libraries, and it would need space on
 * that thread's stack. */
sgt_stop *sgt_catch_signals(void)
{
    pthread_t thread;
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    /* Install the handler even for signals that are ignored, because shells make background
     * processes ignore SIGINT. */
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&handled);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGTERM);
    /* handle SIGHUP, which is sent when a terminal is closed, unless it is ignored, as under
     * nohup(1) */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaddset(&handled, SIGHUP);
    /* Ignore SIGXFSZ, so that a write beyond the limit of `ulimit -f` returns EFBIG (an error that
     * the program reports) instead of killing the process. */
    signal(SIGXFSZ, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &handled, NULL);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&handled, number) == 1) sigaction(number, &action, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, NULL) == 0) pthread_detach(thread);
    /* If the thread cannot be started, unblock the signals, so that on_signal is called as a signal
     * handler. */
    else pthread_sigmask(SIG_UNBLOCK, &handled, NULL);
    return &stop;
}

/* ---- memory ---- */

/* name of the program, for the message of sgt_no_memory */
static const char *program = "sgt";

/* This function allocates no memory, because none is left. It does not flush stdout, because its
 * buffer may contain an incomplete result. */
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

/* number of times that an idle OpenMP thread checks for work before it sleeps, which takes about 20
 * us in all (the threads of train/generate spin as long: SGT_TEAM_SPINS) */
#define SPINS "1000"

void sgt_spin_little(char **argv)
{
    const char *spins = getenv("GOMP_SPINCOUNT");
    char self[PATH_MAX] = "";
    if (spins && strcmp(spins, SPINS) == 0) {
        /* This is the second execution of the program, so libgomp has already read the variable.
         * Remove it, so that child processes get the environment that the user set. */
        unsetenv("GOMP_SPINCOUNT");
        return;
    }
    if (spins || getenv("OMP_WAIT_POLICY") || setenv("GOMP_SPINCOUNT", SPINS, 1) < 0) return;
    /* Execute the program by its own path and not as /proc/self/exe, so that ps and pkill see the
     * program's name. */
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) execv(self, argv);
    /* The program could not be executed again, perhaps because /proc is not mounted. Restore the
     * environment, and continue without the limit. */
    unsetenv("GOMP_SPINCOUNT");
}

/* The value 1 is ignored under torchrun, because torchrun sets OMP_NUM_THREADS to 1, for PyTorch's
 * threads, if the user has not set it. */
int sgt_most_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    if (!text || (!strcmp(text, "1") && getenv("TORCHELASTIC_RUN_ID"))) return 0;
    /* Read only the first number. In a list of numbers, the others are for nested parallelism. */
    const long n = strtol(text, NULL, 10);
    return n < 1 || n > INT_MAX ? 0 : (int)n;
}

int sgt_threads(uint64_t typed, uint32_t sharing)
{
    return typed ? (int)typed : sgt_cpu_threads(sharing, sgt_most_threads());
}

/* ---- folders ---- */

#define PACKAGES "/lib/python3*/site-packages"

/* Append the paths of all existing folders ROOT/PACKAGES/nvidia/NAME/lib to *found. root: absolute
 * path (ROOT). packages: rest of the path up to /nvidia (/PACKAGES), which can contain
 * wildcards. */
static void find_libraries(glob_t *found, const char *root, const char *packages)
{
    char pattern[PATH_MAX];
    if (!root || *root != '/' || strpbrk(root, "*?[\\:")) return;
    int n = snprintf(pattern, sizeof pattern, "%s%s/nvidia/*/lib", root, packages);
    if ((size_t)n < sizeof pattern) glob(pattern, GLOB_APPEND, NULL, found);
}

/* Return the prefix under which a program is installed, such as /usr for the file /usr/bin/python3.
 * The string `file` is overwritten. */
static char *prefix_of(char *file) { return dirname(dirname(file)); }

/* Append the folders with NVIDIA's libraries that belong to the first python3 in PATH to *found. If
 * this python3 is a symbolic link, search in two places: below the prefix of the link, which may be
 * a virtual environment, and below the prefix of the file to which the link points. */
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

/* Return the found paths as one string, separated by colons, which the caller frees. Duplicate
 * paths and paths that contain a colon are skipped. Return NULL if memory runs out. */
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
    /* Search the environment of this program, because pip may have installed the program in a
     * virtual environment. */
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
