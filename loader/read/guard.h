/* guard.h: maps of files under the one SIGBUS handler that sgt_loader_guard_sigbus (sgt_loader.h)
 * installs. A page that the kernel cannot bring in, since the file was cut short or the disk
 * failed, is the death of a program that reads it. Under the guard such a read finds zeros, and the
 * map is marked as torn: whoever read from it asks afterwards.
 *
 *     sgt_guarded *g = sgt_guard_new(count);      // maps of size 0: nothing is theirs
 *     g->maps[i] = (sgt_guard_map){base, size};   // all before the first is read
 *     sgt_guard_add(g);                           // from here on the handler knows them
 *     ... read ...; if (g->torn && g->maps[i].torn) -> what was read from maps[i] is not to be trusted
 *     sgt_guard_remove(g);                        // nobody reads from them any more: now unmap them, and free(g)
 *
 * Any thread may call these, also while others fault. Without the handler they do no harm and no
 * good. */
#ifndef SGT_GUARD_H
#define SGT_GUARD_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_guard_map {
    char *base;
    size_t size;
    uint64_t torn; /* atomic: 0, or 1 + the first byte of those that could not be read */
} sgt_guard_map;

typedef struct sgt_guarded {
    int torn; /* atomic: one of the maps is */
    uint32_t count;
    sgt_guard_map maps[];
} sgt_guarded;

sgt_guarded *sgt_guard_new(uint32_t count); /* by malloc; NULL: out of memory */
int sgt_guard_add(sgt_guarded *g);          /* 0, or -1: out of memory */
void sgt_guard_remove(sgt_guarded *g);      /* one that was not added is fine */

/* Marks a map, as the handler does: for those who find out by other means. Safe in a signal
 * handler. */
void sgt_guard_tear(sgt_guarded *g, uint32_t map, uint64_t at);

#endif
