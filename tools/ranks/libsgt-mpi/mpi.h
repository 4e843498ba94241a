/* mpi.h: the interface of libsgt-mpi.so: one symbol, `sgt_mpi`. tools/ranks/ranks.c loads the
 * library if mpirun or srun started the program; no program is linked against MPI. The library
 * broadcasts rank 0's address to all ranks, and transfers the gradients of CPU ranks. */
#ifndef SGT_TOOLS_RANKS_LIBSGT_MPI_H
#define SGT_TOOLS_RANKS_LIBSGT_MPI_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_MPI_LIBRARY "libsgt-mpi.so"
#define SGT_MPI_SYMBOL "sgt_mpi"
#define SGT_MPI_INTERFACE 4

typedef struct sgt_mpi_library {
    /* SGT_MPI_INTERFACE; the program refuses a library with a different number */
    uint32_t interface;
    /* Start MPI, and broadcast rank 0's n bytes to all ranks. May be called only once in a process.
     * Returns SGT_EUNSUPPORTED if MPI and the launcher's variables disagree. */
    int (*open)(uint32_t rank, uint32_t size, void *bytes, size_t n, sgt_error *err);
    /* Send and receive at the same time, like swap in base/ranks.h. Fail instead of waiting once
     * *lost, which is read atomically, is not 0. */
    int (*swap)(uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in,
                size_t in_bytes, const int *lost, sgt_error *err);
    /* Wait for all ranks and shut MPI down. Must not be called after a failure. */
    void (*close)(void);
} sgt_mpi_library;

#endif
