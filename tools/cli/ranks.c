/* ranks.c: which launcher started this process, and where rank 0 is to be found. */
#include "tools/cli/ranks.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/library.h"
#include "tools/cli/options.h"
#include "tools/cli/ranks_memory.h"
#include "tools/cli/ranks_net.h"
#include "tools/mpi/mpi.h"

/* ---- launchers ---- */

/* A number of a launcher's, or -1 where the variable is not set. */
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
    const char *rank, *size, *local; /* its variables */
    int mpi;
} launcher;

/* torchrun's first: it may itself have been started by one of the others. Slurm sets SLURM_NTASKS and SLURM_PROCID in a
 * batch script too, which is no rank: the number of a step's tasks is there in a step alone. */
static const launcher launchers[] = {{"RANK", "WORLD_SIZE", "LOCAL_RANK", 0},
                                     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", 1},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", 1}};

/* The first launcher that says there are several; *l NULL: none does. */
static int find(const launcher **l, long *rank, long *size, long *local, sgt_error *err)
{
    int rc = SGT_OK;
    *l = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && rc == SGT_OK; i++) {
        if (!launchers[i].mpi && (!getenv("MASTER_ADDR") || !getenv("MASTER_PORT"))) continue;
        if ((rc = number(launchers[i].size, size, err)) < 0 || *size < 2) continue;
        if ((rc = number(launchers[i].rank, rank, err)) < 0 || (rc = number(launchers[i].local, local, err)) < 0) break;
        if (*rank < 0 || *rank >= *size)
            return sgt_fail(err, SGT_EUSAGE, "%s: rank %ld of %ld", launchers[i].rank, *rank, *size);
        if (*local < 0) *local = *rank; /* one machine, unless it is said */
        *l = launchers + i;
        return SGT_OK;
    }
    return rc;
}

uint32_t sgt_ranks_number(void)
{
    const launcher *l;
    long rank, size, local;
    return find(&l, &rank, &size, &local, NULL) == SGT_OK && l ? (uint32_t)rank : 0;
}

/* ---- torchrun ---- */

/* MASTER_PORT itself is torchrun's, which keeps its own store there. */
static int join_torchrun(sgt_ranks **out, sgt_net_place p, const char *program, const sgt_stop *stop, sgt_error *err)
{
    long port;
    int rc = number("MASTER_PORT", &port, err);
    if (rc < 0) return rc;
    if (port < 1 || port > 65535) return sgt_fail(err, SGT_EUSAGE, "MASTER_PORT=%ld: no port (1 to 65535)", port);
    p.host = getenv("MASTER_ADDR");
    p.port = (int)(port < 65535 ? port + 1 : port - 1);
    return sgt_net_join(out, &p, program, stop, err);
}

/* ---- MPI: loaded where a launcher's variables are set, and nowhere else ---- */

static const sgt_mpi_library *mpi; /* there is one world, and ending it is the last thing done */

static int load_mpi(sgt_error *err)
{
    char *path = sgt_own_library(SGT_MPI_LIBRARY), why[256];
    void *library = sgt_library_open(path ? path : SGT_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL, why, sizeof why);
    free(path);
    if (!library)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "started as one of several ranks, by MPI: %s (make builds it where libopenmpi-dev is)",
                        why);
    mpi = dlsym(library, SGT_MPI_SYMBOL);
    if (mpi && mpi->interface == SGT_MPI_INTERFACE) return SGT_OK;
    mpi = NULL;
    return sgt_fail(err, SGT_EUNSUPPORTED, SGT_MPI_LIBRARY " is of another build (make builds both)");
}

typedef struct address {
    char host[256];
    int port;
    uint64_t token;
} address;

static int join_mpi(sgt_ranks **out, sgt_net_place p, const char *program, const sgt_stop *stop, sgt_error *err)
{
    address a = {.port = -1};
    char here[256] = "";
    sgt_error why = {0};
    int rc = load_mpi(err);
    if (rc < 0 || (rc = mpi->open(p.rank, p.size, &p.local, err)) < 0) return rc;
    gethostname(here, sizeof here - 1);
    if (p.rank == 0) {
        memcpy(a.host, here, sizeof a.host);
        p.listener = sgt_net_listen(&a.port, &why);
        if (getentropy(&a.token, sizeof a.token) < 0) a.token = 1;
    }
    if ((rc = mpi->broadcast(&a, sizeof a, 0, err)) < 0) return rc;
    if (a.port < 0) return sgt_fail(err, SGT_EIO, "%s", p.rank ? "rank 0 has no port to listen on" : why.text);
    p.host = strcmp(a.host, here) == 0 ? "localhost" : a.host;
    p.port = a.port;
    p.token = a.token;
    return sgt_net_join(out, &p, program, stop, err);
}

static int swap(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in, size_t in_bytes,
                sgt_error *err)
{
    return mpi->swap(to, out, out_bytes, from, in, in_bytes, &r->given_up, err);
}

/* ---- this rank among the others ---- */

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * 1099511628211u; /* FNV-1a */
    return h;
}

/* Launchers bind ranks to cores of their own, or do not: ranks of one machine that may run on the same cores. */
static int count_sharing(sgt_ranks *r, sgt_error *err)
{
    char here[256] = "";
    cpu_set_t cores;
    double *all = calloc(r->size, sizeof *all);
    if (!all) return sgt_fail(err, SGT_ENOMEM, "ranks: out of memory");
    gethostname(here, sizeof here - 1);
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    uint64_t place = mix(mix(14695981039346656037u, here, sizeof here), &cores, sizeof cores);
    all[r->rank] = (double)(place >> 12); /* what a double holds */
    double mine = all[r->rank];
    int rc = r->sum(r, all, r->size, err);
    for (uint32_t i = 0; i < r->size; i++) r->sharing += all[i] == mine;
    free(all);
    return rc;
}

/* SGT_RANKS_SHARE=0: as if every rank were on a machine of its own. */
static int see_memory(sgt_ranks *r, sgt_error *err)
{
    const char *share = getenv("SGT_RANKS_SHARE");
    double lone = share && strcmp(share, "0") == 0;
    int rc = r->sum(r, &lone, 1, err);
    return rc == SGT_OK && lone == 0 ? sgt_ranks_memory_join(r, err) : rc;
}

int sgt_ranks_open(sgt_ranks **out, const char *program, const sgt_stop *stop, sgt_error *err)
{
    const launcher *l;
    long rank, size, local;
    *out = NULL;
    int rc = find(&l, &rank, &size, &local, err);
    if (rc < 0 || !l) return rc;
    sgt_net_place p = {.rank = (uint32_t)rank, .size = (uint32_t)size, .local = (uint32_t)local, .listener = -1};
    if ((rc = (l->mpi ? join_mpi : join_torchrun)(out, p, program, stop, err)) < 0) return rc;
    if (l->mpi) (*out)->swap = swap;
    if ((rc = count_sharing(*out, err)) == SGT_OK) rc = see_memory(*out, err);
    if (rc == SGT_OK) return SGT_OK;
    (*out)->give_up(*out, err);
    sgt_net_leave(*out, SGT_EXIT_FAILED);
    *out = NULL;
    return rc;
}

void sgt_ranks_close(sgt_ranks *r, int code)
{
    if (r) sgt_net_leave(r, code);
    if (mpi && !code) mpi->close();
}
