/* glibc.c: functions that the wheel's programs and libraries use, but that glibc 2.28 lacks. (The
 * wheel is built with a later glibc.) For all other symbols, wheel.mk selects a version that glibc
 * 2.28 has. */
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#else
#define FIRST "GLIBC_2.17"
#endif
/* hidden, so that each program or library uses only its own copy of the function */
#define LOCAL __attribute__((visibility("hidden")))

/* stand-in for `stdin` in libjansson. jansson only compares it with the file that it reads, so it
 * may have any other value. wheel.mk renames the reference to stdin, which cannot be linked:
 * Debian's libjansson.a is not compiled for a shared library. */
extern LOCAL void *not_stdin;
void *not_stdin;

/* glibc exports the following four functions only since 2.33. The kernel's system calls fill in the
 * same struct stat. */
LOCAL int fstatat(int fd, const char *path, struct stat *out, int flags)
{
    return (int)syscall(SYS_newfstatat, fd, path, out, flags);
}
LOCAL int stat(const char *path, struct stat *out) { return fstatat(AT_FDCWD, path, out, 0); }
LOCAL int fstat(int fd, struct stat *out) { return fstatat(fd, "", out, AT_EMPTY_PATH); }
LOCAL int lstat(const char *path, struct stat *out)
{
    return fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

/* Exists in glibc since 2.34. */
LOCAL int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *files, int from)
{
    int rc = 0;
    DIR *open = opendir("/proc/self/fd");
    for (struct dirent *e; open && !rc && (e = readdir(open));) {
        int fd = (int)strtol(e->d_name, NULL, 10);
        if (fd >= from) rc = posix_spawn_file_actions_addclose(files, fd);
    }
    if (open) closedir(open);
    return rc;
}

/* Before glibc 2.34, a program had to pass the function that calls its constructors to
 * __libc_start_main. */
typedef int main_function(int argc, char **argv, char **envp);
typedef void constructor(int argc, char **argv, char **envp);
int old_start(main_function *run, int argc, char **argv, constructor *init, void (*fini)(void),
              void (*loader_fini)(void), void *stack_end);
__asm__(".symver old_start,__libc_start_main@" FIRST);

/* In programs, the linker defines these symbols. In libraries, which have no start-up code, they
 * stay NULL. */
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
