/* shim.c: faults.so, which `faults` preloads (see faults.c). It disturbs what seccomp cannot:
 * allocations by the code of the program or of a library, and clocks. It removes itself from the
 * environment, so processes that the program starts are not disturbed. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/plan.h"

#define HOUR 3600ll
#define YEARS (10ll * 365 * 24 * HOUR)

/* glibc's own functions, under names that this file does not replace. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

static fault_counts *counts;
static fault_place place;
static enum { NOTHING, MEMORY, CLOCK } what;
/* whose: part of the file name of the library whose calls are disturbed; "": the program's calls.
 * how: the plan's WHAT, such as "back". */
static const char *whose = "", *how = "";
static uintptr_t code, code_end; /* address range of the code whose calls are disturbed */

/* Count a call, and return whether to disturb it. */
static int disturbed(void)
{
    uint64_t n = __atomic_add_fetch(&counts->seen, 1, __ATOMIC_RELAXED);
    int hit = fault_is_at(&place, n);
    if (hit) __atomic_add_fetch(&counts->hits, 1, __ATOMIC_RELAXED);
    return hit;
}

/* Set code and code_end to the code of `whose`. The first object listed is the program, whose name
 * is "". */
static int find_code(struct dl_phdr_info *o, size_t size, void *ctx)
{
    (void)size;
    (void)ctx;
    if (*whose && !strstr(o->dlpi_name, whose)) return 0;
    for (int i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_LOAD && o->dlpi_phdr[i].p_flags & PF_X) {
            code = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr;
            code_end = code + o->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    char *fd, *plan, *at, *n, *text = getenv("SGT_FAULTS"); /* FD:memory@NAME:fail:17 */
    unsetenv("LD_PRELOAD");
    if (!text) return;
    text = strdup(text); /* never freed: `whose` and `how` point into it */
    unsetenv("SGT_FAULTS");
    fd = strtok(text, ":");
    plan = strtok(NULL, ":");
    how = strtok(NULL, ":");
    n = strtok(NULL, ":");
    if (!fd || !plan || !how) return;
    if ((at = strchr(plan, '@'))) *at = 0, whose = at + 1;
    place = fault_place_of(n);
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);
    close(atoi(fd));
    if (counts == MAP_FAILED) return;
    what = strcmp(plan, "clock") ? MEMORY : CLOCK;
    dl_iterate_phdr(find_code, NULL);
}

/* ---- memory ---- */

/* Whether this call is made by the code in `code` .. `code_end` and must fail; it sets errno if
 * so. */
#define FAILS() \
    (what == MEMORY && is_code(__builtin_return_address(0)) && disturbed() && (errno = ENOMEM))

static int is_code(const void *caller)
{
    return (uintptr_t)caller >= code && (uintptr_t)caller < code_end;
}

void *malloc(size_t n) { return FAILS() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return FAILS() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return FAILS() ? NULL : __libc_realloc(p, n); }
void *reallocarray(void *p, size_t n, size_t size)
{
    return FAILS() ? NULL : __libc_realloc(p, n * size);
}
void *aligned_alloc(size_t align, size_t n) { return FAILS() ? NULL : __libc_memalign(align, n); }

int posix_memalign(void **p, size_t align, size_t n)
{
    if (FAILS()) return ENOMEM;
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}

void *mmap(void *p, size_t n, int protection, int flags, int fd, off_t at)
{
    if (FAILS()) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, p, n, protection, flags, fd, at);
}

/* Replacements of libc functions that allocate, because the caller of their malloc calls would be
 * libc. REAL(name) is libc's own function. */
#define REAL(name) (__extension__(__typeof__(&name)) dlsym(RTLD_NEXT, #name))

char *strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = FAILS() ? NULL : __libc_malloc(n);
    return copy ? memcpy(copy, s, n) : NULL;
}

char *strndup(const char *s, size_t most)
{
    size_t n = strnlen(s, most);
    char *copy = FAILS() ? NULL : __libc_malloc(n + 1);
    if (copy) copy[n] = 0;
    return copy ? memcpy(copy, s, n) : NULL;
}

char *realpath(const char *restrict path, char *restrict into)
{
    return FAILS() ? NULL : REAL(realpath)(path, into);
}

/* glibc's headers redirect getline and getdelim to this. */
ssize_t __getdelim(char **restrict line, size_t *restrict room, int end, FILE *restrict f)
{
    return FAILS() ? -1 : REAL(__getdelim)(line, room, end, f);
}

int vasprintf(char **restrict text, const char *restrict format, va_list args)
{
    return FAILS() ? -1 : REAL(vasprintf)(text, format, args);
}

int asprintf(char **restrict text, const char *restrict format, ...)
{
    va_list args;
    if (FAILS()) return -1;
    va_start(args, format);
    int n = REAL(vasprintf)(text, format, args);
    va_end(args);
    return n;
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    return FAILS() ? NULL : REAL(fopen)(path, mode);
}
FILE *fdopen(int fd, const char *mode) { return FAILS() ? NULL : REAL(fdopen)(fd, mode); }
FILE *open_memstream(char **p, size_t *n) { return FAILS() ? NULL : REAL(open_memstream)(p, n); }
DIR *opendir(const char *path) { return FAILS() ? NULL : REAL(opendir)(path); }
DIR *fdopendir(int fd) { return FAILS() ? NULL : REAL(fdopendir)(fd); }

/* ---- clocks ---- */

static int64_t jumped; /* seconds by which clocks are ahead of the kernel's */

static int64_t ahead(void)
{
    if (what != CLOCK) return 0;
    if (disturbed()) {
        int64_t by = !strcmp(how, "back")      ? -HOUR
                     : !strcmp(how, "forward") ? YEARS
                     : counts->hits % 2        ? YEARS
                                               : -HOUR;
        __atomic_store_n(&jumped, by, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&jumped, __ATOMIC_RELAXED);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (!rc && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME)) {
        t->tv_sec += ahead();
        if (t->tv_sec < 0) t->tv_sec = 0; /* if the machine was started less than an hour ago */
    }
    return rc;
}

time_t time(time_t *to)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (to) *to = t.tv_sec;
    return t.tv_sec;
}

/* Convert `until` to the kernel's clock, which has not jumped. If `until` was computed before the
 * clock jumped back, it is an hour ahead of now, so wait at most one second. */
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
    struct timespec now, real = *until;
    real.tv_sec -= __atomic_load_n(&jumped, __ATOMIC_RELAXED);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    if (what == CLOCK && real.tv_sec > now.tv_sec + 1) real.tv_sec = now.tv_sec + 1;
    return REAL(pthread_cond_timedwait)(c, m, &real);
}
