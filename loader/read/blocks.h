/* blocks.h: sampling `block` for readers of files: blocks are read whole and once, ahead of the rows that
 * need them, and windows are copied out of them. All cursors of a reader share the blocks.
 *
 * They exist for speed alone. The caller reads windows that are not here one by one, and so gets
 * their errors: windows after a jump, and those of a block that could not be read or has too many
 * parts. A jump is followed when two fetches in a row ask for one pool, so that occasional batches
 * cost no more than their windows.
 *
 * Memory: two pools of 256 blocks and an eighth of one, each block of K = ceil(131072 / T) windows
 * and the sectors around them, in huge pages: 140 MiB at T = 1024, at most 276 MiB, for each set;
 * twice as much for ids of 4 bytes. With more than SGT_BLOCKS_SETS sets there are no blocks, and a
 * notice says so. Rows of more than 131,072 tokens are large reads by themselves and have no
 * blocks.
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
 * for blocks, or there are too many sets. The arguments must outlive it. */
int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_loader_options *o, const sgt_mix *mix, sgt_error *err);
void sgt_blocks_close(sgt_blocks *b); /* NULL is fine */

/* Copy window i to memory + i * room and set tokens[i] to that place, for every window that is in a
 * block; the others stay as they are: NULL. Waits for blocks that are being read, and starts
 * reading the next ones. */
void sgt_blocks_fetch(sgt_blocks *b, const sgt_window *windows, uint32_t n, char *memory,
                      size_t room, const void **tokens);

#endif
