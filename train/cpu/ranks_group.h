/* ranks_group.h: what ranks.c, ranks_shm.c and ranks_mpi.c share, and no other file includes. */
#ifndef SGT_CPU_RANKS_GROUP_H
#define SGT_CPU_RANKS_GROUP_H

#include "cpu/comm_thread.h"
#include "cpu/ranks.h"

#define SGT_CPU_CHUNK ((size_t)1 << 20) /* floats sent at a time */

/* Sums over ranks that every step needs. */
enum { SGT_CPU_LOSS, SGT_CPU_TARGETS, SGT_CPU_SQUARES, SGT_CPU_SUMS };

/* How gradients and parameters travel. All but `ready`, `mid_block` and `close` are collective. */
typedef struct sgt_cpu_transport {
    int (*open)(sgt_cpu_backend *c, sgt_error *err);
    void (*close)(sgt_cpu_group *g); /* after a failed open, too */
    void (*ready)(sgt_cpu_backend *c);
    void (*mid_block)(sgt_cpu_backend *c);
    /* Finish the reduce-scatter; c->buf.squares becomes the squares of each summed piece. */
    int (*reduce)(sgt_cpu_backend *c, sgt_error *err);
    int (*sum)(sgt_cpu_group *g, double sums[SGT_CPU_SUMS], sgt_error *err);
    int (*gather)(sgt_cpu_backend *c, int updated, sgt_error *err);
    /* Copy n floats of the state from their owner; then wait until all ranks have copied. */
    int (*get)(sgt_cpu_group *g, uint32_t owner, size_t at, size_t n, float *to, sgt_error *err);
    int (*got)(sgt_cpu_group *g, sgt_error *err);
} sgt_cpu_transport;

extern const sgt_cpu_transport sgt_cpu_shm, sgt_cpu_mpi;

/* How far a rank is, in shared memory. A number is stored (release) after the data that it
 * promises, and loaded (acquire) before that data is read. */
typedef struct sgt_cpu_progress {
    _Alignas(128) uint32_t now; /* buckets and barriers, counted on from step to step */
    uint32_t updated;           /* tensors of deferred updates, and one more for all of an update */
    double sums[SGT_CPU_SUMS];
} sgt_cpu_progress;

typedef struct sgt_cpu_shm_state {
    void *memory;
    size_t bytes;
    sgt_cpu_progress *progress; /* (ranks) */
    float **grads;              /* (ranks): each rank's flat gradients */
    size_t summed;              /* buckets of this step that this rank has summed */
    uint32_t now;               /* this rank's progress.now */
    uint32_t step;              /* progress.now after the last barrier */
    int stale;                  /* rank 0 may still be writing state */
    uint32_t updates;           /* progress.updated before the deferred update */
    uint32_t mine, theirs;      /* its tensors that this rank has updated; that all ranks have */
    int rc;                     /* failure of a deferred update's waiting */
    sgt_error err;
} sgt_cpu_shm_state;

typedef struct sgt_cpu_mpi_state {
    sgt_comm_thread thread;
    float *received; /* (ranks, SGT_CPU_CHUNK) */
} sgt_cpu_mpi_state;

struct sgt_cpu_group {
    sgt_ranks *r;
    const sgt_cpu_transport *transport;
    size_t buckets;
    size_t *part; /* (buckets, ranks + 1): begin of each rank's part; last the bucket's end */
    size_t *end;  /* (buckets + 1): this rank's pieces of bucket b are end[b + 1] .. end[b] - 1 */
    size_t ready; /* buckets whose gradients are complete on this rank, in this step */
    int reducing; /* this is the step's last micro-step */
    sgt_cpu_shm_state shm;
    sgt_cpu_mpi_state mpi;
};

static inline size_t *sgt_cpu_part_of(const sgt_cpu_group *g, size_t bucket, size_t rank)
{
    return g->part + bucket * (g->r->size + 1) + rank;
}

/* Return the rank that owns float `at`, and in *n how many floats of its part follow, with `at`. */
uint32_t sgt_cpu_part_owner(const sgt_cpu_group *g, size_t at, size_t *n);

/* own = x[0] + x[1] + ..., added in this order; own is one of them. */
void sgt_cpu_add_up(const sgt_kernels *k, float *own, const float *const *x, size_t ranks,
                    size_t n);

#endif
