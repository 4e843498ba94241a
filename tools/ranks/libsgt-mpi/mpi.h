/* mpi.h: the interface of libsgt-mpi.so, a library that broadcasts the address of rank 0 to all
 * ranks (processes), and exchanges gradients between ranks on CPUs. It exports one symbol,
 * `sgt_mpi`. tools/ranks/ranks.c loads the library only if mpirun or srun has started the program,
 * so that programs need not be linked against MPI. */
#ifndef SGT_TOOLS_RANKS_LIBSGT_MPI_H
#define SGT_TOOLS_RANKS_LIBSGT_MPI_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_MPI_LIBRARY "libsgt-mpi.so"
#define SGT_MPI_SYMBOL "sgt_mpi"
#define SGT_MPI_INTERFACE 4

typedef struct sgt_mpi_library {
    /* Value of SGT_MPI_INTERFACE with which the library was built. A program refuses a library with
     * a different value, because its functions may have different parameters. */
    uint32_t interface;
    /* Start MPI, and broadcast the n bytes at `bytes` from rank 0 to all ranks. A process can call
     * this function only once. rank, size: number of this rank and number of ranks, from the
     * launcher's environment variables. If MPI reports other numbers, return SGT_EUNSUPPORTED. */
    int (*open)(uint32_t rank, uint32_t size, void *bytes, size_t n, sgt_error *err);
    /* Send out_bytes bytes to rank `to` and receive in_bytes bytes from rank `from` at the same
     * time (see sgt_ranks.swap in base/ranks.h). If *lost, which is read atomically, becomes
     * nonzero, stop waiting and return SGT_EIO. */
    int (*swap)(uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in,
                size_t in_bytes, const int *lost, sgt_error *err);
    /* Wait for all ranks, and shut MPI down. Must not be called after a rank has failed. */
    void (*close)(void);
} sgt_mpi_library;

#endif
