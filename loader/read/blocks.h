/* blocks.h: sampling `block` for readers of files: a pool of blocks (pool.h) for each set of a mix.
 * Of more than SGT_BLOCKS_SETS sets none is made, which a notice says: their windows are read one
 * by one.
 *
 *     sgt_blocks *b;
 *     if (sgt_blocks_open(&b, rings, set, options, &err) < 0) ...;   // once
 *     sgt_blocks_cursor *c;
 *     if (sgt_blocks_cursor_open(&c, b, &err) < 0) ...;              // a thread
 *     k = sgt_blocks_fetch(c, windows, n, tokens, &left, &where);
 *     ... reads windows left[0 ... k-1] by itself, and sets where[0 ... k-1] to their tokens ...
 *     sgt_blocks_put(c, tokens);
 *     sgt_blocks_cursor_close(c);
 *     sgt_blocks_close(b); */
#ifndef SGT_BLOCKS_H
#define SGT_BLOCKS_H

#include "read/pool.h"

#define SGT_BLOCKS_SETS 4u

typedef struct sgt_blocks sgt_blocks;
typedef struct sgt_blocks_cursor sgt_blocks_cursor;

/* *out NULL, and SGT_OK: another sampling, rows too long for pools, or too many sets. What is
 * handed over outlives it. */
int sgt_blocks_open(sgt_blocks **out, sgt_rings *rings, const sgt_set *set,
                    const sgt_reader_options *o, sgt_error *err);
void sgt_blocks_close(sgt_blocks *b); /* after its cursors; NULL is fine */

int sgt_blocks_cursor_open(sgt_blocks_cursor **out, sgt_blocks *b, sgt_error *err);
void sgt_blocks_cursor_close(sgt_blocks_cursor *c); /* NULL is fine */

/* tokens[i]: window i, in memory of the cursor's, until its next fetch, but for those that no pool
 * has: they are in *left, in their order, and as many as is returned. *left and *where are the
 * cursor's, until its next fetch. */
uint32_t sgt_blocks_fetch(sgt_blocks_cursor *c, const sgt_window *windows, uint32_t n,
                          const uint16_t **tokens, const sgt_window **left,
                          const uint16_t ***where);

/* *where of the last fetch into its tokens, each to its place. */
void sgt_blocks_put(const sgt_blocks_cursor *c, const uint16_t **tokens);

/* Blocks read so far by all pools, to their end or in vain: tests hold it to one a block. */
uint64_t sgt_blocks_read(sgt_blocks *b);

#endif
