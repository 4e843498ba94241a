/* library.h: load a shared library when it is first needed, and fill a table with pointers to its
 * functions.
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
    /* address of the function pointer to fill in, as void * (POSIX allows this conversion) */
    void *to;
} sgt_symbol;

typedef struct sgt_library {
    /* name and purpose of the library, such as "NCCL, which several ranks need"; error messages
     * begin with it */
    const char *what;
    const char *const *names; /* file names to try in this order; the list ends with NULL */
    /* functions to look up; the list ends with an entry whose name is NULL */
    const sgt_symbol *symbols;
    /* advice on how to install the library; it is appended to the error if the library cannot be
     * loaded. NULL: none */
    const char *install;
    /* advice on which version is needed; it is appended to the error if the library lacks a
     * function. NULL: none */
    const char *version;
    /* function that checks the loaded library, for example its version, after the table has been
     * filled. If it returns an error, sgt_library_load fails with that error. NULL: no check */
    int (*ready)(void *library, sgt_error *err);
    pthread_mutex_t lock;
    int loaded;
} sgt_library;

/* Set additional folders in which libraries are searched after the system's own folders. `folders`
 * is a list separated by colons, or NULL for none. It is not copied and must stay valid. Call this
 * before threads start. */
void sgt_library_search(const char *folders);
const char *sgt_library_searched(void);

/* Call dlopen(name, flags), up to 10 times while it fails: a signal can interrupt dlopen, which may
 * then report a missing file. On failure, return NULL and store the last error, safe to print, in
 * the n bytes at `why`. */
void *sgt_library_open(const char *name, int flags, char *why, size_t n);

/* Load the library, unless this process has loaded it already. Any thread may call this. The
 * library stays loaded. On failure return SGT_EUNSUPPORTED or the error of l->ready; the next call
 * tries again. */
int sgt_library_load(sgt_library *l, sgt_error *err);

#endif
