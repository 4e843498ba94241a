/* glibc.c: what the wheel's files lack in glibc 2.28 although they are linked with a later one.
 * wheel.mk gives every other name the version that 2.28 has. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define FIRST_AT "GLIBC_2.4"
enum { STAT_VERSION = 1 };
#else
#define FIRST "GLIBC_2.17"
#define FIRST_AT FIRST
enum { STAT_VERSION = 0 };
#endif
#define LOCAL __attribute__((visibility("hidden"))) /* in each program and library */

/* wheel.mk gives libjansson this name instead of stdin, which Debian's archive of it cannot reach from
 * a library. It only compares it with the file that it reads. */
extern LOCAL void *not_stdin;
void *not_stdin;

/* glibc's names for stat and its kin before 2.33 */
int old_stat(int version, const char *path, struct stat *out);
int old_lstat(int version, const char *path, struct stat *out);
int old_fstat(int version, int fd, struct stat *out);
int old_fstatat(int version, int fd, const char *path, struct stat *out, int flags);
__asm__(".symver old_stat,__xstat@" FIRST);
__asm__(".symver old_lstat,__lxstat@" FIRST);
__asm__(".symver old_fstat,__fxstat@" FIRST);
__asm__(".symver old_fstatat,__fxstatat@" FIRST_AT);

LOCAL int stat(const char *path, struct stat *out) { return old_stat(STAT_VERSION, path, out); }
LOCAL int lstat(const char *path, struct stat *out) { return old_lstat(STAT_VERSION, path, out); }
LOCAL int fstat(int fd, struct stat *out) { return old_fstat(STAT_VERSION, fd, out); }
LOCAL int fstatat(int fd, const char *path, struct stat *out, int flags)
{
    return old_fstatat(STAT_VERSION, fd, path, out, flags);
}

/* The next two came with 2.30 and 2.34: call a later glibc's. */
__asm__(".symver dlsym,dlsym@" FIRST);

LOCAL int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
                                 const struct timespec *until)
{
    int (*own)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *) = NULL;
    struct timespec now, real;
    *(void **)&own = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
    if (own) return own(c, m, clock, until);
    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &real);
    long long left = (until->tv_sec - now.tv_sec + real.tv_sec) * 1000000000LL + until->tv_nsec -
                     now.tv_nsec + real.tv_nsec;
    real.tv_sec = left / 1000000000;
    real.tv_nsec = left % 1000000000;
    return pthread_cond_timedwait(c, m, &real);
}

LOCAL int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *files, int from)
{
    int (*own)(posix_spawn_file_actions_t *, int) = NULL, rc = 0;
    *(void **)&own = dlsym(RTLD_NEXT, "posix_spawn_file_actions_addclosefrom_np");
    if (own) return own(files, from);
    for (int fd = from, end = getdtablesize(); fd < end && !rc; fd++)
        if (fcntl(fd, F_GETFD) >= 0) rc = posix_spawn_file_actions_addclose(files, fd);
    return rc;
}

/* Before 2.34, a program passes the function that calls its constructors. */
typedef int main_function(int argc, char **argv, char **envp);
typedef void constructor(int argc, char **argv, char **envp);
int old_start(main_function *run, int argc, char **argv, constructor *init, void (*fini)(void),
              void (*loader_fini)(void), void *stack_end);
__asm__(".symver old_start,__libc_start_main@" FIRST);

/* The linker defines these in programs. A library has no start. */
extern constructor *__init_array_start[] __attribute__((weak, visibility("hidden")));
extern constructor *__init_array_end[] __attribute__((weak, visibility("hidden")));

static void construct(int argc, char **argv, char **envp)
{
    for (constructor **c = __init_array_start; c < __init_array_end; c++) (*c)(argc, argv, envp);
}

LOCAL int __libc_start_main(main_function *run, int argc, char **argv, constructor *init,
                            void (*fini)(void), void (*loader_fini)(void), void *stack_end);
int __libc_start_main(main_function *run, int argc, char **argv, constructor *init,
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    (void)init;
    return old_start(run, argc, argv, construct, fini, loader_fini, stack_end);
}
