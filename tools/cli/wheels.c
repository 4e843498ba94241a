/* wheels.c: implements wheels.h. */
#include "tools/cli/wheels.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/library.h"

#define PACKAGES "/lib/python3*/site-packages"

/* Append the folders ROOT/PACKAGES/nvidia/NAME/lib that exist to *list, each only once. Set *list
 * to NULL if memory runs out. */
static void add(char **list, const char *root, const char *packages)
{
    char pattern[PATH_MAX];
    glob_t found;
    if (!*list || !root || *root != '/' || strpbrk(root, "*?[\\:")) return;
    if ((size_t)snprintf(pattern, sizeof pattern, "%s%s/nvidia/*/lib", root, packages) >=
        sizeof pattern)
        return;
    if (glob(pattern, 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc && *list; i++) {
        size_t n = strlen(*list), m = strlen(found.gl_pathv[i]);
        if (strstr(*list, found.gl_pathv[i]) || strchr(found.gl_pathv[i], ':')) continue;
        char *longer = realloc(*list, n + m + 2);
        if (longer) snprintf(longer + n, m + 2, "%s%s", n ? ":" : "", found.gl_pathv[i]);
        else free(*list);
        *list = longer;
    }
    globfree(&found);
}

/* Add the prefix in which the program `file` is installed: /usr for /usr/bin/python3. Overwrites
 * `file`. */
static void add_prefix_of(char **list, char *file)
{
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(file, '/');
        if (!slash) return;
        *slash = '\0';
    }
    add(list, file, PACKAGES);
}

/* Add the prefix of this program: a virtual environment, if pip installed it there. */
static void add_own_prefix(char **list)
{
    char file[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", file, sizeof file - 1);
    if (n < 0) return;
    file[n] = '\0';
    add_prefix_of(list, file);
}

/* Add the prefixes of the python3 in PATH: of its name there (in a virtual environment's bin) and
 * of the file that this links to. */
static void add_python_of_path(char **list)
{
    char file[PATH_MAX], real[PATH_MAX];
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/python3", (int)n, at);
        at += n + (at[n] == ':');
        if (*file != '/' || access(file, X_OK) < 0) continue;
        int behind = realpath(file, real) != NULL;
        add_prefix_of(list, file);
        if (behind) add_prefix_of(list, real);
        return;
    }
}

char *sgt_wheel_folders(void)
{
    char *list = strdup("");
    add(&list, getenv("VIRTUAL_ENV"), PACKAGES);
    add(&list, getenv("CONDA_PREFIX"), PACKAGES);
    add_own_prefix(&list);
    add_python_of_path(&list);
    add(&list, getenv("HOME"), "/.local" PACKAGES);
    add(&list, "/usr/local", "/lib/python3*/dist-packages");
    add(&list, "/usr", "/lib/python3/dist-packages");
    return list;
}

void sgt_search_wheels(void)
{
    static char *list;
    if (!list) sgt_library_search(list = sgt_wheel_folders());
}
