/* mpi.c: loads libsgt-mpi.so and joins the ranks, if a launcher of MPI has started this process. */
#include "tools/ranks/mpi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/library.h"
#include "tools/ranks/libsgt-mpi/mpi.h"

static const sgt_mpi_library *mpi; /* the loaded library; a process can start MPI only once */

static int load(sgt_error *err)
{
    char *path = sgt_own_library(SGT_MPI_LIBRARY), why[256];
    void *library =
        sgt_library_open(path ? path : SGT_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL, why, sizeof why);
    free(path);
    if (!library)
        return sgt_fail(
            err, SGT_EUNSUPPORTED,
            "started as one of several ranks, by MPI: %s (make builds it where libopenmpi-dev is)",
            why);
    mpi = dlsym(library, SGT_MPI_SYMBOL);
    if (mpi && mpi->interface == SGT_MPI_INTERFACE) return SGT_OK;
    mpi = NULL;
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    SGT_MPI_LIBRARY " is of another build (make builds both)");
}

static int swap(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from,
                void *in, size_t in_bytes, sgt_error *err)
{
    return mpi->swap(to, out, out_bytes, from, in, in_bytes, &r->given_up, err);
}

typedef struct address {
    char host[256];
    int port; /* port of rank 0; -1: rank 0 cannot listen */
    uint64_t token;
} address;

int sgt_mpi_join(sgt_ranks **out, sgt_rendezvous *p, const char *program, const sgt_stop *stop,
                 sgt_error *err)
{
    address a = {.port = -1};
    char here[256] = "";
    sgt_error why = {0};
    int rc = load(err);
    if (rc < 0 || (rc = mpi->open(p->rank, p->size, &p->local, err)) < 0) return rc;
    gethostname(here, sizeof here - 1);
    if (p->rank == 0) {
        memcpy(a.host, here, sizeof a.host);
        p->listener = sgt_tcp_listen(&a.port, &why);
        if (p->listener >= 0 && getentropy(&a.token, sizeof a.token) < 0) {
            sgt_fail_errno(&why, "a random number for the ranks' connections");
            a.port = -1;
        }
    }
    if ((rc = mpi->broadcast(&a, sizeof a, 0, err)) < 0) return rc;
    if (a.port < 0)
        return sgt_fail(err, SGT_EIO, "%s", p->rank ? "rank 0 has no port to listen on" : why.text);
    p->host = strcmp(a.host, here) == 0 ? "localhost" : a.host;
    p->port = a.port;
    p->token = a.token;
    if ((rc = sgt_tcp_join(out, p, program, stop, err)) == SGT_OK) (*out)->swap = swap;
    return rc;
}

void sgt_mpi_leave(void)
{
    if (mpi) mpi->close();
}
