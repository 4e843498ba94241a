/* memory.c: find out how much memory is free, from files of the kernel and the limits of cgroups;
 * and map arenas. An arena is a single mapping, aligned to 2 MiB so that the kernel can use huge
 * pages. A huge page needs one page fault and one TLB entry, where 4-KiB pages need 512 of each. */
#include "loader/base/memory.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* maximum size in bytes of a struct that a caller may pass to sgt_struct_read */
#define SGT_STRUCT_MOST 4096

/* Return the number that follows `name` in the first line of the file folder/file that begins with
 * `name`. ("" stands for the beginning of the first line.) Return UINT64_MAX if there is no such
 * number. For example, the file of a cgroup without a memory limit contains the word "max". */
static uint64_t read_in(const char *folder, const char *file, const char *name)
{
    char path[2 * PATH_MAX], line[256];
    uint64_t value = UINT64_MAX;
    size_t n = strlen(name);
    snprintf(path, sizeof path, "%s/%s", folder, file);
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

/* The lowest limits among this process's cgroups; UINT64_MAX means no limit. */
typedef struct limits {
    /* Limits of the cgroup in which the least memory can still be allocated. room: number of bytes
     * that can still be allocated in this cgroup; memory: its total memory limit in bytes */
    uint64_t room, memory;
    uint64_t cpus;
} limits;

/* Store the room and the memory limit of the cgroup in `folder` in *least if its room is less than
 * least->room. The room is the number of bytes that can still be allocated in the cgroup. It
 * includes the cgroup's page cache, because the kernel can reclaim that. cgroup v1 and v2 have
 * different names for the files. In v1, lines that begin with total_ include the descendants of the
 * cgroup. */
static void note_room(limits *least, const char *folder)
{
    static const char *const files[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    static const char *const totals[] = {"total_inactive_file ", "total_active_file "};
    uint64_t limit = UINT64_MAX, used = read_in(folder, "memory.current", ""), cache = 0;
    if (used == UINT64_MAX) used = read_in(folder, "memory.usage_in_bytes", "");
    for (int i = 0; i < 3; i++) {
        uint64_t l = read_in(folder, files[i], "");
        if (l < limit) limit = l;
    }
    if (limit == UINT64_MAX || used == UINT64_MAX) return;
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = read_in(folder, "memory.stat", totals[i]);
        if (bytes == UINT64_MAX)
            bytes = read_in(folder, "memory.stat", totals[i] + strlen("total_"));
        if (bytes != UINT64_MAX) cache += bytes;
    }
    used -= cache < used ? cache : used;
    uint64_t room = used < limit ? limit - used : 0;
    if (room >= least->room) return;
    least->room = room;
    least->memory = limit;
}

/* Lower least->cpus to the number of CPUs that the cgroup in `folder` may use, if that is less.
 * This number is the cgroup's quota divided by its period (both in microseconds), rounded up.
 * cgroup v2 has both numbers in one line, such as "150000 100000". cgroup v1 has a file for each,
 * and a quota of -1 means no limit. */
static void note_cpus(limits *least, const char *folder)
{
    char quota_first[32];
    uint64_t quota = read_in(folder, "cpu.max", "");
    snprintf(quota_first, sizeof quota_first, "%" PRIu64 " ", quota);
    uint64_t period = read_in(folder, "cpu.max", quota_first);
    if (quota == UINT64_MAX) {
        quota = read_in(folder, "cpu.cfs_quota_us", "");
        period = read_in(folder, "cpu.cfs_period_us", "");
    }
    if (quota == UINT64_MAX || period == UINT64_MAX || !period) return;
    uint64_t cpus = quota / period + (quota % period > 0);
    if (cpus < least->cpus) least->cpus = cpus;
}

/* Return the lowest limits among this process's cgroups and all their ancestors, up to the mount
 * point. /proc/self/cgroup lists the cgroups: for cgroup v2 in the line "0::/path", and for v1 in
 * one line per mount point, such as "4:memory:/path" or "4:cpu,cpuacct:/path". A cgroup whose files
 * are missing sets no limit. This happens in a container, where the path may not exist below the
 * mount point, because the mount point is the container's own cgroup. */
static limits read_limits(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX], folder[2 * PATH_MAX];
    limits least = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *kinds = strchr(line, ':'), *group = kinds ? strchr(++kinds, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        for (const char *kind; (kind = strsep(&kinds, ","));) {
            snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/%s%.*s", root, kind,
                     (int)strcspn(group, "\n"), group);
            const size_t mount = strlen(folder) - strcspn(group, "\n");
            for (char *end = folder + strlen(folder); end; end = strrchr(folder + mount, '/')) {
                *end = 0;
                note_room(&least, folder);
                note_cpus(&least, folder);
            }
        }
    }
    if (f) fclose(f);
    return least;
}

uint64_t sgt_group_cpus(const char *root) { return read_limits(root ? root : "").cpus; }

