/* ranks.c: finds the launcher that started this process, from its environment variables, and joins
 * the other ranks. If the launcher is one of MPI, loads libsgt-mpi.so: it tells every rank the
 * address where rank 0 listens, and carries the gradients of CPU ranks (`swap`). Everything else
 * goes through tcp.c, which also notices dead ranks. */
#include "tools/ranks/ranks.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "loader/base/library.h"
#include "tools/cli/options.h"
#include "tools/ranks/libsgt-mpi/mpi.h"
#include "tools/ranks/tcp.h"

/* ---- launchers ---- */

/* Set *n to the number in a launcher's variable, or to -1 if the variable is not set. */
static int number(const char *name, long *n, sgt_error *err)
{
    char *end;
    const char *text = getenv(name);
    *n = -1;
    if (!text || !*text) return SGT_OK;
    *n = strtol(text, &end, 10);
    if (*end || *n < 0 || *n > 1000000)
        return sgt_fail(err, SGT_EUSAGE, "%s=%s: not a number of a launcher's", name, text);
    return SGT_OK;
}

typedef struct launcher {
    const char *rank, *size, *local; /* names of the launcher's variables */
    int mpi;
} launcher;

/* The launchers. torchrun comes first, because mpirun or srun may have started it. Slurm sets
 * SLURM_NTASKS and SLURM_PROCID even in a batch script, which is no rank; only a job step has
 * SLURM_STEP_NUM_TASKS. */
static const launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", 0},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", 1},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", 1}};

/* Find the first launcher whose variables say that it started several processes, and fill in *p
 * from them. Set *l to NULL if there is none. */
static int find(const launcher **l, sgt_rendezvous *p, sgt_error *err)
{
    long rank, size, local;
    int rc = SGT_OK;
    *l = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && rc == SGT_OK; i++) {
        if (!launchers[i].mpi && (!getenv("MASTER_ADDR") || !getenv("MASTER_PORT"))) continue;
        if ((rc = number(launchers[i].size, &size, err)) < 0 || size < 2) continue;
        if ((rc = number(launchers[i].rank, &rank, err)) < 0 ||
            (rc = number(launchers[i].local, &local, err)) < 0)
            break;
        if (rank < 0 || rank >= size)
            return sgt_fail(err, SGT_EUSAGE, "%s: rank %ld of %ld", launchers[i].rank, rank, size);
        /* a launcher without local numbers: all ranks are on one machine */
        if (local < 0) local = rank;
        *p = (sgt_rendezvous){.rank = (uint32_t)rank,
                              .size = (uint32_t)size,
                              .local = (uint32_t)local,
                              .listener = -1};
        *l = launchers + i;
        return SGT_OK;
    }
    return rc;
}

uint32_t sgt_ranks_number(void)
{
    const launcher *l;
    sgt_rendezvous p;
    return find(&l, &p, NULL) == SGT_OK && l ? p.rank : 0;
}

/* ---- rank 0's address ---- */

/* Set the host and port of rank 0 from MASTER_ADDR and MASTER_PORT. torchrun's own store is at
 * MASTER_PORT, so rank 0 listens on the next port. */
static int find_master(sgt_rendezvous *p, sgt_error *err)
{
    long port;
    int rc = number("MASTER_PORT", &port, err);
    if (rc < 0) return rc;
    if (port < 1 || port > 65535)
        return sgt_fail(err, SGT_EUSAGE, "MASTER_PORT=%ld: no port (1 to 65535)", port);
    p->host = getenv("MASTER_ADDR");
    p->port = (int)(port < 65535 ? port + 1 : port - 1);
    return p->rank ? SGT_OK : sgt_tcp_listen(p, err);
}

static const sgt_mpi_library *mpi; /* the loaded library; a process can start MPI only once */

static int load_mpi(sgt_error *err)
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

#define HOST 256 /* bytes of a host's name */

/* Start MPI, and learn from rank 0 at which host and port it listens, and the run's token. The
 * name is kept in `host`. */
static int ask_mpi(sgt_rendezvous *p, char host[HOST], sgt_error *err)
{
    struct {
        char host[HOST];
        int rc, port; /* rc: why rank 0 cannot listen, or 0 */
        uint64_t token;
    } a = {.rc = SGT_OK};
    sgt_error why = {0};
    int rc = load_mpi(err);
    if (rc < 0 || (rc = mpi->open(p->rank, p->size, err)) < 0) return rc;
    if (p->rank == 0) {
        gethostname(a.host, sizeof a.host - 1);
        a.rc = getentropy(&a.token, sizeof a.token) < 0
                   ? sgt_fail_errno(&why, "a random number for the ranks' connections")
                   : sgt_tcp_listen(p, &why);
        a.port = p->port;
    }
    if ((rc = mpi->broadcast(&a, sizeof a, 0, err)) < 0) return rc;
    if (a.rc < 0)
        return sgt_fail(err, SGT_EIO, "%s", p->rank ? "rank 0 has no port to listen on" : why.text);
    gethostname(host, HOST - 1);
    p->host = strcmp(a.host, host) == 0 ? "localhost" : memcpy(host, a.host, HOST);
    p->port = a.port;
    p->token = a.token;
    return SGT_OK;
}

/* ---- ranks that share this rank's machine ---- */

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u; /* FNV-1a */
    return h;
}

/* Set *n to the number of ranks that call this with the same hash. */
static int count_same(sgt_ranks *r, uint64_t hash, uint32_t *n, sgt_error *err)
{
    double *all = calloc(r->size, sizeof *all);
    if (!all) return sgt_fail_memory(err, "ranks");
    double mine = (double)(hash >> 12); /* only as many bits as a double represents exactly */
    all[r->rank] = mine;
    int rc = r->sum(r, all, r->size, err);
    for (uint32_t i = 0; i < r->size; i++) *n += all[i] == mine;
    free(all);
    return rc;
}

/* Set r->here to the number of ranks on this machine, and r->sharing to that of the ranks that may
 * run on the same cores: some launchers bind each rank to cores of its own. */
static int count_neighbours(sgt_ranks *r, sgt_error *err)
{
    char host[256] = "";
    cpu_set_t cores;
    gethostname(host, sizeof host - 1);
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    uint64_t machine = mix(14695981039346656037u, host, sizeof host);
    int rc = count_same(r, machine, &r->here, err);
    return rc < 0 ? rc : count_same(r, mix(machine, &cores, sizeof cores), &r->sharing, err);
}

int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_stop *stop, sgt_error *err)
{
    const launcher *l;
    sgt_rendezvous p;
    char host[HOST] = "";
    *out = NULL;
    int rc = find(&l, &p, err);
    if (rc < 0 || !l) return rc;
    if ((rc = l->mpi ? ask_mpi(&p, host, err) : find_master(&p, err)) < 0 ||
        (rc = sgt_tcp_join(out, &p, program, stop, err)) < 0)
        return rc;
    if (l->mpi) (*out)->swap = swap;
    if ((rc = count_neighbours(*out, err)) == SGT_OK) return SGT_OK;
    (*out)->give_up(*out, err);
    sgt_tcp_leave(*out, SGT_EXIT_FAILED);
    *out = NULL;
    return rc;
}

void sgt_ranks_close(sgt_ranks *r, int code)
{
    if (r) sgt_tcp_leave(r, code);
    if (!code && mpi) mpi->close(); /* after a failure, the launcher cleans up */
}
