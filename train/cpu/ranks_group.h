/* ranks_group.h: internals that ranks.c, ranks_shm.c and ranks_mpi.c share; no other file includes
 * it. */
#ifndef SGT_CPU_RANKS_GROUP_H
#define SGT_CPU_RANKS_GROUP_H

#include "train/cpu/comm_thread.h"
#include "train/cpu/ranks.h"

#define SGT_CPU_CHUNK ((size_t)1 << 20) /* floats sent at a time */

/* The sums over ranks that every step needs. */
enum { SGT_CPU_LOSS, SGT_CPU_TARGETS, SGT_CPU_SQUARES, SGT_CPU_SUMS };

/* How gradients and parameters travel between ranks. All calls except `ready`, `mid_block` and
 * `close` are collective. */
typedef struct sgt_cpu_transport {
    int (*open)(sgt_cpu_backend *c, sgt_error *err);
    void (*close)(sgt_cpu_group *g); /* also called after a failed open */
    void (*ready)(sgt_cpu_backend *c);
    void (*mid_block)(sgt_cpu_backend *c);
    /* Finish the reduce-scatter, and fill c->buf.squares with the sum of squares of each summed
     * piece. */
    int (*reduce)(sgt_cpu_backend *c, sgt_error *err);
    int (*sum)(sgt_cpu_group *g, double sums[SGT_CPU_SUMS], sgt_error *err);
    int (*gather)(sgt_cpu_backend *c, int updated, sgt_error *err);
    /* get: copy n floats of the state from their owner. got: wait until all ranks have copied. */
    int (*get)(sgt_cpu_group *g, uint32_t owner, size_t at, size_t n, float *to, sgt_error *err);
    int (*got)(sgt_cpu_group *g, sgt_error *err);
} sgt_cpu_transport;

extern const sgt_cpu_transport sgt_cpu_shm, sgt_cpu_mpi;

/* How far a rank has come in a step, in memory that all ranks share. A counter is stored (release)
 * after the data that it announces, and loaded (acquire) before that data is read. */
typedef struct sgt_cpu_progress {
    _Alignas(128) uint32_t now; /* buckets and barriers done; never reset between steps */
    uint32_t updated; /* tensors updated by deferred updates, plus one for each complete update */
    double sums[SGT_CPU_SUMS];
} sgt_cpu_progress;

typedef struct sgt_cpu_shm_state {
    void *memory;
    size_t bytes;
    sgt_cpu_progress *progress; /* (ranks): the ranks' counters */
    float **grads;              /* (ranks): each rank's flat gradients */
    size_t summed;              /* number of buckets of this step that this rank has summed */
    uint32_t now;               /* copy of this rank's progress.now */
    uint32_t step;              /* value of progress.now after the last barrier */
    /* 1: rank 0 may still be writing shared parameters and moments, so wait for it before reading
     * them */
    int stale;
    uint32_t updates; /* value of progress.updated before the deferred update */
    /* how many tensors of that update this rank has updated; how many all ranks have */
    uint32_t mine, theirs;
    int rc; /* error of waiting for a deferred update */
    sgt_error err;
} sgt_cpu_shm_state;

typedef struct sgt_cpu_mpi_state {
    sgt_comm_thread thread;
    float *received; /* (ranks, SGT_CPU_CHUNK): chunks received from each rank */
} sgt_cpu_mpi_state;

struct sgt_cpu_group {
    sgt_ranks *r;
    const sgt_cpu_transport *transport;
    size_t buckets;
    size_t *part; /* (buckets, ranks + 1): first float of each part, then the bucket's end */
    /* 1: ranks take turns at the parts of a block. Muon's are whole matrices: of two parts, the
     * first has twice the arithmetic of the second. */
    int rotate;
    size_t *end;  /* (buckets + 1): this rank's pieces of bucket b are end[b + 1] .. end[b] - 1 */
    size_t ready; /* number of buckets whose gradients are complete on this rank, in this step */
    int reducing; /* the step's last micro-step is running */
    sgt_cpu_shm_state shm;
    sgt_cpu_mpi_state mpi;
};

/* Return the parts of a bucket. */
static inline size_t *sgt_cpu_parts(const sgt_cpu_group *g, size_t bucket)
{
    return g->part + bucket * (g->r->size + 1);
}
/* Return the first float of a rank's part, which is followed by the part's end. */
static inline const size_t *sgt_cpu_part_of(const sgt_cpu_group *g, size_t bucket, size_t rank)
{
    return sgt_cpu_parts(g, bucket) + (g->rotate ? (rank + bucket) % g->r->size : rank);
}

/* ---- ranks_parts.c ---- */
/* Divide every bucket among the ranks, and drop the pieces of the other ranks from the update. */
void sgt_cpu_divide(sgt_cpu_group *g, const sgt_model *m, sgt_cpu_update *u);
/* Return the rank that owns float `at`. Set *n to the floats from `at` to the end of its part. */
uint32_t sgt_cpu_part_owner(const sgt_cpu_group *g, size_t at, size_t *n);

/* Set own = x[0] + x[1] + ..., added in this order; own is one of the arrays in x. */
void sgt_cpu_add_up(const sgt_kernels *k, float *own, const float *const *x, size_t ranks,
                    size_t n);

#endif
