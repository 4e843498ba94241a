/* memory.h: find out how much memory this process can still allocate before the machine swaps or
 * the process is killed; allocate memory in huge pages (arenas); and grow arrays. The free memory
 * is found from what the machine and this process's cgroups (used by containers and batch systems)
 * report.
 *
 *     sgt_memory m;
 *     sgt_memory_look(&m, NULL);
 *     if (bytes > m.available) printf("%s has too little memory\n", m.limit); */
#ifndef SGT_BASE_MEMORY_H
#define SGT_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_memory {
    /* bytes of memory that can still be allocated, including page cache that the kernel can
     * reclaim; UINT64_MAX: unknown */
    uint64_t available;
    /* bytes of memory that the machine has or, if `limit` names a control group, that the group may
     * use; UINT64_MAX: unknown */
    uint64_t total;
    /* what limits `available`: "this machine" or "this process's control group (container)" */
    const char *limit;
} sgt_memory;

/* Fill in *m. m->available is the lowest of these values:
 * - the machine's MemAvailable
 * - for this process's cgroup and each of its ancestors: the cgroup's memory limit minus its memory
 *   use, where page cache does not count as used
 *
 * The memory limit is the lower of memory.max and memory.high (cgroup v2), or memory.limit_in_bytes
 * (cgroup v1). A file that cannot be read sets no limit. `root` is the folder that contains proc
 * and sys/fs/cgroup; NULL means /. */
void sgt_memory_look(sgt_memory *m, const char *root);

/* Return the resident anonymous memory, in bytes, of all children of this process's parent, such as
 * the ranks that a launcher started. These include this process. A page that several processes
 * share is counted once for each of them. Return UINT64_MAX if the memory of fewer than `least`
 * children can be read. `root` is the folder that contains proc; NULL means /. */
uint64_t sgt_memory_of_siblings(uint32_t least, const char *root);

/* Return the lowest CPU quota among this process's cgroups, in CPUs, rounded up. Return UINT64_MAX
 * if there is no quota. The quota is read from cpu.max (cgroup v2) or cpu.cfs_quota_us (cgroup v1).
 * `root` is the folder that contains proc and sys/fs/cgroup; NULL means /. */
uint64_t sgt_group_cpus(const char *root);

/* ---- arenas ----
 *
 * An arena is a single block of memory in huge pages. sgt_arena_take returns consecutive ranges of
 * it, and the entire block is freed at once. A function of the caller, here lay_out, runs twice:
 * first to add up the sizes that it needs, and again to take memory. Because it makes the same
 * calls both times, the block has exactly the size that is needed.
 *
 *     sgt_arena a = {0};                       // base NULL: only count
 *     lay_out(&a, model);                      // each sgt_arena_take adds to a.used
 *     if (sgt_arena_map(&a, a.used, &err) < 0) ...;
 *     lay_out(&a, model);                      // the same calls now return memory */

#define SGT_ARENA_ALIGN 64 /* alignment in bytes: a cache line, and the size of an AVX-512 vector */
/* size in bytes of a huge page on x86-64; the size of an arena is a multiple of it */
#define SGT_ARENA_PAGE ((size_t)2 << 20)

typedef struct sgt_arena {
    /* first byte of the mapped memory, aligned to 2 MiB; NULL before sgt_arena_map, while
     * sgt_arena_take only adds up sizes */
    char *base;
    size_t size; /* bytes mapped */
    /* bytes that sgt_arena_take has returned or, before sgt_arena_map, the bytes needed so far */
    size_t used;
} sgt_arena;

/* Map at least `size` zeroed bytes, from which sgt_arena_take then takes memory. The kernel is
 * asked for huge pages if `size` is at least the size of a huge page. If `prefault` is nonzero, all
 * pages are faulted in during this call. */
int sgt_arena_map(sgt_arena *a, size_t size, int prefault, sgt_error *err);

/* Return memory for `count` items of `size` bytes each, aligned to SGT_ARENA_ALIGN. Returns NULL
 * before sgt_arena_map, when sizes are only added up. Asserts that the arena is large enough. */
void *sgt_arena_take(sgt_arena *a, size_t count, size_t size);

/* Unmap the arena's memory and zero *a. Does nothing if no memory is mapped. */
void sgt_arena_unmap(sgt_arena *a);

/* ---- arrays ---- */

/* Make room for `count` elements of `size` bytes each in a malloc'd array. `array` is the address
 * of the pointer to the array, which is NULL before the first call. *room is the number of elements
 * that fit into the allocated memory, and at least doubles when the array grows. Returns 0, or
 * SGT_ENOMEM with a message that begins with `what`. On failure the array is unchanged. */
int sgt_reserve(void *array, size_t *room, size_t count, size_t size, const char *what,
                sgt_error *err);

/* ---- structs that begin with their size ---- */

/* Copy the caller's struct *from into *to, which has `known` bytes. The struct begins with its
 * size, because the caller may have been compiled against an older or newer header. Fields that the
 * caller's struct lacks become 0 in *to. Returns SGT_EUSAGE if the size in *from is impossible, or
 * if a byte at offset `known` or above is not 0. Messages use `name`, the name of the struct's
 * type. */
int sgt_struct_read(void *to, size_t known, const void *from, const char *name, sgt_error *err);
/* Copy *from, which has `known` bytes, into *to, a caller's struct that sgt_struct_read has
 * accepted. Only fields that the caller's struct has are copied, and its size is left unchanged. */
void sgt_struct_write(void *to, const void *from, size_t known);

#ifdef __cplusplus
}
#endif
#endif
