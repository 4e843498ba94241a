/* unit.h: what one thread tokenizes at a time: parts of documents, laid end to end, of some 256 KiB together. A small
 * document is one part; a large one is cut into parts at places where no token can be cut, so that the ids of the
 * parts, one after the other, are the ids of the document. */
#ifndef SGT_UNIT_H
#define SGT_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "corpus.h"
#include "sgt_tokenize.h"

#define SGT_UNIT_PARTS 4096   /* documents may be empty: their number is bounded too */
#define SGT_INVALID_LISTED 16 /* how many places of ill-formed UTF-8 the manifest names */

typedef struct sgt_part {
    uint64_t file;        /* of the corpus */
    uint64_t offset;      /* of its first byte in the file */
    size_t at, length;    /* its bytes in the unit's text */
    size_t first_id, ids; /* its ids in the unit's ids: the first part of a document begins with the end-of-text id */
    uint64_t invalid;     /* ill-formed units of UTF-8 (utf8.h) in it */
    int first, last;      /* of its document */
    int split;            /* 0 train, 1 val */
} sgt_part;

typedef struct sgt_invalid_at {
    uint64_t file, offset;
} sgt_invalid_at;

typedef struct sgt_unit {
    uint8_t *text;
    size_t used, room; /* bytes */
    sgt_part *parts;
    size_t count; /* parts; room for SGT_UNIT_PARTS */
    uint16_t *ids;
    size_t id_count, id_room;
    uint8_t *replaced; /* a part with its ill-formed units as U+FFFD */
    size_t replaced_room;
    sgt_invalid_at invalid[SGT_INVALID_LISTED]; /* the first in this unit, in order */
    size_t invalid_count;
} sgt_unit;

int sgt_unit_new(sgt_unit *u, sgt_error *err);
int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err); /* room for so much text */
void sgt_unit_trim(sgt_unit *u, size_t bytes); /* gives back what is far more than text of so many bytes takes */
void sgt_unit_free(sgt_unit *u);

/* Fills in ids and invalid from text and parts. Any number of threads, each with its own unit and encoder. */
int sgt_unit_encode(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const sgt_corpus *c, const sgt_tokenize_options *o,
                    sgt_error *err);

/* How many bytes of text[n], which starts a document or at a cut, make a part of their own: whatever follows, no token,
 * no UTF-8 sequence and (where special) no literal <|endoftext|> lies across the cut. 0: none yet, look at more of the
 * text. */
size_t sgt_unit_cut(const uint8_t *text, size_t n, const uint64_t *joins, int special);

#endif
