/* memory.h: how much more memory this process can allocate before it swaps or is killed, as the
 * machine and its control groups (containers, batch systems) report; blocks of memory in huge pages
 * (arenas); and arrays that grow.
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
    /* bytes that are free, or page cache that the kernel can reclaim; UINT64_MAX: unknown */
    uint64_t available;
    /* total bytes of memory of the machine or group named by `limit`; UINT64_MAX: unknown */
    uint64_t total;
    /* what limits `available`: "this machine" or "this process's control group (container)" */
    const char *limit;
} sgt_memory;

/* Read ROOT/proc and ROOT/sys/fs/cgroup; root NULL means /. The result is the smallest of
 * MemAvailable and the room in each control group, from this process's up to the topmost. That is
 * the room below memory.max and memory.high (version 2) or memory.limit_in_bytes (version 1), where
 * the page cache counts as free. A file that cannot be read sets no bound. */
void sgt_memory_look(sgt_memory *m, const char *root);

/* Return the resident anonymous memory, in bytes, of this process and the other children of its
 * parent, such as the ranks that one launcher started or the workers of one process. A shared page
 * counts once for each process. Reads ROOT/proc. Returns UINT64_MAX if the number is unknown, or if
 * there are fewer than `least` such processes. */
uint64_t sgt_memory_of_siblings(uint32_t least, const char *root);

/* Return how many CPUs this process's control groups let it use, rounded up; UINT64_MAX: no limit.
 * It is the lowest quota of the groups that sgt_memory_look reads, from cpu.max (version 2) or
 * cpu.cfs_quota_us (version 1). */
uint64_t sgt_group_cpus(const char *root);

/* ---- arenas ----
 *
 * An arena is one block of memory in huge pages. Parts of it are handed out one after another, and
 * the block is freed as a whole.
 *
 *     sgt_arena a = {0};                       // base NULL: counts only
 *     lay_out(&a, model);                      // every sgt_arena_take adds to a.used
 *     if (sgt_arena_map(&a, a.used, &err) < 0) ...;
 *     lay_out(&a, model);                      // the same calls again, now with memory behind them
 *
 * The caller's lay_out runs twice: the first run only measures, and the second hands out memory. So
 * the mapped size always matches the use. */

#define SGT_ARENA_ALIGN 64               /* bytes: a cache line and an AVX-512 vector */
#define SGT_ARENA_PAGE ((size_t)2 << 20) /* maps are rounded up to this: a huge page of x86-64 */

typedef struct sgt_arena {
    char *base;  /* 2 MiB-aligned, zeroed; NULL while measuring */
    size_t size; /* bytes mapped */
    size_t used; /* bytes handed out; while measuring, bytes needed so far */
} sgt_arena;

/* Map `size` zeroed bytes, advise huge pages if they fill one, and start handing out from byte 0.
 * If `prefault` is set, fault in every page now. */
int sgt_arena_map(sgt_arena *a, size_t size, int prefault, sgt_error *err);

/* Hand out `count` items of `size` bytes, aligned to SGT_ARENA_ALIGN. Returns NULL while measuring.
 * Asserts that the mapped size suffices. */
void *sgt_arena_take(sgt_arena *a, size_t count, size_t size);

/* Free all of it. An arena that is zeroed or not mapped is fine. */
void sgt_arena_unmap(sgt_arena *a);

/* ---- arrays ---- */

/* Make room for `count` elements of `size` bytes in a malloc'd array. `array` is the address of the
 * pointer to it (which is NULL before the first call), and *room is the number of elements that
 * fit. If the array grows, its room at least doubles. Returns 0, or SGT_ENOMEM with `what` in the
 * message; the array is then unchanged. */
int sgt_reserve(void *array, size_t *room, size_t count, size_t size, const char *what,
                sgt_error *err);

/* ---- structs whose first field, a size_t, is their size ---- */

/* Copy a caller's struct `from`, whose type is called `name` in messages, into `to` of `known`
 * bytes. Fields that the caller's version lacks become 0 in `to`. Returns SGT_EUSAGE if its size is
 * impossible, or if a field beyond `known` is not 0. */
int sgt_struct_read(void *to, size_t known, const void *from, const char *name, sgt_error *err);
/* Copy `from`, of `known` bytes, into a caller's struct that sgt_struct_read has accepted. Copies
 * only the fields that the caller's version has, and leaves its size unchanged. */
void sgt_struct_write(void *to, const void *from, size_t known);

#ifdef __cplusplus
}
#endif
#endif
