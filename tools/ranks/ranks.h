/* ranks.h: connects the processes (ranks) of a job. A launcher starts the same program several
 * times, and passes the number of its rank to each process in environment variables. ranks.c reads
 * these variables, connects the processes, and implements the interface in base/ranks.h. The
 * supported launchers are:
 *
 *     torchrun, and others that set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT
 *     Open MPI's mpirun and Slurm's srun (only the code in libsgt-mpi/ calls MPI)
 *
 * Use it like this:
 *
 *     sgt_ranks *ranks;
 *     if (sgt_ranks_open(&ranks, program.name, &notice, 0, &err) < 0) goto failed;
 *     rc = work(ranks, ..., &err);
 *     ...print results...
 *     return sgt_ranks_close(ranks, &program, rc, &err);
 *
 * In each process, a thread waits for failures of other ranks. If a rank fails or dies, rank 0
 * prints the reason in one line, and all ranks exit. If rank 0 dies, rank 1 prints a message. The
 * death of a process is detected at once, because its connections are closed. The death of a
 * machine is detected within 25 s. */
#ifndef SGT_TOOLS_RANKS_H
#define SGT_TOOLS_RANKS_H

#include "loader/base/ranks.h"
#include "tools/cli/options.h"

/* Return the rank of this process, from the launcher's environment variables, or 0 if no launcher
 * has started it. The function does not connect to other ranks. */
uint32_t sgt_ranks_number(void);

/* Connect to the other ranks. Set *out to an object for communicating with them, or to NULL if this
 * is the only process. Wait up to two minutes for all ranks to start, and send a notice through
 * *notice if this takes longer than a few seconds. Any signal during this wait ends the program.
 * program: name with which messages begin; the string must stay valid as long as *out. Return 0 or
 * a negative SGT_E*: SGT_EUSAGE if the value of a launcher's variable is invalid.
 *
 * If `apart` is 1, do not connect, because the work needs no data from other ranks. In that case,
 * *out only contains the rank and the number of ranks, and its functions for communication are
 * NULL. */
int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_notice *notice, int apart,
                   sgt_error *err);

/* Disconnect from the other ranks, and return the program's exit code. This must be the last call
 * in a program. rc: result of the program's work, as for sgt_end_program. If the work succeeded,
 * wait for the other ranks. If it failed, print the error unless it has already been printed, and
 * make the other ranks exit. r: the connected ranks, or NULL if there are none. */
int sgt_ranks_close(sgt_ranks *r, const sgt_program *p, int rc, sgt_error *err);

#endif
