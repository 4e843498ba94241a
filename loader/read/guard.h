/* guard.h: maps of files under the one SIGBUS handler that sgt_loader_guard_sigbus (sgt_loader.h)
 * installs. If the kernel cannot load a page, because the file was cut short or the disk failed, a
 * program that reads it normally dies. Under the guard such a read finds zeros and the map is
 * marked as torn, which its readers check afterwards.
 *
 *     sgt_guarded *g = sgt_guard_new(count);      // maps of size 0: they own no addresses
 *     g->maps[i] = (sgt_guard_map){base, size};   // all of them before the first is read
 *     sgt_guard_add(g);                           // from here on the handler knows them
 *     ... read ...
 *     if (g->torn && g->maps[i].torn) ...         // what was read from maps[i] may be wrong
 *     sgt_guard_remove(g);                        // when nobody reads any more: unmap, free(g)
 *
 * Any thread may call these, even while other threads fault. Without the handler they have no
 * effect on what happens at a fault. */
#ifndef SGT_GUARD_H
#define SGT_GUARD_H

#include <stddef.h>
#include <stdint.h>

typedef struct sgt_guard_map {
    char *base;
    size_t size;
    uint64_t torn; /* atomic: 0, or 1 + the first byte that could not be read */
} sgt_guard_map;

typedef struct sgt_guarded {
    int torn; /* atomic: 1 if one of the maps is torn */
    uint32_t count;
    sgt_guard_map maps[];
} sgt_guarded;

sgt_guarded *sgt_guard_new(uint32_t count); /* returns malloc'd memory; NULL if out of memory */
int sgt_guard_add(sgt_guarded *g);          /* returns 0, or -1 if out of memory */
void sgt_guard_remove(sgt_guarded *g);      /* does nothing if g was never added */

/* Mark a map as torn, as the handler does, if the damage was found in another way. Safe in a signal
 * handler. */
void sgt_guard_tear(sgt_guarded *g, uint32_t map, uint64_t at);

#endif
