/* library.h: libraries that are looked for when they are first needed, and a table of their
 * functions.
 *
 *     static struct { int (*get_version)(int *); ... } table;
 *     static const char *const names[] = {"libnccl.so.2", NULL};
 *     static const sgt_symbol symbols[] = {{"ncclGetVersion", &table.get_version}, ..., {NULL, NULL}};
 *     static sgt_library nccl = {.what = "NCCL", .names = names, .symbols = symbols,
 *                                .lock = PTHREAD_MUTEX_INITIALIZER};
 *
 *     if ((rc = sgt_library_load(&nccl, err)) < 0) return rc;    // from here on the table is filled and never changes */
#ifndef SGT_BASE_LIBRARY_H
#define SGT_BASE_LIBRARY_H

#include <pthread.h>
#include <stddef.h>

#include "loader/base/error.h"

typedef struct sgt_symbol {
    const char *name;
    void *to; /* a member of the table: a pointer to a function, which POSIX lets a void * hold */
} sgt_symbol;

typedef struct sgt_library {
    const char *what;          /* what errors begin with: "NCCL, which several ranks need" */
    const char *const *names;  /* the first that can be loaded is taken; ended by NULL */
    const sgt_symbol *symbols; /* ended by one without a name */
    const char *install;       /* what to do where none can be loaded, and ... */
    const char *version;       /* ... where a function is missing; NULL: nothing is said */
    /* what else is done once, the table filled; NULL: nothing */
    int (*ready)(void *library, sgt_error *err);
    pthread_mutex_t lock;
    int loaded;
    /* of a load that failed: one of the names is on this machine, but cannot be loaded */
    int broken;
} sgt_library;

/* Folders, with colons between, where names without a folder are looked for once the system has
 * none that fits: as a program starts, before other threads. The text stays the caller's and is not
 * freed; NULL: none. */
void sgt_library_search(const char *folders);
const char *sgt_library_searched(void);

/* dlopen(name, flags), which is tried again when it fails: a signal may interrupt it anywhere, and
 * it may then say that there is no such file. NULL: `why` (n bytes) says what was wrong the last
 * time, printable. */
void *sgt_library_open(const char *name, int flags, char *why, size_t n);

/* Once per process, by any thread: the library stays loaded. Where that fails, with
 * SGT_EUNSUPPORTED or what `ready` gave, the next call tries again. */
int sgt_library_load(sgt_library *l, sgt_error *err);

/* Whether it has been. */
int sgt_library_loaded(sgt_library *l);

#endif
