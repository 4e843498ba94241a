/* blocks.h: read-ahead for sampling `block`. A block is a range of consecutive windows. Each block
 * is read once, completely and before rows need it, and windows are copied out of it. All cursors
 * of a reader share the blocks.
 *
 * Blocks only save time: if a window's block is not in memory, the caller reads the window itself.
 * There are three cases:
 * - after a jump to a different position in the run
 * - if the block could not be read
 * - if the block consists of too many extents
 *
 * Read-ahead moves to a new position only when two consecutive fetches need the same pool (256
 * blocks, see sampler.h). Therefore, a single batch from a different position causes no reads
 * besides those of its own windows.
 *
 * Memory per set: 2 1/8 pools, in huge pages. A block has K = ceil(131072 / T) windows and the disk
 * sectors around them. That is 140 MiB at T = 1024, and at most 276 MiB; with 4-byte ids, twice as
 * much.
 *
 * Blocks are not used in two cases:
 * - There are more than SGT_BLOCKS_SETS sets. In this case, a notice is given.
 * - Rows have more than 131,072 tokens, so that their reads are large anyway.
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

/* Open one store of blocks for each set. The arguments must outlive the blocks. Sets *out to NULL
 * and returns SGT_OK if blocks are not used:
 * - if the sampling is not `block`
 * - if rows are longer than a block
 * - if there are more than SGT_BLOCKS_SETS sets, whose blocks would take too much memory */
int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err);
void sgt_blocks_close(sgt_blocks *b); /* NULL is fine */

/* For each window i whose block is stored, copy the window to memory + i * room and set tokens[i]
 * to the copy. The caller sets all tokens[i] to NULL before the call; the others stay NULL. Waits
 * for needed blocks that are being read, and starts reading the blocks after them. */
void sgt_blocks_fetch(sgt_blocks *b, const sgt_window *windows, uint32_t n, char *memory,
                      size_t room, const void **tokens);

#endif
