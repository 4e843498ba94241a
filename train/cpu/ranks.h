/* ranks.h: a training step of several CPU ranks. Each rank computes its own rows. The optimizer is
 * sharded, as in ZeRO-1:
 *
 *   - The flat arrays are cut into buckets, in the order in which the backward pass completes their
 *     gradients: what comes after the blocks, each block from the last on, the embeddings. Every
 *     rank owns a part of every bucket.
 *   - Reduce-scatter, in a step's last micro-step: each rank adds up all ranks' gradients of its
 *     parts, in the order of ranks.
 *   - Update: each rank updates its parts alone, at once or during the next forward pass.
 *   - All-gather: each rank gets the others' new parameters. All ranks end with the same bits.
 *
 * ranks_shm.c does this on one machine, through shared memory; ranks_mpi.c on several, by swap
 * (base/ranks.h) and a communication thread. ranks.c holds what is common to both. With one
 * rank c->group is NULL; then sgt_cpu_ranks_lay_out_grads, _reduce and _gather may not be called,
 * and the other calls do nothing. Collective calls are made by all ranks, in the same order. */
#ifndef SGT_CPU_RANKS_H
#define SGT_CPU_RANKS_H

#include "backend.h"
#include "cpu_backend.h"

/* Make c->group if r is not NULL. Sets c->shape.ranks, c->shape.rank and c->shape.sharing. */
int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err);

/* Take progress counters and all ranks' gradients from c->buf.common; return this rank's gradients.
 * For sgt_cpu_lay_out: the former first, the latter last. */
void sgt_cpu_ranks_lay_out(sgt_cpu_backend *c);
float *sgt_cpu_ranks_lay_out_grads(sgt_cpu_backend *c);

/* Map c->buf.common and keep only this rank's own of c->update.pieces. Collective. */
int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err);
void sgt_cpu_ranks_close(sgt_cpu_backend *c);

/* A micro-step begins; the gradients of the next bucket are complete; the backward pass is in the
 * middle of a block. */
void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro);
void sgt_cpu_ranks_ready(sgt_cpu_backend *c);
void sgt_cpu_ranks_mid_block(sgt_cpu_backend *c);

/* Before the update: finish the reduce-scatter. Then c->update.pieces' gradients are sums over all
 * ranks; c->step.loss_sum, c->step.counted and *squares are those of the whole step. Collective. */
int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err);

/* After the update: all-gather the parameters, unless the update was deferred. `updated`: they have
 * changed. Collective. */
int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err);

/* A deferred update (update.c), on one machine: tell the other ranks that so many of this rank's
 * pieces are updated; wait until all ranks' pieces are, up to a tensor of a block, or all. */
void sgt_cpu_ranks_updated(sgt_cpu_backend *c, size_t pieces);
void sgt_cpu_ranks_await_tensor(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor);
void sgt_cpu_ranks_await_all(sgt_cpu_backend *c);

/* Barrier: every rank must finish its embedding lookups before any rank updates wte. */
void sgt_cpu_ranks_embedded(sgt_cpu_backend *c);

/* Return the failure of the four calls above, which a forward pass cannot return itself. */
int sgt_cpu_ranks_failed(const sgt_cpu_backend *c, sgt_error *err);

/* Return where the gradient from float `at` on lies, summed over ranks, and in *n how many floats
 * (with several ranks only). */
const float *sgt_cpu_ranks_summed(const sgt_cpu_backend *c, size_t at, size_t *n);

/* Whether this rank writes such state: rank 0 alone writes what all ranks share. await_puts waits
 * until it has done so. Collective. */
int sgt_cpu_ranks_puts(sgt_cpu_backend *c, sgt_state what);
int sgt_cpu_ranks_await_puts(sgt_cpu_backend *c, sgt_error *err);

/* Replace `to`, a copy of this rank's floats at .. at + count of a flat array, by their owners'
 * floats. Collective. */
int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err);

#endif
