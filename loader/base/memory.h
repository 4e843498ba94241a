/* memory.h: find out how much memory this process can still allocate before it swaps or is killed;
 * map blocks of memory in huge pages (arenas); and grow arrays. The free memory is what the machine
 * and this process's control groups (containers, batch systems) report.
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
    /* memory in bytes that can still be allocated, including page cache that the kernel can
     * reclaim; UINT64_MAX: unknown */
    uint64_t available;
    /* total memory in bytes of the machine or control group that `limit` names; UINT64_MAX:
     * unknown */
    uint64_t total;
    /* name of the thing that limits `available`: "this machine" or "this process's control group
     * (container)" */
    const char *limit;
} sgt_memory;

/* Fill in *m. m->available is the lowest of these values:
 * - the machine's MemAvailable
 * - for this process's control group and each group above it: the group's limit minus its memory
 *   use, where page cache does not count as used
 *
 * The limit is the lower of memory.max and memory.high (version 2 of control groups), or
 * memory.limit_in_bytes (version 1). Files that cannot be read set no limit. `root` is the folder
 * that contains proc and sys/fs/cgroup; NULL: /. */
void sgt_memory_look(sgt_memory *m, const char *root);

/* Return the resident anonymous memory, in bytes, of this process and its siblings: all children of
 * its parent, such as the ranks that a launcher started. A page that several processes share counts
 * once for each process. Return UINT64_MAX if the memory of fewer than `least` children can be
 * read. `root` is the folder that contains proc; NULL: /. */
uint64_t sgt_memory_of_siblings(uint32_t least, const char *root);

/* Return the lowest CPU quota of this process's control groups, in CPUs, rounded up. Return
 * UINT64_MAX if there is no quota. Reads cpu.max (version 2 of control groups) or cpu.cfs_quota_us
 * (version 1). */
uint64_t sgt_group_cpus(const char *root);

/* ---- arenas ----
 *
 * An arena is one block of memory in huge pages. Its parts are handed out one after another, and
 * the entire block is freed at once. The caller's function, here lay_out, runs twice. The first run
 * only adds up the sizes, and the second run hands out memory. Because both runs make the same
 * calls, the mapped size is exactly the size that is needed.
 *
 *     sgt_arena a = {0};                       // base NULL: only count
 *     lay_out(&a, model);                      // each sgt_arena_take adds to a.used
 *     if (sgt_arena_map(&a, a.used, &err) < 0) ...;
 *     lay_out(&a, model);                      // the same calls now return memory */

#define SGT_ARENA_ALIGN 64 /* alignment in bytes: a cache line, and the size of an AVX-512 vector */
/* size of a huge page on x86-64; mappings are a multiple of this size */
#define SGT_ARENA_PAGE ((size_t)2 << 20)

typedef struct sgt_arena {
    /* beginning of the mapping, aligned to 2 MiB; NULL before sgt_arena_map, when sizes are only
     * added up */
    char *base;
    size_t size; /* bytes mapped */
    size_t used; /* bytes handed out; before sgt_arena_map, bytes needed so far */
} sgt_arena;

/* Map at least `size` zeroed bytes, from which sgt_arena_take then hands out memory. The kernel is
 * asked for huge pages if `size` is at least one huge page. If `prefault` is set, all pages are
 * faulted in now. */
int sgt_arena_map(sgt_arena *a, size_t size, int prefault, sgt_error *err);

/* Return memory for `count` items of `size` bytes, aligned to SGT_ARENA_ALIGN. Returns NULL if
 * nothing is mapped yet and sizes are only added up. Asserts that the mapping is large enough. */
void *sgt_arena_take(sgt_arena *a, size_t count, size_t size);

/* Unmap the arena's memory and zero *a. Does nothing if no memory is mapped. */
void sgt_arena_unmap(sgt_arena *a);

/* ---- arrays ---- */

/* Make room for `count` elements of `size` bytes in a malloc'd array. `array` is the address of a
 * pointer to the array; the pointer is NULL before the first call. *room is the number of elements
 * for which the array has memory; when it grows, it at least doubles. Returns 0 or SGT_ENOMEM.
 * `what` names the array in the message. On failure the array is unchanged. */
int sgt_reserve(void *array, size_t *room, size_t count, size_t size, const char *what,
                sgt_error *err);

/* ---- structs whose first field, a size_t, is their size ---- */

/* Copy the struct *from of a caller, which may have been compiled with an older or newer header,
 * into *to, which has `known` bytes. Fields that the caller's struct lacks become 0 in *to. Returns
 * SGT_EUSAGE if from->size is impossible, or if a byte beyond `known` is not 0. `name` is the name
 * of the struct's type in messages. */
int sgt_struct_read(void *to, size_t known, const void *from, const char *name, sgt_error *err);
/* Copy *from, which has `known` bytes, into *to, a caller's struct that sgt_struct_read has
 * accepted. Copies only the fields that the caller's struct has, and leaves to->size unchanged. */
void sgt_struct_write(void *to, const void *from, size_t known);

#ifdef __cplusplus
}
#endif
#endif
