/* map_ahead.h: map the pages of a set that are in the page cache, before windows touch them. The
 * first access to a page is a fault, even if the page is cached. An epoch touches each page for the
 * first time once, so faults would take most of its time.
 *
 *     sgt_map_ahead *m = sgt_map_ahead_new(set, maps);
 *     sgt_map_ahead_begin(m);      // before the first batch; later calls do nothing
 *     sgt_map_ahead_free(m);       // before the maps are removed
 *
 * Nothing is read from the disk, and no memory is taken but page tables: .2 % of the set. It only
 * saves time: if it cannot be done, faults map the pages. */
#ifndef SGT_MAP_AHEAD_H
#define SGT_MAP_AHEAD_H

#include "loader/read/guard.h"
#include "loader/read/reader.h"

typedef struct sgt_map_ahead sgt_map_ahead;

/* Returns NULL if out of memory. The set and the maps must outlive it. */
sgt_map_ahead *sgt_map_ahead_new(const sgt_set *set, const sgt_guarded *maps);

/* Map what is cached, on the calling thread and on others. It returns after at most a quarter of a
 * second; the other threads then go on with the rest of a large set. Any thread may call it. Does
 * nothing if the set is larger than the available memory, before Linux 5.14, or if the kernel does
 * not say which pages are cached (resident.h). */
void sgt_map_ahead_begin(sgt_map_ahead *m);

/* Stop and free; NULL is fine. */
void sgt_map_ahead_free(sgt_map_ahead *m);

/* Return how many bytes have been mapped so far; and whether that is the whole set. */
uint64_t sgt_map_ahead_bytes(const sgt_map_ahead *m);
int sgt_map_ahead_all(const sgt_map_ahead *m);

#endif
