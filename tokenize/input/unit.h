/* unit.h: a unit of work, which one thread tokenizes at a time: parts of documents, end to end,
 * some 256 KiB together. A small document is one part. A large one is cut where no token crosses
 * the cut, so that the ids of its parts, joined, are the ids of the document. JSONL comes as whole
 * lines, many to a part, and Parquet as pages of rows, one to a part. They are unfolded into one
 * part per document before they are encoded (json_parts.h).
 *
 * If a literal end of text begins a document (--special eot), a part of text holds the literal that
 * begins its document, but its extent in the unit's text leaves the literal out. */
#ifndef SGT_UNIT_H
#define SGT_UNIT_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/literal.h"
#include "tokenize/text/normalize.h"
#include "tokenize/text/rules.h"

/* maximum parts read into a unit (documents may be empty); if a part is a block of JSONL lines,
 * each line becomes a part later, so that a unit may have more */
#define SGT_UNIT_PARTS 4096
#define SGT_UNIT_PAD 32       /* bytes after a unit's text that may be read and written */
#define SGT_INVALID_LISTED 16 /* number of places of ill-formed UTF-8 that the manifest names */

typedef struct sgt_part {
    uint64_t file; /* index in the corpus */
    /* bytes of the file's stream (source.h) where this part and the next one begin; of Parquet,
     * rows of the file */
    uint64_t offset, end;
    /* hash: that of the first `hashed` bytes (of Parquet: rows) of the stream (same.h): those before
     * this part, or before the unit of lines or the page that it is in; block: of its whole blocks;
     * all: of the whole stream, if the part closes its file */
    uint64_t hashed, hash, block, all;
    /* bytes read from the file on disk when the part ends; for progress only */
    uint64_t raw;
    uint64_t line;       /* JSONL: lines that end in the part; Parquet: rows */
    uint64_t bad;        /* number of bad lines among them, which are left out */
    uint64_t surrogates; /* lone surrogates in it that became U+FFFD */
    uint64_t literals;   /* literal ends of text that were encoded as text */
    /* extent of its text in the unit's text; of a text file it ends where the part ends */
    size_t at, length;
    /* extent of its ids in the unit's ids; a document's first part begins with the end-of-text
     * id */
    size_t first_id, ids;
    uint64_t invalid; /* ill-formed units of UTF-8 in it (utf8.h) */
    int valid;        /* 1: the text is known to be UTF-8 */
    /* 1 for the first and last part of a document; a part with neither flag and no text stands for
     * no document */
    int first, last;
    int closes; /* 1: it is the last part of its file */
    int folded; /* 1: it holds lines of JSONL, or a page of Parquet, as they were read */
    /* JSONL: extent of the fields to keep, in the unit's `kept`; Parquet: `kept` is the row */
    size_t kept, kept_length;
    size_t page; /* of a page of Parquet: 1 + its index in the unit's pages; 0: no page */
    int split;   /* 0 train, 1 val */
} sgt_part;

/* The line of JSONL, or the row of Parquet, at which the run fails: the first after the unit's last
 * part. */
typedef struct sgt_bad_line {
    uint64_t file, byte; /* byte of the line or the string, from 1; 0: the line or row as a whole */
    const char *why;     /* why it is bad; NULL: there is no bad line */
} sgt_bad_line;

/* Return the error of a bad line, whose number is `line`, from 1. */
int sgt_bad_line_fail(const sgt_bad_line *b, const sgt_corpus *c, uint64_t line, sgt_error *err);

typedef struct sgt_invalid_at {
    uint64_t file, offset;
} sgt_invalid_at;

typedef struct sgt_unit {
    uint8_t *text;
    size_t used, room; /* bytes of text; bytes allocated for it */
    /* folded: the parts as they were read, before lines were divided into documents */
    sgt_part *parts, *folded;
    size_t count, part_room, folded_room; /* each room is at least SGT_UNIT_PARTS */
    struct sgt_parquet_page *pages;       /* pages of the folded parts (parquet.h) */
    size_t page_count, page_room;
    size_t unpacked; /* bytes of the pages' rows, once unpacked */
    /* bytes of text that the last units with pages used: a file's pages are of about one size, and
     * to free a large buffer and allocate it again takes longer than lz4 takes to unpack a page */
    size_t wanted;
    uint16_t *ids;
    size_t id_count, id_room;
    /* buffer for a part with U+FFFD in place of ill-formed units, and for decoding JSON strings */
    uint8_t *scratch;
    size_t scratch_room;
    char *kept; /* fields to keep of lines of JSONL (kept.h) */
    size_t kept_used, kept_room;
    sgt_normalizer normal;                      /* the text in the normal form asked for */
    sgt_invalid_at invalid[SGT_INVALID_LISTED]; /* the first ones in this unit, in order */
    size_t invalid_count;
    sgt_bad_line bad;
} sgt_unit;

int sgt_unit_new(sgt_unit *u, sgt_error *err);
/* Make room for `bytes` of text and SGT_UNIT_PAD. */
int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err);
/* Make room for `bytes` bytes and SGT_UNIT_PAD in the scratch buffer; its content is lost. */
int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err);
/* Make room for one more page. */
int sgt_unit_reserve_page(sgt_unit *u, sgt_error *err);
/* Append a part; the unit may grow beyond SGT_UNIT_PARTS parts. */
int sgt_unit_add_part(sgt_unit *u, const sgt_part *p, sgt_error *err);
/* Free buffers that are far larger than text of `bytes` bytes needs. */
void sgt_unit_trim(sgt_unit *u, size_t bytes);
void sgt_unit_free(sgt_unit *u);

/* Set *text and *n to the text of a part, in which ill-formed units were treated as *o says. It
 * lies in the unit's text or scratch, and is valid until the next call. Ill-formed units are
 * counted, and the first ones of the unit are recorded. The error does not name the file. */
int sgt_unit_text(sgt_unit *u, sgt_part *p, const sgt_tokenize_options *o, const uint8_t **text,
                  size_t *n, sgt_error *err);

/* Unfold lines and rows into documents, then encode all parts: fill in ids and invalid. Any number
 * of threads may call this, each with its own unit and encoder. */
int sgt_unit_encode(sgt_unit *u, sgt_encoder *e, const sgt_vocab *v, const sgt_corpus *c,
                    const sgt_tokenize_options *o, sgt_error *err);

/* Return how many bytes of text[n], which begins at a document's start or a cut, can be cut off as
 * a part; 0: none yet, look at more text. Whatever follows, no token, no UTF-8 sequence and no
 * literal crosses the cut. rule: the split rule; NULL: GPT-2's. A literal that divides is cut
 * before its first byte, if text[n] has one after byte 0. */
size_t sgt_unit_cut(const uint8_t *text, size_t n, const sgt_rule *rule, const uint64_t *joins,
                    const sgt_literal *literal);

#endif
