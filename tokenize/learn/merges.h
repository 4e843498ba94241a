/* merges.h: trains the merges of a byte-level BPE vocabulary on pieces (pre-tokens) and on the
 * number of times that each piece occurs. The result equals that of Hugging Face's BpeTrainer:
 *
 *     Merge the most frequent pair of adjacent tokens wherever it occurs, from left to right.
 *     Of equally frequent pairs, take the pair with the lowest left id, then the lowest right id.
 *     Repeat until there are `size` tokens, or no pair is left.
 *
 * The ids are also those of BpeTrainer: id 0 is the end-of-text token, ids 1 to 256 are the bytes
 * in GPT-2's order, and id 257 + n is the token that merge n (counted from 0) creates. (In GPT-2's
 * order, bytes are sorted by the code points of the characters that represent them in vocab.json.)
 * Counts are 64-bit integers. The result does not depend on the order of the pieces. */
#ifndef SGT_MERGES_H
#define SGT_MERGES_H

#include <stddef.h>
#include <stdint.h>

#include "tokenize/vocab/vocab_file.h"

/* ---- pieces ----
 *
 * A table of the distinct pieces (pre-tokens) of a text, with the number of times that each piece
 * occurs. Merges are trained on such a table. Only one thread at a time may use a table.
 *
 *     sgt_pieces p = {0};
 *     if (sgt_pieces_add(&p, s, n, 1, &err) < 0) ...;
 *     for (size_t i = 0; i < p.room; i++)
 *         if (p.slots[i].count) use(p.text + p.slots[i].at, p.slots[i].n);
 *     sgt_pieces_free(&p);
 *
 * The table is a hash table. It takes 32 bytes of memory per slot, plus the bytes of each distinct
 * piece once. At most half of the slots are in use. */

typedef struct sgt_piece {
    uint64_t hash, count; /* count 0: the slot is free */
    uint64_t at;          /* offset, in sgt_pieces.text, of the bytes of the piece */
    uint64_t n;
} sgt_piece;

/* A hash table of distinct pieces (pre-tokens) and their counts. A table that is all zeros is
 * empty. */
typedef struct sgt_pieces {
    sgt_piece *slots;
    /* number of slots (a power of two), and number of distinct pieces, each of which takes one
     * slot */
    size_t room, count;
    uint64_t total; /* sum of the counts of all pieces */
    uint8_t *text;
    size_t used, text_room;
} sgt_pieces;

void sgt_pieces_free(sgt_pieces *p);
/* sgt_pieces_add adds `count` to the count of the piece that consists of the n bytes at s.
 * sgt_pieces_add_all adds the counts of all pieces in the table *other to the counts in *p. Both
 * functions return 0 or SGT_ENOMEM. */
int sgt_pieces_add(sgt_pieces *p, const uint8_t *s, size_t n, uint64_t count, sgt_error *err);
int sgt_pieces_add_all(sgt_pieces *p, const sgt_pieces *other, sgt_error *err);

/* ---- merges ---- */

#define SGT_MERGES_FIRST 257u

/* Train a vocabulary of `size` tokens on the pieces (pre-tokens) in *p, and add its tokens and
 * merges to *parts, which must be empty. Return 0 or a negative SGT_E*, such as SGT_ESTOPPED if a
 * stop was requested through *stop.
 *
 * Training takes at most 32 bytes of memory for each distinct piece, and 28 bytes for each byte of
 * the distinct pieces: 4 for the token that the byte is at first, 8 for the pair that begins at the
 * byte, and 16 for pairs that begin there after merges. */
int sgt_merges_train(sgt_vocab_parts *parts, const sgt_pieces *p, uint32_t size,
                     const sgt_stop *stop, sgt_error *err);

#endif
