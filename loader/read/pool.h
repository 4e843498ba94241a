/* pool.h: the blocks of `--sampling block` read whole, each once: those of the pool that is drawn
 * from, and ahead, in the background, those of the pool that comes next. Windows are copied out of
 * them. One for all cursors of a reader, or, of a mix, one a set (blocks.h).
 *
 * It is for speed alone: what it does not have (a jump, a block that could not be read, one in too
 * many pieces) it leaves to its caller, who reads such windows one by one and so finds out what is
 * wrong with them. A pool is begun when two fetches in a row ask for the same one: a batch here and
 * a batch there cost no more than their windows.
 *
 * Memory: two pools of 256 blocks, each of K = ceil(131072 / T) windows and the sectors around
 * them, in huge pages: 132 MiB at T = 1024, at most 260 MiB. Rows of more than 131,072 tokens are
 * large reads by themselves, and have none.
 *
 *     sgt_pool *p;
 *     if (sgt_pool_open(&p, rings, set, sampler, 0, &err) < 0) ...;  // once
 *     sgt_pool_cursor *c;
 *     if (sgt_pool_cursor_open(&c, p, windows, &err) < 0) ...;       // a thread
 *     missing = sgt_pool_fetch(c, windows, n, tokens);
 *     sgt_pool_cursor_close(c);
 *     sgt_pool_close(p); */
#ifndef SGT_POOL_H
#define SGT_POOL_H

#include <stdint.h>

#include "read/ring.h"
#include "sample/sampler.h"

typedef struct sgt_pool sgt_pool;
typedef struct sgt_pool_cursor sgt_pool_cursor;

/* *out NULL, and SGT_OK: rows are too long for it. The sampler's shard 0 is shard `first` of the
 * set. What is handed over outlives it. */
int sgt_pool_open(sgt_pool **out, sgt_rings *rings, const sgt_set *set, const sgt_sampler *sampler,
                  uint32_t first, sgt_error *err);
void sgt_pool_close(sgt_pool *p); /* after its cursors, at any moment else; NULL is fine */

/* The first one starts the thread that reads. windows: the most that a fetch asks for. */
int sgt_pool_cursor_open(sgt_pool_cursor **out, sgt_pool *p, uint32_t windows, sgt_error *err);
void sgt_pool_cursor_close(sgt_pool_cursor *c); /* NULL is fine */

/* tokens[i]: window i, in memory of the cursor's, until its next fetch; NULL where the pool does
 * not have it. Returns how many are NULL. Waits for blocks that are on their way. */
uint32_t sgt_pool_fetch(sgt_pool_cursor *c, const sgt_window *windows, uint32_t n,
                        const uint16_t **tokens);

/* Blocks read so far, to their end or in vain: tests hold it to one a block. */
uint64_t sgt_pool_blocks_read(sgt_pool *p);

#endif
