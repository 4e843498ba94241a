/* ranks_fixture.h: threads as ranks: base/ranks.h among the threads of one process. */
#ifndef TESTS_TRAIN_RANKS_FIXTURE_H
#define TESTS_TRAIN_RANKS_FIXTURE_H

#include "loader/base/ranks.h"

#define MOST_RANKS 4

/* How gradients are exchanged. */
enum { BY_MEMORY = 1, BY_SWAP = 2 };

/* Call work(ctx, r) as each of `size` ranks at once; return when all have returned. */
void as_ranks(uint32_t size, int ways, void (*work)(void *ctx, sgt_ranks *r), void *ctx);

#endif