void sgt_memory_look(sgt_memory *m, const char *root)
{
    if (!root) root = "";
    uint64_t free_kib = read_in(root, "proc/meminfo", "MemAvailable:"),
             kib = read_in(root, "proc/meminfo", "MemTotal:");
    const limits group = read_limits(root);
    *m = (sgt_memory){free_kib > UINT64_MAX >> 10 ? UINT64_MAX : free_kib << 10,
                      kib > UINT64_MAX >> 10 ? UINT64_MAX : kib << 10, "this machine"};
    if (group.room < m->available)
        *m = (sgt_memory){group.room, group.memory, "this process's control group (container)"};
}

uint64_t sgt_memory_of_siblings(uint32_t least, const char *root)
{
    char path[PATH_MAX];
    uint64_t parent, kib, sum = 0;
    uint32_t count = 0;
    snprintf(path, sizeof path, "%s/proc", root ? root : "");
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        /* skip entries that are not process ids, such as "self", through which this process would
         * be counted twice */
        if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "%s/proc/%s", root ? root : "", e->d_name);
        parent = read_in(path, "status", "PPid:");
        kib = parent == (uint64_t)getppid() ? read_in(path, "status", "RssAnon:") : UINT64_MAX;
        if (kib == UINT64_MAX) continue;
        sum += kib << 10;
        count++;
    }
    if (d) closedir(d);
    return count < least ? UINT64_MAX : sum;
}

/* ---- arenas ---- */

#define HUGE SGT_ARENA_PAGE

int sgt_arena_map(sgt_arena *a, size_t size, int prefault, sgt_error *err)
{
    if (size > SIZE_MAX - 2 * HUGE)
        return sgt_fail(err, SGT_ENOMEM,
                        "cannot allocate %zu bytes: more than this machine can address", size);
    size_t rounded = (size + HUGE - 1) / HUGE * HUGE;
    if (!rounded) rounded = HUGE;
    /* The kernel aligns a mapping only to 4 KiB. Therefore, map 2 MiB more than needed, and unmap
     * what lies before and after the aligned range. */
    char *p = mmap(NULL, rounded + HUGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return sgt_fail_errno(err, "cannot allocate %zu MiB of memory", rounded >> 20);
    size_t head = (HUGE - ((uintptr_t)p & (HUGE - 1))) & (HUGE - 1);
    if (head) munmap(p, head);
    if (HUGE - head) munmap(p + head + rounded, HUGE - head);
    p += head;
    /* If the kernel refuses huge pages, the memory has pages of 4 KiB, which are slower but work.
     * Do not ask for huge pages if `size` is below 2 MiB, because io_uring would count an entire
     * huge page against the user's limit of locked memory, which is often only 8 MiB. */
    if (size >= HUGE) (void)madvise(p, rounded, MADV_HUGEPAGE);
    if (prefault)
        for (size_t i = 0; i < rounded; i += 4096) ((volatile char *)p)[i] = 0;
    *a = (sgt_arena){p, rounded, 0};
    return SGT_OK;
}

void *sgt_arena_take(sgt_arena *a, size_t count, size_t size)
{
    assert(!size || count <= (SIZE_MAX - SGT_ARENA_ALIGN) / size);
    size_t bytes = (count * size + SGT_ARENA_ALIGN - 1) / SGT_ARENA_ALIGN * SGT_ARENA_ALIGN;
    size_t at = a->used;
    assert(bytes <= SIZE_MAX - at);
    a->used = at + bytes;
    if (!a->base) return NULL;
    assert(a->used <= a->size);
    return a->base + at;
}

void sgt_arena_unmap(sgt_arena *a)
{
    if (a->base) munmap(a->base, a->size);
    *a = (sgt_arena){0};
}

/* ---- arrays ---- */

int sgt_reserve(void *array, size_t *room, size_t count, size_t size, const char *what,
                sgt_error *err)
{
    typedef void *any_pointer __attribute__((may_alias));
    any_pointer *at = array;
    size_t more = count > 2 * *room ? count : 2 * *room;
    if (count <= *room) return SGT_OK;
    if (more < 16) more = 16;
    void *grown = reallocarray(*at, more, size);
    if (!grown) return sgt_fail_memory(err, what);
    *at = grown;
    *room = more;
    return SGT_OK;
}

/* ---- structs that begin with their size ---- */

int sgt_struct_read(void *to, size_t known, const void *from, const char *name, sgt_error *err)
{
    size_t size = 0;
    if (from) memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > SGT_STRUCT_MOST)
        return sgt_fail(err, SGT_EUSAGE, "%s.size is %zu: set it to sizeof(%s)", name, size, name);
    for (size_t i = known; i < size; i++)
        if (((const char *)from)[i])
            return sgt_fail(err, SGT_EUSAGE,
                            "%s: byte %zu is not 0, but this library supports only the first %zu "
                            "(it is older than its header: use the same version of both)",
                            name, i, known);
    memset(to, 0, known);
    memcpy(to, from, size < known ? size : known);
    return SGT_OK;
}

void sgt_struct_write(void *to, const void *from, size_t known)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size,
           (size < known ? size : known) - sizeof size);
}
