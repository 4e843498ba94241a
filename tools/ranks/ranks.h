/* ranks.h: joins the processes of one job. A launcher starts the same program several times and
 * tells each process its number by environment variables; ranks.c is the only file that reads them.
 * It connects the processes and returns the interface of base/ranks.h:
 *
 *     tcp.c     torchrun, and others that set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
 * MASTER_PORT mpi.c     Open MPI's mpirun and Slurm's srun; libsgt-mpi/ is the only code that calls
 * MPI memory.c  shared memory, if all ranks are on one machine
 *
 *     sgt_ranks *ranks;
 *     if (sgt_ranks_open(&ranks, program.name, stop, &err) < 0) goto failed;
 *     rc = work(ranks, ..., &err);
 *     ...print results...
 *     sgt_ranks_close(ranks, code);
 *
 * A thread also watches all ranks. If one dies or gives up, rank 0 prints why, in one line, and all
 * ranks end. Rank 1 prints it if rank 0 died. A dead process is noticed at once (its connection
 * closes), a dead machine within 25 s. */
#ifndef SGT_TOOLS_RANKS_H
#define SGT_TOOLS_RANKS_H

#include "base/ranks.h"

/* Return the number that a launcher gave this process, or 0 if it is alone. Connects to nobody. */
uint32_t sgt_ranks_number(void);

/* Wait until all ranks have joined, at most two minutes. *out is NULL if this process is alone.
 * Messages begin with `program`, which must outlive *out. Returns SGT_EUSAGE if a launcher's
 * variable makes no sense. */
int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_stop *stop, sgt_error *err);

/* Leave the other ranks: the last call of a program, with its exit code. With code 0 it waits for
 * the others. After a failure, for which give_up was called, it makes sure that the others end too.
 * r may be NULL. */
void sgt_ranks_close(sgt_ranks *r, int code);

#endif
