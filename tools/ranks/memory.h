/* memory.h: memory that all ranks of one machine share: the share and unshare calls of
 * base/ranks.h. Rank 0 makes an anonymous file (memfd), which the other ranks open through /proc.
 * Nothing outlives the processes, and no limit on /dev/shm applies. */
#ifndef SGT_TOOLS_RANKS_MEMORY_H
#define SGT_TOOLS_RANKS_MEMORY_H

#include "loader/base/ranks.h"

/* Set r->share and r->unshare if all ranks can map the same page. Collective. */
int sgt_ranks_memory_join(sgt_ranks *r, sgt_error *err);

#endif
