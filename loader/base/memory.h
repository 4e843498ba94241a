/* memory.h: how much more memory this process may take before it swaps or is killed, as the machine
 * and its control groups (containers, batch systems) report.
 *
 *     sgt_memory m;
 *     sgt_memory_look(&m, NULL);
 *     if (bytes > m.available) ... "%s", m.limit ... */
#ifndef SGT_BASE_MEMORY_H
#define SGT_BASE_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgt_memory {
    /* bytes: free, or page cache that the kernel reclaims; UINT64_MAX: unknown */
    uint64_t available;
    /* name of what sets the bound: "this machine" or "this process's control group (container)" */
    const char *limit;
} sgt_memory;

/* Read ROOT/proc and ROOT/sys/fs/cgroup; root NULL is the machine's own. The result is the least of
 * MemAvailable and the room in each control group, from this process's up to the topmost. That is
 * the room below memory.max and memory.high (version 2) or memory.limit_in_bytes (version 1), where
 * the page cache counts as free. A file that cannot be read sets no bound. */
void sgt_memory_look(sgt_memory *m, const char *root);

#ifdef __cplusplus
}
#endif
#endif
