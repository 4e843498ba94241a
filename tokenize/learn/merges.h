/* merges.h: trains a byte-level BPE's merges on counted pieces. The result equals that of Hugging
 * Face's BpeTrainer:
 *
 *     Merge the most frequent pair of adjacent tokens wherever it occurs, from left to right.
 *     Of equally frequent pairs take that of the lower left id, then of the lower right id.
 *     Repeat until there are `size` tokens, or no pair is left.
 *
 * Ids are as that trainer gives them. 0 is the end of text, 1-256 are the bytes in GPT-2's order,
 * and 257 + n is the token that merge n makes. (GPT-2's order is that of the characters' code
 * points.) Counts have 64 bits. The result does not depend on the order of the pieces. */
#ifndef SGT_MERGES_H
#define SGT_MERGES_H

#include <stddef.h>
#include <stdint.h>

#include "tokenize/vocab/vocab_file.h"

/* ---- pieces ----
 *
 * Pieces of text and how often each occurs, from which merges are trained. Only one
 * thread at a time may use it.
 *
 *     sgt_pieces p = {0};
 *     if (sgt_pieces_add(&p, s, n, 1, &err) < 0) ...;
 *     for (size_t i = 0; i < p.room; i++)
 *         if (p.slots[i].count) use(p.text + p.slots[i].at, p.slots[i].n);
 *     sgt_pieces_free(&p);
 *
 * Memory: 32 bytes a slot, at most half of which are in use, and the bytes of each distinct piece
 * once. */

typedef struct sgt_piece {
    uint64_t hash, count; /* count 0: the slot is free */
    uint64_t at;          /* offset of its bytes in sgt_pieces.text */
    uint64_t n;
} sgt_piece;

/* Starts as all zeros. */
typedef struct sgt_pieces {
    sgt_piece *slots;
    size_t room, count; /* room: slots, a power of two; count: distinct pieces */
    uint64_t total;     /* pieces counted, repeated ones included */
    uint8_t *text;
    size_t used, text_room;
} sgt_pieces;

void sgt_pieces_free(sgt_pieces *p);
/* Count a piece `count` times more, or all pieces of `other`. Return 0, or SGT_ENOMEM. */
int sgt_pieces_add(sgt_pieces *p, const uint8_t *s, size_t n, uint64_t count, sgt_error *err);
int sgt_pieces_add_all(sgt_pieces *p, const sgt_pieces *other, sgt_error *err);

/* ---- merges ---- */

#define SGT_MERGES_FIRST 257u

/* Fill in the tokens and merges of a vocabulary of `size` tokens, of which *parts has none yet. Returns
 * 0 or a negative SGT_E*, SGT_ESTOPPED if `stop` was requested. Memory for each byte of the distinct
 * pieces: at most 4 bytes for its token, 8 for the pair it begins, and 16 for pairs that merges
 * make of it; and 32 for each distinct piece. */
int sgt_merges_train(sgt_vocab_parts *parts, const sgt_pieces *p, uint32_t size,
                     const sgt_stop *stop, sgt_error *err);

#endif
