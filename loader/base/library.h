/* library.h: load a library when it is first needed, and fill a table with its functions.
 *
 *     static struct { int (*get_version)(int *); ... } table;
 *     static const char *const names[] = {"libnccl.so.2", NULL};
 *     static const sgt_symbol symbols[] = {{"ncclGetVersion", &table.get_version}, ..., {0}};
 *     static sgt_library nccl = {.what = "NCCL", .names = names, .symbols = symbols,
 *                                .lock = PTHREAD_MUTEX_INITIALIZER};
 *
 *     // if this succeeds, the table is filled and never changes
 *     if ((rc = sgt_library_load(&nccl, err)) < 0) return rc; */
#ifndef SGT_BASE_LIBRARY_H
#define SGT_BASE_LIBRARY_H

#include <pthread.h>
#include <stddef.h>

#include "loader/base/error.h"

typedef struct sgt_symbol {
    const char *name;
    /* address of the function pointer to fill in; POSIX allows storing a function's address as a
     * void pointer */
    void *to;
} sgt_symbol;

typedef struct sgt_library {
    const char *what;          /* beginning of error messages: "NCCL, which several ranks need" */
    const char *const *names;  /* file names; the first that can be loaded is used; ended by NULL */
    const sgt_symbol *symbols; /* ended by an entry whose name is NULL */
    /* advice appended to the error if no library can be loaded; NULL: none */
    const char *install;
    /* advice appended to the error if the library lacks a function; NULL: none */
    const char *version;
    /* called after the table is filled, and may refuse the library with an error; NULL: no check */
    int (*ready)(void *library, sgt_error *err);
    pthread_mutex_t lock;
    int loaded;
} sgt_library;

/* Set the folders, separated by colons, in which libraries are searched after the system's own
 * folders. Call it before threads start. `folders` is not copied and must stay valid. NULL:
 * none. */
void sgt_library_search(const char *folders);
const char *sgt_library_searched(void);

/* Call dlopen(name, flags), and call it again if it fails: a signal can interrupt it, and it may
 * then report a missing file. On failure return NULL and store the last error in `why` (n bytes),
 * safe to print. */
void *sgt_library_open(const char *name, int flags, char *why, size_t n);

/* Load the library once per process; any thread may call it. The library stays loaded. Return
 * SGT_EUNSUPPORTED, or the error of `ready`, on failure; the next call then tries again. */
int sgt_library_load(sgt_library *l, sgt_error *err);

#endif
