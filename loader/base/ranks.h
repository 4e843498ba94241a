/* ranks.h: the interface through which a library communicates with the other processes ("ranks") of
 * a job. The code in tools/ranks, which knows how the launcher connected the processes, fills in
 * this struct. The libraries in tokenize and train call its functions. A NULL pointer to the struct
 * means that this process runs alone.
 *
 *     if (ranks && (rc = ranks->sum(ranks, &loss, 1, err)) < 0) return rc;
 *
 * broadcast, sum and barrier are collective: all ranks call them in the same order, with the same
 * sizes, each from one thread. They wait for all ranks, and are meant for small amounts of data
 * that are sent rarely. (Gradients are sent with swap instead.) They return 0, or a negative SGT_E*
 * with *err filled in. The code is SGT_EIO if a rank has ended. A rank that fails must call give_up
 * before it frees memory that other ranks may still use. give_up prints one message and ends all
 * ranks, and usually does not return. If it does return, this rank no longer waits for other
 * ranks. */
#ifndef SGT_BASE_RANKS_H
#define SGT_BASE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_ranks sgt_ranks;
struct sgt_ranks {
    uint32_t rank, size; /* rank: index of this rank, from 0; size: number of ranks */
    uint32_t local;      /* index of this rank among the ranks on its machine, from 0 */
    /* here: number of ranks on this machine; sharing: number of ranks that may use the same cores
     * as this rank. Both include this rank; the value 0 means 1 */
    uint32_t here, sharing;
    int given_up; /* 1 once give_up has been called; accessed atomically */

    /* Copy the n bytes at `bytes` of rank `root` to the same buffer of all other ranks. broadcast,
     * sum, barrier and give_up are NULL if the ranks have only a file system in common, which is
     * enough for sgt_tokenize. */
    int (*broadcast)(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err);
    /* Replace each of the n elements of x with its sum over all ranks. The values are added in rank
     * order, so that every rank gets exactly the same result. */
    int (*sum)(sgt_ranks *r, double *x, size_t n, sgt_error *err);
    int (*barrier)(sgt_ranks *r, sgt_error *err);
    void (*give_up)(sgt_ranks *r, const sgt_error *why);

    /* Send `out` to rank `to` while receiving `in` from rank `from`. Each buffer may be empty and
     * must be smaller than 2^31 bytes. The two ranks of a transfer must agree on its size and on
     * the order of their transfers; other ranks need not take part. Any thread may call swap, but
     * only one thread at a time, and not during broadcast, sum or barrier. A call that waits
     * sleeps, so that other threads can use the core. swap is NULL unless MPI connects the
     * ranks. */
    int (*swap)(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from,
                void *in, size_t in_bytes, sgt_error *err);
};

/* Return 1 if this process is rank 0 or runs alone, otherwise 0. Only that process prints, logs and
 * saves. */
static inline int sgt_ranks_first(const sgt_ranks *r) { return !r || r->rank == 0; }
static inline uint32_t sgt_ranks_size(const sgt_ranks *r) { return r ? r->size : 1; }
static inline uint32_t sgt_ranks_here(const sgt_ranks *r) { return r && r->here ? r->here : 1; }

/* Return 1 if the ranks can communicate, that is, if broadcast, sum, barrier and give_up are not
 * NULL. Return 0 if they cannot, or if this process runs alone. */
static inline int sgt_ranks_connected(const sgt_ranks *r) { return r && r->sum; }

#endif
