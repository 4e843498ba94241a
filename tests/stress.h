/* stress.h: how a stress program reads its arguments, fails, works in a scratch folder, starts threads,
 * and sees that no thread and no descriptor is left. */
#ifndef SGT_TESTS_STRESS_H
#define SGT_TESTS_STRESS_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tests/scratch.h"

static inline _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

/* Return argument i, a number from `least` on; without that argument, `normal`. */
static inline uint64_t argument(int argc, char **argv, int i, uint64_t least, uint64_t normal)
{
    char *end;
    if (i >= argc) return normal;
    uint64_t n = strtoull(argv[i], &end, 10);
    if (n < least || *end) fail(argv[i], "not a number, or too small");
    return n;
}

static inline void start_thread(pthread_t *thread, void *(*work)(void *), void *arg)
{
    if (pthread_create(thread, NULL, work, arg)) fail("threads", "cannot start one");
}

static inline void *return_at_once(void *arg) { return arg; }

/* Make a scratch folder in `above` and enter it. Also start the thread that the thread sanitizer keeps
 * for itself, which it does with the first one. */
static inline void enter_scratch(char folder[SCRATCH_SIZE], const char *above)
{
    pthread_t first;
    if (!scratch_folder(folder, above, "stress") || chdir(folder) < 0)
        fail("scratch folder", "cannot make it");
    start_thread(&first, return_at_once, NULL);
    pthread_join(first, NULL);
}

static inline void remove_scratch(const char *folder)
{
    sgt_error err;
    if (chdir("/") < 0) fail("/", "cannot enter it");
    if (sgt_remove_tree(folder, &err) < 0) fail(folder, err.text);
}

/* The numbers of this process's descriptors and threads. */
typedef struct resources {
    unsigned descriptors, threads;
} resources;

static inline resources count_resources(void)
{
    return (resources){count_names("/proc/self/fd"), count_names("/proc/self/task")};
}

/* Fail unless this process has as many as `before`. */
static inline void expect_resources(const char *what, resources before)
{
    /* threads that were joined may stay visible for a while */
    for (int tries = 0; count_names("/proc/self/task") != before.threads; tries++) {
        if (tries == 1000) fail(what, "a thread is left");
        usleep(1000);
    }
    if (count_names("/proc/self/fd") != before.descriptors) fail(what, "a descriptor is left open");
}

#endif
