/* ranks.h: connects the processes of one job. A launcher starts the same program several times, and
 * gives each process its rank in environment variables, which only ranks.c reads. It connects the
 * processes and returns the interface of base/ranks.h:
 *
 *     torchrun, and others that set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT
 *     Open MPI's mpirun and Slurm's srun; libsgt-mpi/ is the only code that calls MPI
 *
 *     sgt_ranks *ranks;
 *     if (sgt_ranks_open(&ranks, program.name, &notice, 0, &err) < 0) goto failed;
 *     rc = work(ranks, ..., &err);
 *     ...print results...
 *     return sgt_ranks_close(ranks, &program, rc, &err);
 *
 * A thread also watches all ranks. If a rank dies or fails, rank 0 prints the reason in one line,
 * and all ranks end. If rank 0 itself dies, rank 1 prints that. The death of a process is noticed
 * at once, because its connection closes; the death of a machine is noticed within 25 s. */
#ifndef SGT_TOOLS_RANKS_H
#define SGT_TOOLS_RANKS_H

#include "loader/base/ranks.h"
#include "tools/cli/options.h"

/* Return the rank that a launcher gave this process, or 0 if there is no launcher. Does not connect
 * to other ranks. */
uint32_t sgt_ranks_number(void);

/* Connect to the other ranks. Wait at most two minutes until all of them have started; after some
 * seconds of waiting, send *notice a line. During the wait, the first signal ends the program. Sets
 * *out to NULL if this process is the only one. Messages begin with `program`, a string that must
 * stay valid as long as *out. Returns SGT_EUSAGE if a launcher's variable is invalid. apart: 1: do
 * not connect, for work that needs no other rank; then *out has only the numbers, and its
 * collective calls are NULL. */
int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_notice *notice, int apart,
                   sgt_error *err);

/* Disconnect from the other ranks; this is a program's last call. rc is the result of its work, and
 * the return value is the exit code, as for sgt_end_program. After success, wait for the other
 * ranks. After a failure, report it, unless that has been done, and end the other ranks. r may be
 * NULL. */
int sgt_ranks_close(sgt_ranks *r, const sgt_program *p, int rc, sgt_error *err);

#endif
