/* blocks.h: sampling `block` for readers of files: a pool of blocks (pool.h) for each set of a mix.
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

#include "loader/read/pool.h"

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

#endif
