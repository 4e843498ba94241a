/* mpi.h: the interface of libsgt-mpi.so, which exports a single symbol, `sgt_mpi`.
 * tools/ranks/ranks.c loads the library only if mpirun or srun has started the program, so programs
 * need not be linked against MPI. The library broadcasts rank 0's address to all ranks, and
 * transfers gradients between ranks on CPUs. */
#ifndef SGT_TOOLS_RANKS_LIBSGT_MPI_H
#define SGT_TOOLS_RANKS_LIBSGT_MPI_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

#define SGT_MPI_LIBRARY "libsgt-mpi.so"
#define SGT_MPI_SYMBOL "sgt_mpi"
#define SGT_MPI_INTERFACE 4

typedef struct sgt_mpi_library {
    /* value of SGT_MPI_INTERFACE with which the library was built. A program refuses a library with
     * a different value, whose functions may have other parameters */
    uint32_t interface;
    /* Start MPI, and broadcast the n bytes at `bytes` from rank 0 to all ranks. May be called only
     * once per process. `rank` and `size` come from the launcher's environment variables; if MPI
     * reports a different rank or number of ranks, return SGT_EUNSUPPORTED. */
    int (*open)(uint32_t rank, uint32_t size, void *bytes, size_t n, sgt_error *err);
    /* Send to one rank and receive from another at the same time, as sgt_ranks.swap in base/ranks.h
     * does. Stop waiting and return SGT_EIO if *lost becomes nonzero; *lost is read atomically. */
    int (*swap)(uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in,
                size_t in_bytes, const int *lost, sgt_error *err);
    /* Wait for all ranks, and shut MPI down. Must not be called after a rank has failed. */
    void (*close)(void);
} sgt_mpi_library;

#endif
