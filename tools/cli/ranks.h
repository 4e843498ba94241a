/* ranks.h: finds out whether a launcher started this process as one of several, and joins them: by MPI under Open MPI's
 * mpirun and Slurm's srun, by TCP under torchrun, or whatever sets torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK,
 * MASTER_ADDR, MASTER_PORT). This is the one place that reads launchers' variables.
 *
 *     sgt_ranks *ranks;
 *     if (sgt_ranks_open(&ranks, program.name, stop, &err) < 0) return sgt_report_failure(&program, &err);
 *     rc = work(ranks, ..., &err);                 // train/ranks.h; NULL where this process is alone
 *     ...say what there is to say...
 *     sgt_ranks_close(ranks, code);
 *
 * Beside what ranks ask of each other, a thread watches over them: when a rank dies (seen at once by its closed
 * connection, within 25 s where its machine is gone) or gives up, the first rank says so in one line and all end. Where
 * rank 0 itself died, rank 1 says it. */
#ifndef SGT_CLI_RANKS_H
#define SGT_CLI_RANKS_H

#include "train/ranks.h"

/* The number that a launcher gave this process, without joining anybody; 0 where it is alone. */
uint32_t sgt_ranks_number(void);

/* Waits until all ranks have come, at most two minutes. `program` is what messages begin with, and outlives it. *out
 * NULL: alone. SGT_EUSAGE where a launcher's variable makes no sense. */
int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_stop *stop, sgt_error *err);

/* The last call of a program, with its exit code: waits for the others after success; after a failure (give_up was
 * called) sees to it that they end too. NULL is fine. */
void sgt_ranks_close(sgt_ranks *r, int code);

#endif
