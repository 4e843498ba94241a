/* pool.h: the blocks of `--sampling block`, each read whole and once. A thread reads the blocks of
 * the pool in use, then those of the next pool. Windows are copied out of them. All cursors of a
 * reader share one; in a mix each set has one (blocks.h).
 *
 * It exists for speed alone. The caller reads windows that the pool does not have one by one, and
 * so gets their errors: windows after a jump, and those of a block that could not be read or has
 * too many parts. A pool is begun when two fetches in a row ask for it, so that occasional batches
 * cost no more than their windows.
 *
 * Memory: two pools of 256 blocks, each of K = ceil(131072 / T) windows and the sectors around
 * them, in huge pages: 132 MiB at T = 1024, at most 260 MiB. Rows of more than 131,072 tokens are
 * large reads by themselves and have no pools.
 *
 *     sgt_pool *p;
 *     if (sgt_pool_open(&p, rings, set, sampler, 0, &err) < 0) ...;  // once
 *     sgt_pool_cursor *c;
 *     if (sgt_pool_cursor_open(&c, p, windows, &err) < 0) ...;       // per thread
 *     missing = sgt_pool_fetch(c, windows, n, tokens);
 *     sgt_pool_cursor_close(c);
 *     sgt_pool_close(p); */
#ifndef SGT_POOL_H
#define SGT_POOL_H

#include <stdint.h>

#include "loader/read/ring.h"
#include "loader/sample/sampler.h"

typedef struct sgt_pool sgt_pool;
typedef struct sgt_pool_cursor sgt_pool_cursor;

/* Open the pools; the sampler's shard 0 is shard `first` of the set. Returns SGT_OK with *out NULL
 * if rows are too long for pools. The arguments must outlive it. */
int sgt_pool_open(sgt_pool **out, sgt_rings *rings, const sgt_set *set, const sgt_sampler *sampler,
                  uint32_t first, sgt_error *err);
void sgt_pool_close(sgt_pool *p); /* Close its cursors first. NULL is fine. */

/* Open a cursor for fetches of at most `windows` windows. The first one starts the reading
 * thread. */
int sgt_pool_cursor_open(sgt_pool_cursor **out, sgt_pool *p, uint32_t windows, sgt_error *err);
void sgt_pool_cursor_close(sgt_pool_cursor *c); /* NULL is fine */

/* Set tokens[i] to window i, in memory that the cursor owns until its next fetch, or to NULL if the
 * pool does not have it. Returns how many are NULL. Waits for blocks that are being read. */
uint32_t sgt_pool_fetch(sgt_pool_cursor *c, const sgt_window *windows, uint32_t n,
                        const uint16_t **tokens);

/* Return how many block reads have ended, successfully or not. Tests check that each block is read
 * once. */
uint64_t sgt_pool_blocks_read(sgt_pool *p);

#endif
