/* blocks.h: read-ahead for sampling `block`. Each block is read once and completely, before rows
 * need it, and windows are copied out of it. All cursors of a reader share the blocks.
 *
 * Blocks only save time. If a window is not in a stored block, the caller reads it itself and gets
 * its error. This happens after a jump to another part of the run, and for a block that could not
 * be read or has too many extents. Reading follows a jump only when two fetches in a row ask for
 * the same pool, so that an occasional batch from elsewhere costs no more than its windows.
 *
 * Memory for each set: 2 1/8 pools of 256 blocks, in huge pages. A block has K = ceil(131072 / T)
 * windows and the disk sectors around them. That is 140 MiB at T = 1024, and at most 276 MiB; twice
 * as much for ids of 4 bytes. With more than SGT_BLOCKS_SETS sets, no blocks are used, and a notice
 * says so. Rows of more than 131,072 tokens do not use blocks, because their reads are large
 * anyway.
 *
 *     sgt_blocks *b;
 *     if (sgt_blocks_open(&b, rings, set, options, mix, &err) < 0) ...;   // once
 *     sgt_blocks_fetch(b, windows, n, memory, room, tokens);         // any thread
 *     ... read the windows with tokens[i] == NULL yourself ...
 *     sgt_blocks_close(b); */
#ifndef SGT_BLOCKS_H
#define SGT_BLOCKS_H

#include <stdint.h>

#include "loader/read/ring.h"
#include "loader/sample/sampler.h"

#define SGT_BLOCKS_SETS 4u

typedef struct sgt_blocks sgt_blocks;

/* Open the blocks. Returns SGT_OK with *out NULL if the sampling is not `block`, rows are too long
 * for blocks, or there are too many sets. The arguments must outlive the blocks. */
int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err);
void sgt_blocks_close(sgt_blocks *b); /* NULL is fine */

/* For every window i that is in a stored block, copy it to memory + i * room and point tokens[i]
 * there. The other tokens[i] stay NULL, as the caller set them. Waits for needed blocks that are
 * being read, and starts reading the next ones. */
void sgt_blocks_fetch(sgt_blocks *b, const sgt_window *windows, uint32_t n, char *memory,
                      size_t room, const void **tokens);

#endif
