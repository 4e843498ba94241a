/* nearby.c: finds runs with similar names when a run does not exist. */
#include "train/run/nearby.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"

enum { NAMED = 3 };

typedef struct nearby {
    const char *name;  /* last component of the requested path */
    char *best[NAMED]; /* malloc'd names of the most similar runs, the most similar first */
    size_t count;      /* number of runs found */
} nearby;

static size_t common(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n]) n++;
    return n;
}

/* Return whether a is more similar to the name than b: it shares a longer beginning with it, or as
 * long a one and comes first alphabetically. */
static int before(const nearby *n, const char *a, const char *b)
{
    size_t x = common(n->name, a), y = common(n->name, b);
    return x != y ? x > y : strcmp(a, b) < 0;
}

static void offer(nearby *n, const char *name)
{
    size_t at = 0;
    n->count++;
    while (at < NAMED && n->best[at] && !before(n, name, n->best[at])) at++;
    char *copy = at < NAMED ? strdup(name) : NULL;
    if (!copy) return;
    free(n->best[NAMED - 1]);
    for (size_t i = NAMED - 1; i > at; i--) n->best[i] = n->best[i - 1];
    n->best[at] = copy;
}

/* Return whether a folder is a run: it has `latest` or a checkpoint. */
static int is_run(const char *folder)
{
    char *latest = sgt_join(folder, "latest");
    int found = latest && access(latest, F_OK) == 0;
    DIR *d = found || !latest ? NULL : opendir(folder);
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = !strncmp(e->d_name, "step-", 5) && strlen(e->d_name) == 13 &&
                strspn(e->d_name + 5, "0123456789") == 8;
    if (d) closedir(d);
    free(latest);
    return found;
}

/* Offer every run in the folder `around`. Names are shown with `prefix` before them. */
static void look(nearby *n, const char *around, const char *prefix)
{
    DIR *d = opendir(around);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char *path =
            e->d_name[0] == '.' || !strcmp(e->d_name, n->name) ? NULL : sgt_join(around, e->d_name);
        if (path && is_run(path)) offer(n, e->d_name);
        free(path);
    }
    if (d) closedir(d);
    for (size_t i = 0; i < NAMED && *prefix; i++) {
        char *path = n->best[i] ? sgt_join(prefix, n->best[i]) : NULL;
        if (!path) continue;
        free(n->best[i]);
        n->best[i] = path;
    }
}

char *sgt_run_nearby(char *out, size_t size, const char *run)
{
    nearby n = {0};
    size_t length = strlen(run), at = 0;
    while (length > 1 && run[length - 1] == '/') length--;
    char *whole = strndup(run, length), *slash = whole ? strrchr(whole, '/') : NULL;
    out[0] = '\0';
    if (!whole) return out;
    n.name = slash ? slash + 1 : whole;
    if (slash) *slash = '\0';
    look(&n,
         !slash           ? "."
         : slash == whole ? "/"
                          : whole,
         !slash           ? ""
         : slash == whole ? "/"
                          : whole);
    size_t named = n.count < NAMED ? n.count : NAMED;
    for (size_t i = 0; i < named && n.best[i] && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s",
                               !i                                   ? ""
                               : i + 1 == named && n.count == named ? " and "
                                                                    : ", ",
                               n.best[i]);
    if (n.count > named && at < size)
        snprintf(out + at, size - at, " and %zu more", n.count - named);
    for (size_t i = 0; i < NAMED; i++) free(n.best[i]);
    free(whole);
    return out;
}
