/* memory.h: memory that all ranks of one machine share, for the functions share and unshare of
 * base/ranks.h. Rank 0 makes an anonymous file (memfd), which the other ranks open through /proc.
 * Nothing remains when the processes have ended, and no limit on /dev/shm applies. */
#ifndef SGT_TOOLS_RANKS_MEMORY_H
#define SGT_TOOLS_RANKS_MEMORY_H

#include "loader/base/ranks.h"

/* Set r->share and r->unshare, if all ranks can map the same page. All ranks must call this
 * together. */
int sgt_ranks_memory_join(sgt_ranks *r, sgt_error *err);

#endif
