/* ranks.h: the other processes of a run that has several. A program finds them (tools/cli/ranks.h) and hands this to
 * libraries, which pass it on; NULL is one rank, alone.
 *
 *     if (ranks && (rc = ranks->sum(ranks, &loss, 1, err)) < 0) return rc;
 *
 * broadcast, sum and barrier are made by every rank, in the same order and with the same sizes, from one thread; they
 * wait for the others and are for what is rare and small: gradients go their own way. They give 0 or a negative SGT_E*
 * with *err filled in: SGT_EIO when a rank is gone. A rank that fails calls give_up before it frees what the others may
 * wait for; from then on it waits for nobody, and the program that made this ends all ranks. */
#ifndef SGT_RANKS_H
#define SGT_RANKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct sgt_ranks sgt_ranks;
struct sgt_ranks {
    uint32_t rank, size; /* this one, from 0; how many */
    uint32_t local;      /* which of those on this machine, from 0 */
    int given_up;        /* give_up was called */
    int (*broadcast)(sgt_ranks *r, void *bytes, size_t n, uint32_t root, sgt_error *err); /* root's bytes to all */
    int (*sum)(sgt_ranks *r, double *x, size_t n, sgt_error *err); /* added in the order of ranks: the same in all */
    int (*barrier)(sgt_ranks *r, sgt_error *err);
    void (*give_up)(sgt_ranks *r, const sgt_error *why);
};

/* Whether this process is the one that talks, logs and saves. */
static inline int sgt_ranks_first(const sgt_ranks *r) { return !r || r->rank == 0; }
static inline uint32_t sgt_ranks_size(const sgt_ranks *r) { return r ? r->size : 1; }

#endif
