/* unit.h: what one thread tokenizes at a time: parts of documents, laid end to end, of some 256 KiB
 * together. A small document is one part; a large one is cut into parts at places where no token
 * can be cut, so that the ids of the parts, one after the other, are the ids of the document. JSONL
 * comes as whole lines, many to a part, which are unfolded into a part per document before they are
 * encoded (json_parts.h). */
#ifndef SGT_UNIT_H
#define SGT_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "corpus.h"
#include "text/normalize.h"

/* that are read, for documents may be empty; lines of JSONL make more */
#define SGT_UNIT_PARTS 4096
#define SGT_UNIT_PAD 32       /* bytes after a unit's text that may be read and written */
#define SGT_INVALID_LISTED 16 /* how many places of ill-formed UTF-8 the manifest names */

typedef struct sgt_part {
    uint64_t file; /* of the corpus */
    /* in the file's stream (source.h): where it begins, and where the next part does */
    uint64_t offset, end;
    uint64_t hashed,
        hash; /* XXH3-64 of so many first bytes of the stream, all that lie before it or before the lines
                               it was read with; 0, 0 of a file that is read as it is */
    /* bytes of the file on disk that had been read when it was: for progress alone */
    uint64_t raw;
    uint64_t line;       /* JSONL: lines that end in it */
    uint64_t bad;        /* of them left out */
    uint64_t surrogates; /* in it that became U+FFFD */
    size_t at, length;   /* its text in the unit's text */
    /* its ids in the unit's ids: the first part of a document begins with the end-of-text id */
    size_t first_id, ids;
    uint64_t invalid; /* ill-formed units of UTF-8 (utf8.h) in it */
    int valid;        /* known to be UTF-8 */
    /* of its document; a part that is neither and has no text stands for no document */
    int first, last;
    int closes; /* the last of its file */
    int folded; /* lines of JSONL as they were read */
    int split;  /* 0 train, 1 val */
} sgt_part;

/* The line of JSONL that ends it all: the first after the unit's last part. */
typedef struct sgt_bad_line {
    uint64_t file, byte; /* counted from 1; 0: the line as a whole */
    const char *why;     /* NULL: there is none */
} sgt_bad_line;

/* What else than leaving the line out may help: another field, where the line as such is good. */
static inline const char *sgt_bad_line_option(uint64_t byte)
{
    return byte ? "" : "--field NAME says which has the text, ";
}

typedef struct sgt_invalid_at {
    uint64_t file, offset;
} sgt_invalid_at;

typedef struct sgt_unit {
    uint8_t *text;
    size_t used, room;        /* bytes */
    sgt_part *parts, *folded; /* folded: parts as they were read, where lines have been unfolded */
    size_t count, part_room, folded_room; /* each room at least SGT_UNIT_PARTS */
    uint16_t *ids;
    size_t id_count, id_room;
    /* a part with its ill-formed units as U+FFFD; strings on the way from JSON to text */
    uint8_t *scratch;
    size_t scratch_room;
    sgt_normalizer normal;                      /* text in the normal form asked for */
    sgt_invalid_at invalid[SGT_INVALID_LISTED]; /* the first in this unit, in order */
    size_t invalid_count;
    sgt_bad_line bad;
} sgt_unit;

int sgt_unit_new(sgt_unit *u, sgt_error *err);
/* room for so much text, and SGT_UNIT_PAD */
int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err);
/* likewise; what was there is lost */
int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err);
/* gives back what is far more than text of so many bytes takes */
void sgt_unit_trim(sgt_unit *u, size_t bytes);
void sgt_unit_free(sgt_unit *u);

/* The text of a part as it is to be split: *text of *n bytes, the unit's own or in its scratch,
 * until the next call. Ill-formed units are counted, the first of the unit noted, and dealt with as
 * *o says; what fails does not say of which file. */
int sgt_unit_text(sgt_unit *u, sgt_part *p, const sgt_tokenize_options *o, const uint8_t **text,
                  size_t *n, sgt_error *err);

/* Fills in ids and invalid from text and parts, and unfolds lines first. Any number of threads,
 * each with its own unit and encoder. */
int sgt_unit_encode(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const sgt_corpus *c,
                    const sgt_tokenize_options *o, sgt_error *err);

/* How many bytes of text[n], which starts a document or at a cut, make a part of their own:
 * whatever follows, no token, no UTF-8 sequence and no literal `special` (NULL: there is none) lies
 * across the cut. 0: none yet, look at more of the text. */
size_t sgt_unit_cut(const uint8_t *text, size_t n, const uint64_t *joins, const char *special);

#endif
