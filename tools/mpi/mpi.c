/* mpi.c: MPI behind tools/mpi/mpi.h. */
#include "tools/mpi/mpi.h"

#include <mpi.h>

static int failed(int code, const char *what, sgt_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n;
    MPI_Error_string(code, text, &n);
    return sgt_fail(err, SGT_EIO, "MPI: %s: %s", what, text);
}

static int open_world(uint32_t rank, uint32_t size, uint32_t *local, sgt_error *err)
{
    MPI_Comm machine;
    int given, r, n, l = 0;
    int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
    if (rc) return failed(rc, "MPI_Init", err);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if ((uint32_t)r != rank || (uint32_t)n != size)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "MPI sees rank %d of %d where the launcher has started rank %u of %u (srun --mpi=pmix, or the "
                        "mpirun of this MPI)",
                        r, n, rank, size);
    rc = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, r, MPI_INFO_NULL, &machine);
    if (rc) return failed(rc, "ranks of this machine", err);
    MPI_Comm_rank(machine, &l);
    MPI_Comm_free(&machine);
    *local = (uint32_t)l;
    return SGT_OK;
}

static int broadcast(void *bytes, size_t n, uint32_t root, sgt_error *err)
{
    int rc = MPI_Bcast(bytes, (int)n, MPI_BYTE, (int)root, MPI_COMM_WORLD);
    return rc ? failed(rc, "broadcast", err) : SGT_OK;
}

static void close_world(void) { MPI_Finalize(); }

extern const sgt_mpi_library sgt_mpi;
const sgt_mpi_library sgt_mpi = {
    .interface = SGT_MPI_INTERFACE, .open = open_world, .broadcast = broadcast, .close = close_world};
