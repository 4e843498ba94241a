/* pieces.c: an open-addressing table of distinct pieces; their bytes lie end to end beside it. */
#include "tokenize/learn/pieces.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_ROOM ((size_t)1 << 15)

int sgt_pieces_new(sgt_pieces **out, sgt_error *err)
{
    sgt_pieces *p = calloc(1, sizeof *p);
    if (p) p->slots = calloc(FIRST_ROOM, sizeof *p->slots);
    if (!p || !p->slots) {
        free(p);
        return sgt_fail_memory(err, "distinct pieces of text");
    }
    p->room = FIRST_ROOM;
    *out = p;
    return SGT_OK;
}

void sgt_pieces_free(sgt_pieces *p)
{
    if (!p) return;
    free(p->slots);
    free(p->text);
    free(p);
}

static int grow(sgt_pieces *p, sgt_error *err)
{
    size_t room = 2 * p->room;
    sgt_piece *slots = calloc(room, sizeof *slots);
    if (!slots) return sgt_fail_memory(err, "distinct pieces of text");
    for (size_t i = 0; i < p->room; i++) {
        if (!p->slots[i].count) continue;
        size_t at = p->slots[i].hash & (room - 1);
        while (slots[at].count) at = (at + 1) & (room - 1);
        slots[at] = p->slots[i];
    }
    free(p->slots);
    p->slots = slots;
    p->room = room;
    return SGT_OK;
}

static int add_new(sgt_pieces *p, size_t at, uint64_t hash, const uint8_t *s, size_t n,
                   uint64_t count, sgt_error *err)
{
    if (p->used + n > p->text_room) {
        size_t room = 2 * (p->used + n) + 65536;
        uint8_t *more = realloc(p->text, room);
        if (!more) return sgt_fail_memory(err, "distinct pieces of text");
        p->text = more;
        p->text_room = room;
    }
    memcpy(p->text + p->used, s, n);
    p->slots[at] = (sgt_piece){hash, count, p->used, n};
    p->used += n;
    return ++p->count * 2 > p->room ? grow(p, err) : SGT_OK;
}

static int add(sgt_pieces *p, uint64_t hash, const uint8_t *s, size_t n, uint64_t count,
               sgt_error *err)
{
    size_t mask = p->room - 1, at = hash & mask;
    p->total += count;
    for (; p->slots[at].count; at = (at + 1) & mask) {
        sgt_piece *slot = &p->slots[at];
        if (slot->hash == hash && slot->n == n && !memcmp(p->text + slot->at, s, n)) {
            slot->count += count;
            return SGT_OK;
        }
    }
    return add_new(p, at, hash, s, n, count, err);
}

int sgt_pieces_add(sgt_pieces *p, const uint8_t *s, size_t n, uint64_t count, sgt_error *err)
{
    return n && count ? add(p, XXH3_64bits(s, n), s, n, count, err) : SGT_OK;
}

int sgt_pieces_add_all(sgt_pieces *p, const sgt_pieces *other, sgt_error *err)
{
    int rc = SGT_OK;
    for (size_t i = 0; i < other->room && !rc; i++) {
        const sgt_piece *o = &other->slots[i];
        if (o->count) rc = add(p, o->hash, other->text + o->at, o->n, o->count, err);
    }
    return rc;
}
