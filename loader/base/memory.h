/* memory.h: blocks of memory in huge pages (arenas) and arrays that grow, below; and how much more
 * memory this process may take before it swaps or is killed, as the machine and its control groups (containers, batch
 * systems) report.
 *
 *     sgt_memory m;
 *     sgt_memory_look(&m, NULL);
 *     if (bytes > m.available) ... "%s", m.limit ... */
#ifndef SGT_BASE_MEMORY_H
#define SGT_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_memory {
    /* bytes: free, or page cache that the kernel reclaims; UINT64_MAX: unknown */
    uint64_t available;
    uint64_t total; /* all the bytes of what sets that bound; UINT64_MAX: unknown */
    /* name of what sets the bound: "this machine" or "this process's control group (container)" */
    const char *limit;
} sgt_memory;

/* Read ROOT/proc and ROOT/sys/fs/cgroup; root NULL is the machine's own. The result is the least of
 * MemAvailable and the room in each control group, from this process's up to the topmost. That is
 * the room below memory.max and memory.high (version 2) or memory.limit_in_bytes (version 1), where
 * the page cache counts as free. A file that cannot be read sets no bound. */
void sgt_memory_look(sgt_memory *m, const char *root);

/* Return the bytes of memory that this process and the other children of its parent have filled, as
 * the ranks that a launcher starts and the workers of one process. Shared pages count in each. Reads
 * ROOT/proc; UINT64_MAX: unknown, or there are fewer than `least` of these processes. */
uint64_t sgt_memory_of_siblings(uint32_t least, const char *root);

/* Return how many CPUs this process's control groups let it use, rounded up; UINT64_MAX: no limit.
 * It is the least quota of the same groups: of cpu.max (version 2) or cpu.cfs_quota_us (version
 * 1). */
uint64_t sgt_group_cpus(const char *root);

/* ---- arenas ----
 *
 * One block of memory in huge pages, handed out piece by piece and freed as a whole.
 *
 *     sgt_arena a = {0};                       // base NULL: counts only
 *     lay_out(&a, model);                      // every sgt_arena_take adds to a.used
 *     if (sgt_arena_map(&a, a.used, &err) < 0) ...;
 *     lay_out(&a, model);                      // the same calls again, now with memory behind them
 *
 * The caller's lay_out runs twice: the first run measures, the second hands out. So the mapped size
 * always matches the use. */

#define SGT_ARENA_ALIGN 64               /* bytes: a cache line and an AVX-512 vector */
#define SGT_ARENA_PAGE ((size_t)2 << 20) /* maps are rounded up to this: a huge page of x86-64 */

typedef struct sgt_arena {
    char *base;  /* 2 MiB-aligned, zeroed; NULL while measuring */
    size_t size; /* bytes mapped */
    size_t used; /* bytes handed out; while measuring, bytes needed so far */
} sgt_arena;

/* Map `size` zeroed bytes, advise huge pages if they fill one, and start handing out from byte 0. If
 * `prefault` is set, fault in every page now. */
int sgt_arena_map(sgt_arena *a, size_t size, int prefault, sgt_error *err);

/* Hand out `count` items of `size` bytes, aligned to SGT_ARENA_ALIGN. Returns NULL while measuring.
 * Taking more than was mapped is a bug (assert). */
void *sgt_arena_take(sgt_arena *a, size_t count, size_t size);

/* Free all of it. An arena that is zeroed or not mapped is fine. */
void sgt_arena_unmap(sgt_arena *a);

/* ---- arrays ---- */

/* Make room for `count` elements of `size` bytes in the malloc'd array that *array points to (NULL:
 * none yet), which has room for *room. It grows to twice its room at least. Returns 0, or SGT_ENOMEM
 * with `what` in the message; the array is then as it was. */
int sgt_reserve(void *array, size_t *room, size_t count, size_t size, const char *what,
                sgt_error *err);

/* ---- structs whose first field, a size_t, is their size ---- */

/* Copy a caller's struct, `name`, into `to` of `known` bytes. Fields that the caller's lacks are 0 in
 * `to`. SGT_EUSAGE if its size is none, or if it has more fields that are not 0. */
int sgt_struct_read(void *to, size_t known, const void *from, const char *name, sgt_error *err);
/* Copy `from`, of `known` bytes, into a caller's struct that was read: all that it has but its size. */
void sgt_struct_write(void *to, const void *from, size_t known);

#ifdef __cplusplus
}
#endif
#endif
