/* memory.c: read free memory and its limits from the kernel's files; see memory.h. */
#include "loader/base/memory.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the number that follows `name` at the beginning of a line of the file `path`; name "": of
 * the first line. Return UINT64_MAX if there is no number, as for a control group without a limit,
 * whose file says "max". */
static uint64_t read_number(const char *path, const char *name)
{
    char line[256];
    uint64_t value = UINT64_MAX;
    size_t n = strlen(name);
    FILE *f = fopen(path, "re");
    if (!f) return UINT64_MAX;
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, name, n)) {
            char *end;
            uint64_t number = strtoull(line + n, &end, 10);
            if (end > line + n) value = number;
            break;
        }
    fclose(f);
    return value;
}

static uint64_t read_in(const char *folder, const char *file, const char *name)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return read_number(path, name);
}

/* Mount point and file names of control groups, which differ between cgroup versions 1 and 2. */
typedef struct names {
    const char *mount, *limits[2], *used, *inactive, *active;
} names;

static const names version1 = {"sys/fs/cgroup/memory",
                               {"memory.limit_in_bytes", "memory.limit_in_bytes"},
                               "memory.usage_in_bytes",
                               "total_inactive_file ",
                               "total_active_file "};
static const names version2 = {"sys/fs/cgroup",
                               {"memory.max", "memory.high"},
                               "memory.current",
                               "inactive_file ",
                               "active_file "};

/* Return how many more bytes the control group in `folder` may take before it reaches a limit. Its
 * page cache counts as free, because the kernel reclaims it. */
static uint64_t room_in(const char *folder, const names *v)
{
    uint64_t limit = UINT64_MAX, used = read_in(folder, v->used, "");
    for (int i = 0; i < 2; i++) {
        uint64_t l = read_in(folder, v->limits[i], "");
        if (l < limit) limit = l;
    }
    if (limit == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
    uint64_t inactive = read_in(folder, "memory.stat", v->inactive);
    uint64_t active = read_in(folder, "memory.stat", v->active);
    uint64_t cache = (inactive == UINT64_MAX ? 0 : inactive) + (active == UINT64_MAX ? 0 : active);
    used -= cache < used ? cache : used;
    return used < limit ? limit - used : 0;
}

/* Return the smallest room of a control group and of all groups above it, up to the mount point.
 * Missing files set no bound: a container may see its own group as the mount point. */
static uint64_t room_along(const char *root, const char *group, const names *v)
{
    char folder[PATH_MAX];
    uint64_t least = UINT64_MAX;
    size_t mount = (size_t)snprintf(folder, sizeof folder, "%s/%s", root, v->mount);
    size_t n = strlen(group);
    if (mount + n >= sizeof folder) return UINT64_MAX;
    memcpy(folder + mount, group, n + 1);
    for (;;) {
        uint64_t room = room_in(folder, v);
        if (room < least) least = room;
        char *slash = strrchr(folder + mount, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

/* Return the smallest room of this process's control groups. /proc/self/cgroup has the line
 * "0::/path" for version 2 and "4:memory:/path" (or "4:cpu,memory:/path") for version 1. */
static uint64_t room_in_groups(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    uint64_t least = UINT64_MAX;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f) return UINT64_MAX;
    while (fgets(line, sizeof line, f)) {
        char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (!strcmp(group, "/")) *group = 0;
        const names *v = !kinds[1] ? &version2 : strstr(kinds + 1, "memory") ? &version1 : NULL;
        uint64_t room = v ? room_along(root, group, v) : UINT64_MAX;
        if (room < least) least = room;
    }
    fclose(f);
    return least;
}

void sgt_memory_look(sgt_memory *m, const char *root)
{
    char path[PATH_MAX];
    if (!root) root = "";
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    uint64_t kib = read_number(path, "MemAvailable:"), group = room_in_groups(root);
    *m = (sgt_memory){kib > UINT64_MAX >> 10 ? UINT64_MAX : kib << 10, "this machine"};
    if (group < m->available) *m = (sgt_memory){group, "this process's control group (container)"};
}
