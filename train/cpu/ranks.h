/* ranks.h: a training step on several CPU ranks. Each rank computes its own rows of the batch. The
 * optimizer is sharded, as in ZeRO-1:
 *
 *   - The flat arrays are cut into buckets, in the order in which the backward pass completes their
 *     gradients: the tensors after the blocks, each block from the last to the first, the
 *     embeddings. Every rank owns a part of every bucket.
 *   - Reduce-scatter, in a step's last micro-step: each rank sums all ranks' gradients of the parts
 *     that it owns, in the order of ranks. A communication thread does this bucket by bucket, while
 *     the backward pass continues.
 *   - Update: each rank updates only its own parts.
 *   - All-gather: each rank receives the parameters that the other ranks updated. All ranks end
 *     with the same bits.
 *
 * Gradients and parameters travel by the swap call of base/ranks.h, that is by MPI. With one rank
 * c->group is NULL; then sgt_cpu_ranks_reduce and _gather must not be called, and the other calls
 * do nothing. Collective calls must be made by all ranks, in the same order. */
#ifndef SGT_CPU_RANKS_H
#define SGT_CPU_RANKS_H

#include "train/backend.h"
#include "train/cpu/cpu_backend.h"

/* Create c->group if r is not NULL, and set what c->shape says about ranks. */
int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err);

/* Return how many floats c->buf.received needs: room for a chunk of gradients from each rank. */
size_t sgt_cpu_ranks_received(const sgt_cpu_shape *s);

/* Divide the buckets among the ranks, drop the pieces of c->update.pieces that other ranks own, and
 * start the communication thread. Collective. */
int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err);
void sgt_cpu_ranks_close(sgt_cpu_backend *c);

/* begin: a micro-step begins. ready: the gradients of the next bucket are complete. */
void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro);
void sgt_cpu_ranks_ready(sgt_cpu_backend *c);

/* Finish the reduce-scatter, before the update. Afterwards the gradients of c->update.pieces are
 * sums over all ranks, and c->step.loss_sum, c->step.counted and *squares cover the whole step.
 * Collective. */
int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err);

/* All-gather the parameters after the update. `updated` is 0 if the step was dropped and left them
 * unchanged. Collective. */
int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err);

/* Fill `to` (`count` floats) with a flat array's values from float `at` on, each from the rank that
 * owns it. Before the call, `to` holds this rank's copy. Collective. */
int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err);

#endif
