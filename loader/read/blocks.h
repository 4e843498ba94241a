/* blocks.h: sampling `block` for readers of files: a pool of blocks for each set of a mix.
 * With more than SGT_BLOCKS_SETS sets there are no pools, and windows are read one by one; a notice
 * says so.
 *
 *     sgt_blocks *b;
 *     if (sgt_blocks_open(&b, rings, set, options, &err) < 0) ...;   // once
 *     sgt_blocks_cursor *c;
 *     if (sgt_blocks_cursor_open(&c, b, &err) < 0) ...;              // per thread
 *     k = sgt_blocks_fetch(c, windows, n, tokens, &left, &where);
 *     ... read windows left[0 ... k-1] yourself; set where[0 ... k-1] to their tokens ...
 *     sgt_blocks_put(c, tokens);
 *     sgt_blocks_cursor_close(c);
 *     sgt_blocks_close(b); */
#ifndef SGT_BLOCKS_H
#define SGT_BLOCKS_H

#include <stdint.h>

#include "loader/read/ring.h"
#include "loader/sample/sampler.h"

#define SGT_BLOCKS_SETS 4u

typedef struct sgt_blocks sgt_blocks;
typedef struct sgt_blocks_cursor sgt_blocks_cursor;

/* Open the pools. Returns SGT_OK with *out NULL if the sampling is not `block`, rows are too long
 * for pools, or there are too many sets. The arguments must outlive it. */
int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_reader_options *o, sgt_error *err);
void sgt_blocks_close(sgt_blocks *b); /* after its cursors; NULL is fine */

int sgt_blocks_cursor_open(sgt_blocks_cursor **out, sgt_blocks *b, sgt_error *err);
void sgt_blocks_cursor_close(sgt_blocks_cursor *c); /* NULL is fine */

/* Set tokens[i] to the first token of window i, for every window that a pool has, and to NULL for
 * the others. Returns the number of the others. *left lists these windows in order. *where is an
 * array of as many pointers: the caller sets (*where)[j] to the tokens of (*left)[j], and then
 * calls sgt_blocks_put. The cursor owns all this memory until its next fetch. */
uint32_t sgt_blocks_fetch(sgt_blocks_cursor *c, const sgt_window *windows, uint32_t n,
                          const uint16_t **tokens, const sgt_window **left,
                          const uint16_t ***where);

/* Copy the pointers in *where of the last fetch to their places in `tokens`. */
void sgt_blocks_put(const sgt_blocks_cursor *c, const uint16_t **tokens);

/* ---- the pool of one set ----
 *
 * The blocks of `--sampling block`, each read whole and once. A thread reads the blocks of
 * the pool in use, then those of the next pool. Windows are copied out of them. All cursors of a
 * reader share one; in a mix each set has one.
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
