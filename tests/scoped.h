/* scoped.h: objects that are closed at the end of the block that declares them.
 *
 *     SCOPED_POINTER(sgt_loader, sgt_loader_close)   once, beside the include of the type's header
 *     scoped(sgt_loader) *l = open_loader("d");      no call of sgt_loader_close
 *     scoped_memory char *text = malloc(n);          no call of free
 *
 * Set the pointer to NULL if the function that fills it may fail. What is declared last is closed first. */
#ifndef SGT_TESTS_SCOPED_H
#define SGT_TESTS_SCOPED_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define scoped(type) __attribute__((cleanup(scoped_##type))) type
#define scoped_memory __attribute__((cleanup(scoped_free)))
#define SCOPED_POINTER(type, close) \
    static inline void scoped_##type(type **p) { close(*p); }
#define SCOPED_STRUCT(type, free_parts) \
    static inline void scoped_##type(type *s) { free_parts(s); }

/* Free the memory that the pointer at `p`, of any type, points to. */
static inline void scoped_free(void *p)
{
    void *memory;
    memcpy(&memory, p, sizeof memory);
    free(memory);
}

static inline void scoped_DIR(DIR **d)
{
    if (*d) closedir(*d);
}

static inline void scoped_FILE(FILE **f)
{
    if (*f) fclose(*f);
}

#endif
