/* library.c: dlopen and dlsym. */
#include "loader/base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *folders; /* set once, before any library is loaded */

void sgt_library_search(const char *list) { folders = list; }

const char *sgt_library_searched(void) { return folders; }

enum { TRIES = 3, INTERRUPTED_TRIES = 100 };

void *sgt_library_open(const char *name, int flags, char *why, size_t n)
{
    for (int i = 1;; i++) {
        void *library = dlopen(name, flags);
        if (library) return library;
        const char *text = dlerror();
        sgt_printable(why, n, text ? text : name);
        /* dlopen does not always set errno */
        int interrupted = text && strstr(text, strerror(EINTR));
        if (i >= (interrupted ? INTERRUPTED_TRIES : TRIES)) return NULL;
    }
}

/* "NAME: cannot open shared object file: No such file or directory" means that the library is not
 * installed, not that it is damaged. */
static int absent(const char *name, const char *why)
{
    size_t n = strlen(name);
    return strncmp(why, name, n) == 0 && why[n] == ':' && strstr(why, "No such file");
}

/* Return the name of the first missing function, or NULL. */
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

/* Results of trying to load a candidate, from the worst to the best. If no candidate FITS, the
 * error of the best result is reported. */
enum { ABSENT, BROKEN, UNFIT, FITS };

/* Try to load `name`: a path, or a file name that dlopen searches for. Return ABSENT, BROKEN, UNFIT
 * or FITS. */
static int try_one(sgt_library *l, const char *name, sgt_error *err)
{
    char why[384];
    const char *missing;
    void *library = sgt_library_open(name, RTLD_NOW | RTLD_LOCAL, why, sizeof why);
    if (!library) {
        fail_with(l, why, l->install, err);
        return absent(name, why) ? ABSENT : BROKEN;
    }
    int rc = SGT_OK;
    if ((missing = find_symbols(l, library))) {
        snprintf(why, sizeof why, "%s has no function %s", name, missing);
        rc = fail_with(l, why, l->version, err);
    } else if (l->ready) rc = l->ready(library, err);
    if (rc < 0) dlclose(library);
    return rc < 0 ? UNFIT : FITS;
}

/* Build the path of `name` in the next folder of a list separated by colons, and move *at past that
 * folder. Return 0 if no folder is left whose path fits. */
static int in_next(char *path, size_t n, const char **at, const char *name)
{
    size_t folder = strcspn(*at, ":");
    int length = folder ? snprintf(path, n, "%.*s/%s", (int)folder, *at, name) : 0;
    *at += folder + ((*at)[folder] == ':');
    return length > 0 && (size_t)length < n;
}

/* Try each name by itself, so that dlopen searches for it, then in each of the folders. If none
 * fits, report the error of the first candidate with the best result. */
static int load(sgt_library *l, sgt_error *err)
{
    char path[4096];
    sgt_error why, first;
    int best = ABSENT, now = ABSENT;
    snprintf(path, sizeof path, "%s is not on this machine", l->names[0]);
    fail_with(l, path, l->install, &first);
    for (const char *const *name = l->names; *name && now != FITS; name++)
        if ((now = try_one(l, *name, &why)) > best) best = now, first = why;
    for (const char *const *name = l->names; *name && now != FITS; name++)
        for (const char *at = strchr(*name, '/') ? NULL : folders; at && *at && now != FITS;)
            if (in_next(path, sizeof path, &at, *name) && (now = try_one(l, path, &why)) > best)
                best = now, first = why;
    if (now != FITS && err) *err = first;
    return now == FITS ? SGT_OK : first.code;
}

int sgt_library_load(sgt_library *l, sgt_error *err)
{
    pthread_mutex_lock(&l->lock);
    int rc = l->loaded ? SGT_OK : load(l, err);
    l->loaded = rc == SGT_OK;
    pthread_mutex_unlock(&l->lock);
    return rc;
}
