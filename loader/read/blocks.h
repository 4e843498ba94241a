/* blocks.h: sampling `block` for readers of files: the blocks of `--sampling block`, each read whole
 * and once. A thread for each set of a mix reads the blocks of the pool in use, then those of the
 * next pool. Windows are copied out of them. All cursors of a reader share the pools.
 *
 * They exist for speed alone. The caller reads windows that the pools do not have one by one, and so
 * gets their errors: windows after a jump, and those of a block that could not be read or has too
 * many parts. A pool is begun when two fetches in a row ask for it, so that occasional batches cost
 * no more than their windows.
 *
 * Memory: two pools of 256 blocks, each of K = ceil(131072 / T) windows and the sectors around them,
 * in huge pages: 132 MiB at T = 1024, at most 260 MiB, for each set. With more than SGT_BLOCKS_SETS
 * sets there are no pools, and a notice says so. Rows of more than 131,072 tokens are large reads by
 * themselves and have no pools.
 *
 *     sgt_blocks *b;
 *     if (sgt_blocks_open(&b, rings, set, options, &err) < 0) ...;   // once
 *     sgt_blocks_cursor *c;
 *     if (sgt_blocks_cursor_open(&c, b, &err) < 0) ...;              // per thread
 *     sgt_blocks_fetch(c, windows, n, tokens);
 *     ... read the windows with tokens[i] == NULL yourself ...
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

/* Open a cursor. The first one starts the reading threads. */
int sgt_blocks_cursor_open(sgt_blocks_cursor **out, sgt_blocks *b, sgt_error *err);
void sgt_blocks_cursor_close(sgt_blocks_cursor *c); /* NULL is fine */

/* Set tokens[i] to the first token of window i, for every window that a pool has, and to NULL for
 * the others. The cursor owns these tokens until its next fetch. Waits for blocks that are being
 * read. */
void sgt_blocks_fetch(sgt_blocks_cursor *c, const sgt_window *windows, uint32_t n,
                      const uint16_t **tokens);

/* Return how many block reads have ended, successfully or not. Tests check that each block is read
 * once. */
uint64_t sgt_blocks_read(sgt_blocks *b);

#endif
