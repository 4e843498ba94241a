/* ranks_memory.h: memory that the ranks of one machine see, behind share and unshare of train/ranks.h: an anonymous
 * file of rank 0's, which the others open by its number in /proc. Nothing of it outlives the processes, and no limit on
 * /dev/shm is asked. */
#ifndef SGT_CLI_RANKS_MEMORY_H
#define SGT_CLI_RANKS_MEMORY_H

#include "train/ranks.h"

/* Gives r these two calls where all ranks have found such memory, a page of it, to be theirs. Made by every rank. */
int sgt_ranks_memory_join(sgt_ranks *r, sgt_error *err);

#endif
