/* merges.h: trains the merges of a byte-level BPE on counted pieces (pre-tokens). The result equals
 * that of Hugging Face's BpeTrainer:
 *
 *     Merge the most frequent pair of adjacent tokens wherever it occurs, from left to right.
 *     Of equally frequent pairs, take the pair with the lowest left id, then the lowest right id.
 *     Repeat until there are `size` tokens, or no pair is left.
 *
 * The ids are also those of BpeTrainer: 0 is the end of text, 1 to 256 are the bytes in GPT-2's
 * order, and 257 + n is the token that merge n creates. (In GPT-2's order, bytes are sorted by the
 * code points of the characters that stand for them.) Counts are 64-bit. The result does not depend
 * on the order of the pieces. */
#ifndef SGT_MERGES_H
#define SGT_MERGES_H

#include <stddef.h>
#include <stdint.h>

#include "tokenize/vocab/vocab_file.h"

/* ---- pieces ----
 *
 * A table of the distinct pieces of a text, with the number of times that each occurs. Merges are
 * trained on such a table. Only one thread at a time may use a table.
 *
 *     sgt_pieces p = {0};
 *     if (sgt_pieces_add(&p, s, n, 1, &err) < 0) ...;
 *     for (size_t i = 0; i < p.room; i++)
 *         if (p.slots[i].count) use(p.text + p.slots[i].at, p.slots[i].n);
 *     sgt_pieces_free(&p);
 *
 * A table needs 32 bytes of memory per slot, plus the bytes of each distinct piece. At most half of
 * the slots are in use. */

typedef struct sgt_piece {
    uint64_t hash, count; /* count 0: the slot is free */
    uint64_t at;          /* offset of the piece's bytes in sgt_pieces.text */
    uint64_t n;
} sgt_piece;

/* A table of distinct pieces. Initialize it to zeros for an empty table. */
typedef struct sgt_pieces {
    sgt_piece *slots;
    /* room: number of slots, a power of two; count: number of distinct pieces */
    size_t room, count;
    uint64_t total; /* number of pieces counted, including repetitions */
    uint8_t *text;
    size_t used, text_room;
} sgt_pieces;

void sgt_pieces_free(sgt_pieces *p);
/* sgt_pieces_add adds `count` to the count of the piece of n bytes at s. sgt_pieces_add_all adds
 * all counts of `other`. Both return 0 or SGT_ENOMEM. */
int sgt_pieces_add(sgt_pieces *p, const uint8_t *s, size_t n, uint64_t count, sgt_error *err);
int sgt_pieces_add_all(sgt_pieces *p, const sgt_pieces *other, sgt_error *err);

/* ---- merges ---- */

#define SGT_MERGES_FIRST 257u

/* Train a vocabulary of `size` tokens, and add its tokens and merges to *parts, which must be
 * empty. Return 0 or a negative SGT_E*, such as SGT_ESTOPPED if `stop` was requested.
 *
 * Memory: at most 32 bytes for each distinct piece, and 28 bytes for each byte of these pieces: 4
 * for the byte's token, 8 for the pair that begins there, and 16 for pairs that merges create
 * there. */
int sgt_merges_train(sgt_vocab_parts *parts, const sgt_pieces *p, uint32_t size,
                     const sgt_stop *stop, sgt_error *err);

#endif
