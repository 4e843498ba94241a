/* scratch.h: where tests make their temporary folders and files. */
#ifndef SGT_TESTS_SCRATCH_H
#define SGT_TESTS_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_SIZE 128 /* bytes of a path, its NUL included */

/* Write a template for mkdtemp or mkstemp into path: "ABOVE/sgt-NAME.XXXXXX", where ABOVE is
 * TMPDIR, or `above` if TMPDIR is not set. Return path, or NULL if it does not fit. */
static inline char *scratch_template(char path[SCRATCH_SIZE], const char *above, const char *name)
{
    const char *set = getenv("TMPDIR");
    int n = snprintf(path, SCRATCH_SIZE, "%s/sgt-%s.XXXXXX", set ? set : above, name);
    return n < SCRATCH_SIZE ? path : NULL;
}

/* Make a folder of that name. Return path, or NULL if that fails. */
static inline char *scratch_folder(char path[SCRATCH_SIZE], const char *above, const char *name)
{
    return scratch_template(path, above, name) ? mkdtemp(path) : NULL;
}

/* Return how many names a folder has, besides . and .. */
static inline unsigned count_names(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    if (d) closedir(d);
    return n;
}

#endif
