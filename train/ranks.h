/* ranks.h: the other processes of a run that has several. A program finds them (tools/cli/ranks.h) and hands this to
 * libraries, which pass it on; NULL is one rank, alone.
 *
 *     if (ranks && (rc = ranks->sum(ranks, &loss, 1, err)) < 0) return rc;
 *
 * broadcast, sum and barrier are made by every rank, in the same order and with the same sizes, from one thread; they
 * wait for the others and are for what is rare and small: gradients go their own way. They give 0 or a negative SGT_E*
 * with *err filled in: SGT_EIO when a rank is gone. A rank that fails calls give_up before it frees what the others may
 * wait for; from then on it waits for nobody, and the program that made this ends all ranks.
 *
 * CPU ranks pass gradients on through memory that all of them see, where they are on one machine, and by swap where
 * they are not. Either may be NULL: the ranks, or what joins them, do not have it; all ranks have the same. */
#ifndef SGT_RANKS_H
#define SGT_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct sgt_ranks sgt_ranks;
struct sgt_ranks {
    uint32_t rank, size; /* this one, from 0; how many */
    uint32_t local;      /* which of those on this machine, from 0 */
    uint32_t sharing;    /* ranks that run on the same cores as this one, it among them; 0: 1 */
    int given_up;        /* give_up was called: read and written atomically */
    int (*broadcast)(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err); /* root's bytes to all */
    int (*sum)(sgt_ranks *r, double *x, size_t n, sgt_error *err); /* added in the order of ranks: the same in all */
    int (*barrier)(sgt_ranks *r, sgt_error *err);
    void (*give_up)(sgt_ranks *r, const sgt_error *why);

    /* Made by every rank, like barrier: `bytes` of zeros at *at, the same memory for all; each lets go of it by itself.
     * SGT_EUSAGE where ranks want different sizes. */
    int (*share)(sgt_ranks *r, size_t bytes, void **at, sgt_error *err);
    void (*unshare)(sgt_ranks *r, void *at, size_t bytes);

    /* `out` goes to rank `to` while `in` comes from rank `from`; either may be of 0 bytes, and none is 2^31 or more.
     * Pairs of ranks agree on sizes and order; the others take no part. Any thread may call it, one at a time and not
     * beside the calls above. Waits asleep: it leaves its core to who computes. */
    int (*swap)(sgt_ranks *r, uint32_t to, const void *out, size_t out_bytes, uint32_t from, void *in, size_t in_bytes,
                sgt_error *err);
};

/* Whether this process is the one that talks, logs and saves. */
static inline int sgt_ranks_first(const sgt_ranks *r) { return !r || r->rank == 0; }
static inline uint32_t sgt_ranks_size(const sgt_ranks *r) { return r ? r->size : 1; }

/* Whether this rank, or another that has told it so, is past waiting for. */
static inline int sgt_ranks_lost(const sgt_ranks *r) { return __atomic_load_n(&r->given_up, __ATOMIC_ACQUIRE); }

#endif
