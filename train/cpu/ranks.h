/* ranks.h: a training step on several CPU ranks. Each rank computes its own rows of the batch. The
 * optimizer is sharded, as in ZeRO-1:
 *
 *   - The flat arrays are cut into buckets, in the order in which the backward pass completes their
 *     gradients: the tensors after the blocks, each block from the last to the first, the
 *     embeddings. Every rank owns a part of every bucket.
 *   - Reduce-scatter, in a step's last micro-step: each rank sums all ranks' gradients of the parts
 *     that it owns, in the order of ranks.
 *   - Update: each rank updates only its own parts, at once or during the next forward pass.
 *   - All-gather: each rank receives the parameters that the other ranks updated. All ranks end
 *     with the same bits.
 *
 * ranks_shm.c does this on one machine, through shared memory. ranks_mpi.c does it on several, with
 * the swap call of base/ranks.h and a communication thread. ranks.c holds what both share. With one
 * rank c->group is NULL; then sgt_cpu_ranks_lay_out_grads, _reduce and _gather must not be called,
 * and the other calls do nothing. Collective calls must be made by all ranks, in the same order. */
#ifndef SGT_CPU_RANKS_H
#define SGT_CPU_RANKS_H

#include "train/backend.h"
#include "train/cpu/cpu_backend.h"

/* Create c->group if r is not NULL, and set c->shape.ranks, c->shape.rank and c->shape.sharing. */
int sgt_cpu_ranks_new(sgt_cpu_backend *c, sgt_ranks *r, sgt_error *err);

/* Take the progress counters (first call) and all ranks' gradients (second call) from
 * c->buf.common. sgt_cpu_lay_out makes the first call before it takes anything else there, and the
 * second one last. lay_out_grads returns this rank's gradients. */
void sgt_cpu_ranks_lay_out(sgt_cpu_backend *c);
float *sgt_cpu_ranks_lay_out_grads(sgt_cpu_backend *c);

/* Map c->buf.common, and drop the pieces of c->update.pieces that other ranks own. Collective. */
int sgt_cpu_ranks_open(sgt_cpu_backend *c, sgt_error *err);
void sgt_cpu_ranks_close(sgt_cpu_backend *c);

/* Tell the group about progress. begin: a micro-step begins. ready: the gradients of the next
 * bucket are complete. mid_block: the backward pass is in the middle of a block. */
void sgt_cpu_ranks_begin(sgt_cpu_backend *c, uint32_t micro);
void sgt_cpu_ranks_ready(sgt_cpu_backend *c);
void sgt_cpu_ranks_mid_block(sgt_cpu_backend *c);

/* Finish the reduce-scatter, before the update. Afterwards the gradients of c->update.pieces are
 * sums over all ranks, and c->step.loss_sum, c->step.counted and *squares cover the whole step.
 * Collective. */
int sgt_cpu_ranks_reduce(sgt_cpu_backend *c, double *squares, sgt_error *err);

/* All-gather the parameters after the update, unless the update was deferred. `updated` is 0 if the
 * step was dropped and left them unchanged. Collective. */
int sgt_cpu_ranks_gather(sgt_cpu_backend *c, int updated, sgt_error *err);

/* For a deferred update (update.c) on one machine. updated: tell the other ranks that this rank has
 * updated its first `pieces` pieces. await_tensor, await_all: wait until all ranks have updated
 * their pieces, up to a tensor of a block or all of them. */
void sgt_cpu_ranks_updated(sgt_cpu_backend *c, size_t pieces);
void sgt_cpu_ranks_await_tensor(sgt_cpu_backend *c, const sgt_cpu_block *l, size_t tensor);
void sgt_cpu_ranks_await_all(sgt_cpu_backend *c);

/* Barrier: every rank must finish its embedding lookups before any rank updates wte. */
void sgt_cpu_ranks_embedded(sgt_cpu_backend *c);

/* Return the error of sgt_cpu_ranks_updated, _await_tensor, _await_all or _embedded. The forward
 * pass, which calls them, cannot return it. */
int sgt_cpu_ranks_failed(const sgt_cpu_backend *c, sgt_error *err);

/* Return a pointer to the gradient from float `at` on, summed over ranks. With several ranks, set
 * *n to how many floats from there on have the same owner. */
const float *sgt_cpu_ranks_summed(const sgt_cpu_backend *c, size_t at, size_t *n);

/* puts: return whether this rank writes such state; rank 0 alone writes state that all ranks share.
 * await_puts: wait until rank 0 has written it. Collective. */
int sgt_cpu_ranks_puts(sgt_cpu_backend *c, sgt_state what);
int sgt_cpu_ranks_await_puts(sgt_cpu_backend *c, sgt_error *err);

/* Fill `to` (`count` floats) with a flat array's values from float `at` on, each from the rank that
 * owns it. Before the call, `to` holds this rank's copy. Collective. */
int sgt_cpu_ranks_get(sgt_cpu_backend *c, sgt_state what, size_t at, size_t count, float *to,
                      sgt_error *err);

#endif
