/* library.c: load shared libraries with dlopen and dlsym. */
#include "loader/base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* additional folders in which libraries are searched for; set at most once, before any library is
 * loaded */
static const char *folders;

void sgt_library_search(const char *list) { folders = list; }

const char *sgt_library_searched(void) { return folders; }

#define TRIES 10

void *sgt_library_open(const char *name, int flags, char *why, size_t n)
{
    void *library = NULL;
    for (int i = 0; i < TRIES && !(library = dlopen(name, flags)); i++) {
        const char *text = dlerror();
        sgt_printable(why, n, text ? text : name);
    }
    return library;
}

/* Return 1 if `why`, the error message of dlopen, means that the library `name` is not installed,
 * as "NAME: cannot open shared object file: No such file or directory" does. Return 0 for any other
 * message, which means that the library exists but is damaged or unsuitable. */
static int absent(const char *name, const char *why)
{
    size_t n = strlen(name);
    return strncmp(why, name, n) == 0 && why[n] == ':' && strstr(why, "No such file");
}

/* Store the addresses of the functions of the open library `library` in the table that l->symbols
 * describes. Return the name of the first function that is missing, or NULL if none is missing. */
static const char *find_symbols(const sgt_library *l, void *library)
{
    for (const sgt_symbol *s = l->symbols; s->name; s++) {
        void *found = dlsym(library, s->name);
        if (!found) return s->name;
        memcpy(s->to, &found, sizeof found);
    }
    return NULL;
}

static int fail_with(const sgt_library *l, const char *text, const char *advice, sgt_error *err)
{
    if (!advice) return sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s", l->what, text);
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s: %s (%s)", l->what, text, advice);
}

/* Try to load the library `name`, which is a path, or a file name for which dlopen searches. Return
 * 1 if it was loaded and is usable, otherwise 0. If the file exists but is not usable, store the
 * error in *first, unless *first already holds the error of a file that was tried earlier. */
static int fits(sgt_library *l, const char *name, sgt_error *first)
{
    char why[384];
    const char *missing;
    sgt_error said;
    void *library = sgt_library_open(name, RTLD_NOW | RTLD_LOCAL, why, sizeof why);
    if (!library) {
        if (absent(name, why)) return 0;
        fail_with(l, why, l->install, &said);
    } else if ((missing = find_symbols(l, library))) {
        snprintf(why, sizeof why, "%s has no function %s", name, missing);
        fail_with(l, why, l->version, &said);
    } else if (!l->ready || l->ready(library, &said) == SGT_OK) return 1;
    if (library) dlclose(library);
    if (!first->code) *first = said;
    return 0;
}

/* Write into the n bytes at `path` the path of `name` in the first folder of *at, a list of folders
 * separated by colons, and remove that folder from the list by advancing *at. Return 1, or 0 if the
 * folder's name is empty or the path is too long. */
static int in_next(char *path, size_t n, const char **at, const char *name)
{
    size_t folder = strcspn(*at, ":");
    int length = folder ? snprintf(path, n, "%.*s/%s", (int)folder, *at, name) : 0;
    *at += folder + ((*at)[folder] == ':');
    return length > 0 && (size_t)length < n;
}

/* Try to load the library by each of its names, first without a folder, so that dlopen searches the
 * system's folders, and afterwards in each of the additional folders (`folders`). If all attempts
 * fail, report the error of the first file that exists. */
static int load(sgt_library *l, sgt_error *err)
{
    char path[4096];
    sgt_error first = {0};
    for (const char *const *name = l->names; *name; name++)
        if (fits(l, *name, &first)) return SGT_OK;
    for (const char *const *name = l->names; *name; name++)
        for (const char *at = strchr(*name, '/') ? NULL : folders; at && *at;)
            if (in_next(path, sizeof path, &at, *name) && fits(l, path, &first)) return SGT_OK;
    snprintf(path, sizeof path, "%s was not found", l->names[0]);
    if (!first.code) fail_with(l, path, l->install, &first);
    if (err) *err = first;
    return first.code;
}

int sgt_library_load(sgt_library *l, sgt_error *err)
{
    pthread_mutex_lock(&l->lock);
    int rc = l->loaded ? SGT_OK : load(l, err);
    l->loaded = rc == SGT_OK;
    pthread_mutex_unlock(&l->lock);
    return rc;
}
