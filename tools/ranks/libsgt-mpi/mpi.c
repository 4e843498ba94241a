/* mpi.c: implements libsgt-mpi.so, whose only source file it is. It is compiled with mpicc. */
#include "tools/ranks/libsgt-mpi/mpi.h"

#include <mpi.h>
#include <time.h>

static int failed(int code, const char *what, sgt_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    MPI_Error_string(code, text, &n);
    return sgt_fail(err, SGT_EIO, "MPI: %s: %s", what, text);
}

static int open_world(uint32_t rank, uint32_t size, void *bytes, size_t n, sgt_error *err)
{
    int given, r, count;
    int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
    if (rc) return failed(rc, "MPI_Init", err);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (given < MPI_THREAD_SERIALIZED)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "MPI: this library supports calls only from the thread that initialized "
                        "it, but sgt needs MPI_THREAD_SERIALIZED");
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if ((uint32_t)r != rank || (uint32_t)count != size)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "MPI sees rank %d of %d, but the launcher started rank %u of %u (use srun "
                        "--mpi=pmix, or the mpirun of this MPI)",
                        r, count, rank, size);
    rc = MPI_Bcast(bytes, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
    return rc ? failed(rc, "broadcast", err) : SGT_OK;
}

/* Implement sgt_mpi_library.swap: send to one rank and receive from another at the same time. The
 * code polls every 20 microseconds instead of calling MPI_Wait, which would spin and occupy a CPU
 * core that another rank could use. */
static int swap(uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in,
                size_t in_bytes, const int *lost, sgt_error *err)
{
    const struct timespec nap = {.tv_nsec = 20000};
    MPI_Request two[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status[2];
    int rc = MPI_SUCCESS, done = 0, got = 0;
    if (in_bytes)
        rc = MPI_Irecv(in, (int)in_bytes, MPI_BYTE, (int)from, 0, MPI_COMM_WORLD, &two[0]);
    if (!rc && out_bytes)
        rc = MPI_Isend(out, (int)out_bytes, MPI_BYTE, (int)to, 0, MPI_COMM_WORLD, &two[1]);
    while (!rc && !(rc = MPI_Testall(2, two, &done, status)) && !done) {
        if (__atomic_load_n(lost, __ATOMIC_ACQUIRE))
            return sgt_fail(err, SGT_EIO,
                            "MPI: stopped waiting for ranks %u and %u, because the run has failed",
                            from, to);
        nanosleep(&nap, NULL);
    }
    if (rc) return failed(rc, "exchanging gradients", err);
    if (in_bytes) MPI_Get_count(&status[0], MPI_BYTE, &got);
    if (in_bytes && (size_t)got != in_bytes)
        return sgt_fail(err, SGT_EIO,
                        "ranks are out of step: rank %u sent %d bytes, but %zu were expected", from,
                        got, in_bytes);
    return SGT_OK;
}

static void close_world(void) { MPI_Finalize(); }

extern const sgt_mpi_library sgt_mpi;
const sgt_mpi_library sgt_mpi = {
    .interface = SGT_MPI_INTERFACE, .open = open_world, .swap = swap, .close = close_world};
