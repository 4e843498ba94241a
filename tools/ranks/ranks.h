/* ranks.h: joins the processes of one job. A launcher starts the same program several times and
 * gives each process its number in environment variables. ranks.c is the only file that reads them.
 * It connects the processes and returns the interface of base/ranks.h:
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
 * A thread also watches all ranks. If a rank dies or gives up, rank 0 prints the reason in one
 * line, and all ranks end. If rank 0 itself dies, rank 1 prints that. The death of a process is
 * noticed at once, because its connection closes; that of a machine, within 25 s. */
#ifndef SGT_TOOLS_RANKS_H
#define SGT_TOOLS_RANKS_H

#include "loader/base/ranks.h"
#include "tools/cli/options.h"

/* Return the number that a launcher gave this process; 0 if there is no launcher. Makes no
 * connection. */
uint32_t sgt_ranks_number(void);

/* Join the other ranks: wait until all of them have come, at most two minutes; if that takes
 * seconds, tell *notice. Until then, nothing is begun, and the first signal ends the program. Sets
 * *out to NULL if this process is the only one. Messages begin with `program`, which must live as
 * long as *out. Returns SGT_EUSAGE if a launcher's variable is invalid. apart: join nobody, for
 * work that needs no other rank: *out has only numbers, and its collective calls are NULL. */
int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_notice *notice, int apart,
                   sgt_error *err);

/* Leave the other ranks; a program's last call. Returns its exit code, as sgt_end_program does for
 * the result rc of its work. After success, wait for the other ranks; after a failure, give up, if
 * that has not been done, and end them. r may be NULL. */
int sgt_ranks_close(sgt_ranks *r, const sgt_program *p, int rc, sgt_error *err);

#endif
