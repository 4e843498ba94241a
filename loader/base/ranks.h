/* ranks.h: the interface through which a library talks to the other processes ("ranks") of a job.
 * tools/ranks joins the processes that a launcher started and fills this struct in; tokenize and
 * train call its functions. A NULL pointer means that this process is alone.
 *
 *     if (ranks && (rc = ranks->sum(ranks, &loss, 1, err)) < 0) return rc;
 *
 * broadcast, sum and barrier are collective: every rank calls them in the same order, with the same
 * sizes, from one thread. They wait for all ranks and are meant for small, rare data; gradients
 * travel by swap instead. They return 0, or a negative SGT_E* with *err filled in: SGT_EIO if a
 * rank is gone. A rank that fails calls give_up before it frees what other ranks may wait for. That
 * ends all ranks, with one message, and may not return; if it does, the rank waits for nobody from
 * then on. */
#ifndef SGT_BASE_RANKS_H
#define SGT_BASE_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_ranks sgt_ranks;
struct sgt_ranks {
    uint32_t rank, size; /* number of this rank, from 0; number of ranks */
    uint32_t local;      /* number of this rank among those of its machine, from 0 */
    /* number of ranks on this machine, and number of ranks that may run on the same cores as this
     * rank. Both include this rank; 0 means 1 */
    uint32_t here, sharing;
    int given_up; /* 1 after give_up was called; read and written atomically */

    /* Copy the n bytes of rank `root` to all ranks. broadcast, sum, barrier and give_up are NULL if
     * the ranks share only a file system, which is enough for sgt_tokenize. */
    int (*broadcast)(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err);
    /* Replace x[n] by its sums over all ranks, added in rank order, so that every rank gets the
     * same bits. */
    int (*sum)(sgt_ranks *r, double *x, size_t n, sgt_error *err);
    int (*barrier)(sgt_ranks *r, sgt_error *err);
    void (*give_up)(sgt_ranks *r, const sgt_error *why);

    /* Send `out` to rank `to` while receiving `in` from rank `from`. Either may have 0 bytes; both
     * are below 2^31. The two ranks of a pair agree on sizes and order; other ranks take no part.
     * Any thread may call it, but only one at a time, and not during the calls above. A waiting
     * call sleeps, which leaves the core to computation. NULL in all ranks unless MPI joined
     * them. */
    int (*swap)(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from,
                void *in, size_t in_bytes, sgt_error *err);
};

/* Return whether this is rank 0 or the only process, the one that prints, logs and saves. */
static inline int sgt_ranks_first(const sgt_ranks *r) { return !r || r->rank == 0; }
static inline uint32_t sgt_ranks_size(const sgt_ranks *r) { return r ? r->size : 1; }
static inline uint32_t sgt_ranks_here(const sgt_ranks *r) { return r && r->here ? r->here : 1; }

/* Return whether broadcast, sum, barrier and give_up can be called. */
static inline int sgt_ranks_connected(const sgt_ranks *r) { return r && r->sum; }

#endif
