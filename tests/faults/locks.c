/* locks.c: locks.so, which tests of two writers preload (tests/cli/owners.inc). If SGT_TEST_FLOCK
 * is "lies", flock succeeds for every process; if it is the name of an error, flock fails with
 * that. uname gives SGT_TEST_HOST as the machine's name. If SGT_TEST_RENAME is set, rename fails.
 * An owner's file (loader/base/owner.h) is touched every 0.02 seconds instead of 10, and watched
 * for 1.2 seconds instead of 60. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) (__extension__(__typeof__(&name)) dlsym(RTLD_NEXT, #name))

int flock(int fd, int how)
{
    static const struct error {
        const char *name;
        int number;
    } errors[] = {{"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP}, {"ENOLCK", ENOLCK}, {"EIO", EIO}};
    const char *does = getenv("SGT_TEST_FLOCK");
    if (!does || !*does) return (int)syscall(SYS_flock, fd, how);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(does, errors[i].name)) {
            errno = errors[i].number;
            return -1;
        }
    return 0;
}

int uname(struct utsname *u)
{
    const char *host = getenv("SGT_TEST_HOST");
    int rc = (int)syscall(SYS_uname, u);
    if (host && *host) strncpy(u->nodename, host, sizeof u->nodename - 1);
    return rc;
}

int rename(const char *from, const char *to)
{
    if (!getenv("SGT_TEST_RENAME")) return REAL(rename)(from, to);
    errno = EACCES;
    return -1;
}

int poll(struct pollfd *p, nfds_t n, int ms) { return REAL(poll)(p, n, !n && ms == 100 ? 2 : ms); }

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    struct timespec soon;
    clock_gettime(CLOCK_MONOTONIC, &soon);
    const int is_long = until->tv_sec > soon.tv_sec + 5;
    soon.tv_nsec += 20000000;
    soon.tv_sec += soon.tv_nsec / 1000000000;
    soon.tv_nsec %= 1000000000;
    return REAL(pthread_cond_timedwait)(c, m, is_long ? &soon : until);
}
