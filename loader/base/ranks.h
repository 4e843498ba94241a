/* ranks.h: the interface through which a library communicates with the other processes ("ranks") of
 * a job. tools/ranks fills in this struct with functions for the processes that a launcher started.
 * tokenize and train call them. A NULL pointer means that this process runs alone.
 *
 *     if (ranks && (rc = ranks->sum(ranks, &loss, 1, err)) < 0) return rc;
 *
 * broadcast, sum and barrier are collective: all ranks call them in the same order, with the same
 * sizes, from one thread. They wait for all ranks and are meant for small and rare data; gradients
 * use swap instead. They return 0, or a negative SGT_E* with *err filled in. The code is SGT_EIO if
 * a rank has ended. A rank that fails must call give_up before it frees memory that other ranks may
 * still use. give_up ends all ranks, with one message, and usually does not return. If it does,
 * this rank no longer waits for other ranks. */
#ifndef SGT_BASE_RANKS_H
#define SGT_BASE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_ranks sgt_ranks;
struct sgt_ranks {
    uint32_t rank, size; /* rank: index of this rank, from 0; size: number of ranks */
    uint32_t local;      /* index of this rank among the ranks of its machine, from 0 */
    /* here: number of ranks on this machine; sharing: number of ranks that may use the same cores
     * as this rank. Both include this rank; 0 means 1 */
    uint32_t here, sharing;
    int given_up; /* 1 once give_up has been called; accessed atomically */

    /* Copy the n bytes at `bytes` from rank `root` to all ranks. broadcast, sum, barrier and
     * give_up are NULL if the ranks share only a file system, which is enough for sgt_tokenize. */
    int (*broadcast)(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err);
    /* Replace each of the n elements of x by its sum over all ranks. Values are added in rank
     * order, so that every rank gets the same bits. */
    int (*sum)(sgt_ranks *r, double *x, size_t n, sgt_error *err);
    int (*barrier)(sgt_ranks *r, sgt_error *err);
    void (*give_up)(sgt_ranks *r, const sgt_error *why);

    /* Send `out` to rank `to` while receiving `in` from rank `from`. Each buffer may be empty and
     * must be smaller than 2^31 bytes. Sender and receiver must agree on sizes and order; other
     * ranks are not involved. Any thread may call swap, but only one thread at a time, and not
     * during broadcast, sum or barrier. A waiting call sleeps, so that other threads can use the
     * core. swap is NULL unless MPI connects the ranks. */
    int (*swap)(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from,
                void *in, size_t in_bytes, sgt_error *err);
};

/* Return whether this process is rank 0 or runs alone. It is the process that prints, logs and
 * saves. */
static inline int sgt_ranks_first(const sgt_ranks *r) { return !r || r->rank == 0; }
static inline uint32_t sgt_ranks_size(const sgt_ranks *r) { return r ? r->size : 1; }
static inline uint32_t sgt_ranks_here(const sgt_ranks *r) { return r && r->here ? r->here : 1; }

/* Return whether the ranks can communicate, that is, whether broadcast, sum, barrier and give_up
 * exist. */
static inline int sgt_ranks_connected(const sgt_ranks *r) { return r && r->sum; }

#endif
