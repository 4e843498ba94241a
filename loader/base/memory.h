/* memory.h: how much memory may still be taken, by what the machine and the control groups
 * (containers, batch systems) say: what is taken beyond that is swapped, or ends the process.
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
    /* bytes: free, or given back for the asking (page cache); UINT64_MAX: nobody says */
    uint64_t available;
    /* what sets that bound: "this machine" or "this process's control group (container)" */
    const char *limit;
} sgt_memory;

/* Reads ROOT/proc and ROOT/sys/fs/cgroup; root NULL is the machine's own. MemAvailable, and of each
 * control group from this process's up to the topmost the room below memory.max and memory.high
 * (version 2) or memory.limit_in_bytes (version 1), to which its page cache counts. What cannot be
 * read bounds nothing. */
void sgt_memory_look(sgt_memory *m, const char *root);

#ifdef __cplusplus
}
#endif
#endif
