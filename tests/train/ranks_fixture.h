/* ranks_fixture.h: ranks for tests. The calls of base/ranks.h work between threads of one
 * process. */
#ifndef TESTS_TRAIN_RANKS_FIXTURE_H
#define TESTS_TRAIN_RANKS_FIXTURE_H

#include "loader/base/ranks.h"

#define MOST_RANKS 4

/* Run work(ctx, r) in `size` threads at once, one for each rank; return when all have returned. */
void as_ranks(uint32_t size, void (*work)(void *ctx, sgt_ranks *r), void *ctx);

#endif
