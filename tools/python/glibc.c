/* glibc.c: defines the functions that glibc 2.28 lacks, but that the programs and libraries in the
 * Python wheel use, because the wheel is built with a newer glibc. For all other functions,
 * wheel.mk selects a version of the symbol that glibc 2.28 has. */
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
/* Hide a function, so that a program or library does not use the copy of another library. */
#define LOCAL __attribute__((visibility("hidden")))

/* Replacement for `stdin` in libjansson, to which wheel.mk renames the reference. The reason is
 * that Debian's libjansson.a is not compiled for shared libraries, so that its reference to `stdin`
 * cannot be linked into one. jansson only compares `stdin` with the file that it reads, so any
 * other value is correct. */
extern LOCAL void *not_stdin;
void *not_stdin;

/* glibc exports these four functions only since version 2.33. The system call that implements them
 * here fills in struct stat in the same format. */
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

/* Before glibc 2.34, __libc_start_main had a parameter `init`: a function that calls the program's
 * constructors. */
typedef int main_function(int argc, char **argv, char **envp);
typedef void constructor(int argc, char **argv, char **envp);
int old_start(main_function *run, int argc, char **argv, constructor *init, void (*fini)(void),
              void (*loader_fini)(void), void *stack_end);
__asm__(".symver old_start,__libc_start_main@" FIRST);

/* The linker defines these two symbols, the start and the end of the array of constructors, in a
 * program. In a library, they are NULL. */
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
