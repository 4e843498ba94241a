/* blocks.h: read-ahead for the sampling `block`. A block is a range of consecutive windows. Each
 * block is read once, as a whole and before rows need it, and windows are copied out of it. All
 * cursors of a reader share the blocks.
 *
 * Blocks only save time: if the block of a window is not in memory, the caller reads the window
 * itself. This happens in three cases:
 * - after a jump to a different position in the run
 * - if the block could not be read
 * - if the block consists of too many extents (contiguous ranges of tokens in one shard)
 *
 * Read-ahead moves to a new position only when two consecutive fetches need the same pool there
 * (256 blocks, see sampler.h). Therefore, a single batch from a different position causes no reads
 * besides those of its own windows.
 *
 * Memory per set: 2 1/8 pools, in huge pages. A block has K = ceil(131072 / T) windows and, around
 * them, the rest of the disk sectors in which they begin and end. That is 140 MiB at T = 1024, and
 * at most 276 MiB; with 4-byte ids, twice as much.
 *
 * Blocks are not used in two cases:
 * - There are more than SGT_BLOCKS_SETS sets. In this case, a notice is sent.
 * - Rows have more than 131,072 tokens, so that reads of single windows are large anyway.
 *
 *     sgt_blocks *b;
 *     if (sgt_blocks_open(&b, rings, set, options, mix, &err) < 0) ...;   // once
 *     sgt_blocks_fetch(b, windows, n, memory, room, tokens);              // any thread
 *     for (i = 0; i < n; i++)
 *         if (!tokens[i]) ...;                                            // read window i yourself
 *     sgt_blocks_close(b); */
#ifndef SGT_BLOCKS_H
#define SGT_BLOCKS_H

#include <stdint.h>

#include "loader/read/ring.h"
#include "loader/sample/sampler.h"

#define SGT_BLOCKS_SETS 4u

typedef struct sgt_blocks sgt_blocks;

/* Allocate memory for blocks of each set. The arguments must outlive *out. If blocks are not used,
 * set *out to NULL and return SGT_OK. This is so
 * - if the sampling is not `block`
 * - if rows are longer than a block
 * - if there are more than SGT_BLOCKS_SETS sets, whose blocks would take too much memory */
int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err);
void sgt_blocks_close(sgt_blocks *b); /* NULL is fine */

/* For each window i whose block is in memory, copy the window to memory + i * room, and set
 * tokens[i] to the address of the copy. The caller sets all elements of `tokens` to NULL before the
 * call; those of the other windows stay NULL. If a needed block is being read, wait for it. Also
 * start reading the blocks that come after the needed ones. */
void sgt_blocks_fetch(sgt_blocks *b, const sgt_window *windows, uint32_t n, char *memory,
                      size_t room, const void **tokens);

#endif
