/* ranks_fixture.h: ranks for tests: base/ranks.h among the threads of one process. */
#ifndef TESTS_TRAIN_RANKS_FIXTURE_H
#define TESTS_TRAIN_RANKS_FIXTURE_H

#include "loader/base/ranks.h"

#define MOST_RANKS 4

/* How ranks exchange gradients: through shared memory, or with messages. */
enum { BY_MEMORY = 1, BY_SWAP = 2 };

/* Run work(ctx, r) in `size` threads at once, one for each rank; return when all have returned.
 * ways: how gradients may be exchanged. */
void as_ranks(uint32_t size, int ways, void (*work)(void *ctx, sgt_ranks *r), void *ctx);

#endif
