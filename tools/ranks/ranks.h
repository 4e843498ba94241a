/* ranks.h: connects the processes of one job. A launcher starts the same program several times, and
 * tells each process its rank in environment variables. ranks.c reads these variables, connects the
 * processes, and returns the interface of base/ranks.h. The launchers are:
 *
 *     torchrun, and others that set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT
 *     Open MPI's mpirun and Slurm's srun; only libsgt-mpi/ calls MPI
 *
 *     sgt_ranks *ranks;
 *     if (sgt_ranks_open(&ranks, program.name, &notice, 0, &err) < 0) goto failed;
 *     rc = work(ranks, ..., &err);
 *     ...print results...
 *     return sgt_ranks_close(ranks, &program, rc, &err);
 *
 * A thread also watches all ranks. If a rank dies or fails, rank 0 prints the reason in one line,
 * and all ranks end. If rank 0 itself dies, rank 1 prints that. The death of a process is detected
 * at once, because its connection closes. The death of a machine is detected within 25 s. */
#ifndef SGT_TOOLS_RANKS_H
#define SGT_TOOLS_RANKS_H

#include "loader/base/ranks.h"
#include "tools/cli/options.h"

/* Return the rank of this process, as stated in the variables of a launcher, or 0 if there is no
 * launcher. Does not connect to other ranks. */
uint32_t sgt_ranks_number(void);

/* Connect to the other ranks, and set *out to the connected ranks, or to NULL if there is only this
 * process. This call waits up to two minutes for all ranks to start. After a few seconds, it
 * reports the wait in one line through *notice. During the wait, one signal ends the program.
 * Messages begin with `program`; that string must stay valid as long as *out. Returns SGT_EUSAGE if
 * a launcher's variable is invalid.
 *
 * If `apart` is 1, do not connect, because the caller's work needs no data from other ranks. *out
 * then states only this rank and how many ranks there are; its collective functions are NULL. */
int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_notice *notice, int apart,
                   sgt_error *err);

/* Disconnect from the other ranks and return the program's exit code. A program calls this last. rc
 * is the result of its work, as for sgt_end_program. If the work succeeded, wait for the other
 * ranks. If it failed, report the failure (unless it has been reported) and end the other ranks. r
 * may be NULL. */
int sgt_ranks_close(sgt_ranks *r, const sgt_program *p, int rc, sgt_error *err);

#endif
