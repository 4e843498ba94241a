/* mpi.h: what libsgt-mpi.so exports: one symbol, `sgt_mpi`. tools/ranks/mpi.c loads it if mpirun or
 * srun started the program; no program is linked against MPI. It tells the ranks rank 0's address,
 * and carries the gradients of CPU ranks on several machines. */
#ifndef SGT_TOOLS_RANKS_LIBSGT_MPI_H
#define SGT_TOOLS_RANKS_LIBSGT_MPI_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_MPI_LIBRARY "libsgt-mpi.so"
#define SGT_MPI_SYMBOL "sgt_mpi"
#define SGT_MPI_INTERFACE 2

typedef struct sgt_mpi_library {
    uint32_t interface; /* must be SGT_MPI_INTERFACE */
    /* Start MPI; call it only once in a process. Sets *local to this rank's number on its machine.
     * Returns SGT_EUNSUPPORTED if MPI disagrees with the launcher's variables. */
    int (*open)(uint32_t rank, uint32_t size, uint32_t *local, sgt_error *err);
    /* n must be below 2^31 */
    int (*broadcast)(void *bytes, size_t n, uint32_t root, sgt_error *err);
    /* As in base/ranks.h. Fails instead of waiting once *lost, which is read atomically, is not
     * 0. */
    int (*swap)(uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in,
                size_t in_bytes, const int *lost, sgt_error *err);
    void (*close)(void); /* wait for all ranks and shut MPI down; not after a failure */
} sgt_mpi_library;

#endif
