/* pieces.h: pieces of text and how often each occurs, from which merges are trained. Only one
 * thread at a time may use it.
 *
 *     sgt_pieces *p;
 *     if (sgt_pieces_new(&p, &err) < 0 || sgt_pieces_add(p, s, n, 1, &err) < 0) ...;
 *     for (size_t i = 0; i < p->room; i++)
 *         if (p->slots[i].count) use(p->text + p->slots[i].at, p->slots[i].n);
 *     sgt_pieces_free(p);
 *
 * Memory: 32 bytes a slot, at most half of which are in use, and the bytes of each distinct piece
 * once. */
#ifndef SGT_PIECES_H
#define SGT_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"

typedef struct sgt_piece {
    uint64_t hash, count; /* count 0: the slot is free */
    uint64_t at;          /* offset of its bytes in sgt_pieces.text */
    uint64_t n;
} sgt_piece;

typedef struct sgt_pieces {
    sgt_piece *slots;
    size_t room, count; /* room: slots, a power of two; count: distinct pieces */
    uint64_t total;     /* pieces counted, repeated ones included */
    uint8_t *text;
    size_t used, text_room;
} sgt_pieces;

int sgt_pieces_new(sgt_pieces **out, sgt_error *err);
void sgt_pieces_free(sgt_pieces *p); /* NULL is fine */
/* Count a piece `count` times more, or all pieces of `other`. Return 0, or SGT_ENOMEM. */
int sgt_pieces_add(sgt_pieces *p, const uint8_t *s, size_t n, uint64_t count, sgt_error *err);
int sgt_pieces_add_all(sgt_pieces *p, const sgt_pieces *other, sgt_error *err);

#endif
