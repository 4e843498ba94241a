/* library.h: libraries that are looked for when they are needed, and a table of their functions.
 *
 *     static const char *const names[] = {"libnccl.so.2"};
 *     char why[256];
 *     void *library = sgt_library_open(names, 1, why, sizeof why);
 *     if (!library) return sgt_fail(err, SGT_EUNSUPPORTED, "NCCL: %s", why);
 *     const sgt_symbol symbols[] = {{"ncclGetVersion", &table.version}, ...};
 *     const char *missing = sgt_library_look_up(library, symbols, sizeof symbols / sizeof *symbols);
 *
 * Any thread. Close with dlclose, or keep it for good. */
#ifndef SGT_BASE_LIBRARY_H
#define SGT_BASE_LIBRARY_H

#include <stddef.h>

typedef struct sgt_symbol {
    const char *name;
    void *to; /* a member of the table: a pointer to a function, which POSIX lets a void * hold */
} sgt_symbol;

/* The first of `names` that can be loaded; NULL: none, and `why`, one printable line, is what the first one lacks. */
void *sgt_library_open(const char *const *names, size_t count, char *why, size_t n);

/* Fills in every symbol; the name of the first that is missing, or NULL. */
const char *sgt_library_look_up(void *library, const sgt_symbol *symbols, size_t count);

#endif
