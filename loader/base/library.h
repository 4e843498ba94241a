/* library.h: load a shared library when a program first needs it, and store the addresses of its
 * functions in a table.
 *
 *     static struct { int (*get_version)(int *); ... } table;
 *     static const char *const names[] = {"libnccl.so.2", NULL};
 *     static const sgt_symbol symbols[] = {{"ncclGetVersion", &table.get_version}, ..., {0}};
 *     static sgt_library nccl = {.what = "NCCL", .names = names, .symbols = symbols,
 *                                .lock = PTHREAD_MUTEX_INITIALIZER};
 *
 *     // if this succeeds, the table is complete and never changes
 *     if ((rc = sgt_library_load(&nccl, err)) < 0) return rc; */
#ifndef SGT_BASE_LIBRARY_H
#define SGT_BASE_LIBRARY_H

#include <pthread.h>
#include <stddef.h>

#include "loader/base/error.h"

typedef struct sgt_symbol {
    const char *name;
    /* address of the function pointer to set, as a void pointer (POSIX allows this conversion) */
    void *to;
} sgt_symbol;

typedef struct sgt_library {
    /* name of the library and, if useful, its purpose, such as "NCCL, which several ranks need".
     * Error messages begin with this text */
    const char *what;
    /* file names of the library, tried in this order; the list ends with NULL */
    const char *const *names;
    /* functions to look up in the library; the list ends with an entry whose `name` is NULL */
    const sgt_symbol *symbols;
    /* advice on how to install the library, appended to the error message if the library cannot be
     * loaded; NULL: no advice */
    const char *install;
    /* advice on which version of the library is needed, appended to the error message if the
     * library lacks one of the functions; NULL: no advice */
    const char *version;
    /* function that checks the loaded library, for example its version, once all functions have
     * been found. If the check returns an error, sgt_library_load fails with that error. NULL: no
     * check */
    int (*ready)(void *library, sgt_error *err);
    pthread_mutex_t lock;
    int loaded;
} sgt_library;

/* Set additional folders. If the system's own folders do not contain a library, sgt_library_load
 * searches these. `folders` is a list separated by colons, or NULL for no folders. The string is
 * not copied and must stay valid. Call this function before threads start. */
void sgt_library_search(const char *folders);
const char *sgt_library_searched(void);

/* Call dlopen(name, flags). If it fails, repeat it, up to 10 times in all, because dlopen may
 * report a missing file when a signal interrupts it. If all calls fail, return NULL and store the
 * last error, safe to print, in the n bytes at `why`. */
void *sgt_library_open(const char *name, int flags, char *why, size_t n);

/* Load the library, unless this process has loaded it already. Any thread may call this function.
 * The library is never unloaded. On failure, return SGT_EUNSUPPORTED or the error of l->ready.
 * After a failure, the next call tries again. */
int sgt_library_load(sgt_library *l, sgt_error *err);

#endif
