/* mpi.h: joins ranks that Open MPI's mpirun or Slurm's srun started. MPI tells every rank the
 * address where rank 0 listens, and transfers the gradients of CPU ranks on several machines
 * (`swap` in base/ranks.h). Everything else goes through tcp.c, which also notices dead ranks. */
#ifndef SGT_TOOLS_RANKS_MPI_H
#define SGT_TOOLS_RANKS_MPI_H

#include "loader/base/ranks.h"
#include "tools/ranks/tcp.h"

/* Join the ranks like sgt_tcp_join, but with p's local number, host, port and token from MPI. */
int sgt_mpi_join(sgt_ranks **out, sgt_rendezvous *p, const char *program, const sgt_stop *stop,
                 sgt_error *err);

/* Wait for all ranks and shut MPI down, if sgt_mpi_join has started it. Call this only after a
 * success; after a failure, the launcher cleans up. */
void sgt_mpi_leave(void);

#endif
