/* mpi.h: what libsgt-mpi.so gives to a program: one symbol, `sgt_mpi`. tools/cli/ranks.c loads it where mpirun's or
 * srun's variables are set: every program starts without MPI. It introduces the ranks to each other, and carries
 * gradients of CPU ranks on several machines. */
#ifndef SGT_MPI_H
#define SGT_MPI_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SGT_MPI_LIBRARY "libsgt-mpi.so"
#define SGT_MPI_SYMBOL "sgt_mpi"
#define SGT_MPI_INTERFACE 2

typedef struct sgt_mpi_library {
    uint32_t interface; /* SGT_MPI_INTERFACE */
    /* Starts MPI; SGT_EUNSUPPORTED where it sees other ranks than the launcher's variables say. *local: which on this
     * machine. Once a process. */
    int (*open)(uint32_t rank, uint32_t size, uint32_t *local, sgt_error *err);
    int (*broadcast)(void *bytes, size_t n, uint32_t root, sgt_error *err); /* n below 2^31 */
    /* As in train/ranks.h; *lost, read atomically: nobody is waited for any more. */
    int (*swap)(uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in, size_t in_bytes,
                const int *lost, sgt_error *err);
    void (*close)(void); /* waits for the others; not after a failure, which is the launcher's to clean up */
} sgt_mpi_library;

#endif
