/* mpi.h: the interface of libsgt-mpi.so, which exports one symbol, `sgt_mpi`. tools/ranks/ranks.c
 * loads the library only if mpirun or srun started the program, so that no program must be linked
 * against MPI. The library broadcasts the address of rank 0 to all ranks, and transfers the
 * gradients of CPU ranks. */
#ifndef SGT_TOOLS_RANKS_LIBSGT_MPI_H
#define SGT_TOOLS_RANKS_LIBSGT_MPI_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_MPI_LIBRARY "libsgt-mpi.so"
#define SGT_MPI_SYMBOL "sgt_mpi"
#define SGT_MPI_INTERFACE 4

typedef struct sgt_mpi_library {
    /* value of SGT_MPI_INTERFACE when the library was built. A program does not use a library with
     * a different value, because its functions may differ. */
    uint32_t interface;
    /* Start MPI, and broadcast the n bytes at `bytes` from rank 0 to all ranks. May be called only
     * once per process. Returns SGT_EUNSUPPORTED if MPI has a different rank or number of ranks
     * than the launcher's environment variables. */
    int (*open)(uint32_t rank, uint32_t size, void *bytes, size_t n, sgt_error *err);
    /* Send and receive at the same time, as swap in base/ranks.h does. If *lost, which is read
     * atomically, becomes nonzero, stop waiting and return SGT_EIO. */
    int (*swap)(uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in,
                size_t in_bytes, const int *lost, sgt_error *err);
    /* Wait for all ranks and shut MPI down. Must not be called after a failure */
    void (*close)(void);
} sgt_mpi_library;

#endif
