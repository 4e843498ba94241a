/* library.c: dlopen and dlsym. */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TRIES = 3, INTERRUPTED_TRIES = 100 };

void *sgt_library_open(const char *name, int flags, char *why, size_t n)
{
    for (int i = 1;; i++) {
        void *library = dlopen(name, flags);
        if (library) return library;
        const char *text = dlerror();
        sgt_printable(why, n, text ? text : name);
        int interrupted = text && strstr(text, strerror(EINTR)); /* dlopen promises no errno */
        if (i >= (interrupted ? INTERRUPTED_TRIES : TRIES)) return NULL;
    }
}

/* "NAME: cannot open shared object file: No such file or directory": nothing is wrong with it, it is not there. */
static int absent(const char *name, const char *why)
{
    size_t n = strlen(name);
    return strncmp(why, name, n) == 0 && why[n] == ':' && strstr(why, "No such file");
}

/* The first that can be loaded, and its name; else `why`, printable: what is wrong with the first that is there, or
 * that none is. */
static void *open_first(sgt_library *l, const char **name, char *why, size_t n)
{
    char text[384];
    l->broken = 0;
    snprintf(why, n, "%s is not on this machine", l->names[0]);
    for (size_t i = 0; (*name = l->names[i]); i++) {
        void *library = sgt_library_open(*name, RTLD_NOW | RTLD_LOCAL, text, sizeof text);
        if (library) return library;
        if (!l->broken && !absent(*name, text)) {
            snprintf(why, n, "%s", text);
            l->broken = 1;
        }
    }
    return NULL;
}

/* The name of the first function that is missing, or NULL. */
static const char *look_up(const sgt_library *l, void *library)
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

static int load(sgt_library *l, sgt_error *err)
{
    char why[384];
    const char *name, *missing;
    void *library = open_first(l, &name, why, sizeof why);
    if (!library) return fail_with(l, why, l->install, err);
    int rc = SGT_OK;
    if ((missing = look_up(l, library))) {
        snprintf(why, sizeof why, "%s has no function %s", name, missing);
        rc = fail_with(l, why, l->version, err);
    } else if (l->ready) rc = l->ready(library, err);
    if (rc < 0) dlclose(library);
    return rc;
}

int sgt_library_load(sgt_library *l, sgt_error *err)
{
    pthread_mutex_lock(&l->lock);
    int rc = l->loaded ? SGT_OK : load(l, err);
    l->loaded = rc == SGT_OK;
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int sgt_library_loaded(sgt_library *l)
{
    pthread_mutex_lock(&l->lock);
    int loaded = l->loaded;
    pthread_mutex_unlock(&l->lock);
    return loaded;
}
