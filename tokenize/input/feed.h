/* feed.h: deliver the files of a corpus as units of work, in order, and encode units. One feed
 * belongs to one thread at a time; any number of threads encode, each its own unit.
 *
 *     sgt_text_feed *f;
 *     sgt_text_feed_options o = {.reading = {.corpus = c, .o = options}, .piece = 1 << 18};
 *     if (sgt_text_feed_open(&f, &o, &err) < 0) ...;
 *     while ((rc = sgt_text_feed_next(f, &unit, &err)) == 0) use(&unit);
 *     sgt_text_feed_close(f);
 *
 * A unit is what one thread tokenizes at a time: parts of documents, end to end, some 256 KiB
 * together. A small document is one part. A large one is cut where no token crosses the cut, so
 * that the ids of its parts, joined, are the ids of the document. Each format has its cutter: text
 * is cut anywhere, JSONL comes as whole lines, many to a part, and Parquet as pages of rows, one to
 * a part. Lines and pages are unfolded into one part per document before they are encoded
 * (sgt_unit_unfold).
 *
 * Every part has an offset in the stream of its file (unpacked if it is packed; of Parquet, the
 * number of a row), and a run can begin at any part. If the split rule gives no place to cut in a
 * long text (a mebibyte of one letter), the vocabulary's merges give one (bpe/bpe.h). A line of
 * more than 1 GiB is bad; so much text that is not cut is an error. Text is not cut if it is split
 * by a pattern, or if it is to be normalized and has neither white space nor only ASCII.
 *
 * If a literal end of text begins a document (--special eot), text is cut before the last literal
 * in it, so that no part ends within a document that a literal inside it has begun. The part then
 * holds the literal that begins its document, but its extent in the unit's text leaves the literal
 * out. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/text/normalize.h"
#include "tokenize/text/split.h"

/* ---- the literal end of text ---- */

/* Such as <|endoftext|>, in the bytes of documents. Either it begins a document (--special eot), or
 * it is text like any other and is only counted. */
typedef struct sgt_literal {
    const char *text; /* its first byte occurs in it once; NULL: there is no literal */
    int divides;      /* 1: it begins a document */
} sgt_literal;

/* Return the number of literals in text[n]. */
uint64_t sgt_literal_count(const sgt_literal *l, const uint8_t *text, size_t n);

/* ---- units ---- */

/* What all units of a feed have in common. */
typedef struct sgt_reading {
    const sgt_corpus *corpus;
    const sgt_tokenize_options *o;
    /* vocabulary that encodes the text, and whose merges may cut long pieces; NULL: there is none
     * yet, and such pieces are not cut */
    const sgt_vocab *vocab;
    /* rule that text is split by; NULL: GPT-2's. The feed sets it if there is a vocabulary. By
     * PCRE2, documents are not cut at all */
    const sgt_rule *rule;
    /* The feed sets all below. */
    sgt_normalize normalize; /* normal form, in which the text is split */
    sgt_literal literal;     /* the literal end of text, which is never cut */
} sgt_reading;

/* maximum parts read into a unit (documents may be empty); if a part is a block of JSONL lines,
 * each line becomes a part later, so that a unit may have more */
#define SGT_UNIT_PARTS 4096
#define SGT_UNIT_PAD 32       /* bytes after a unit's text that may be read and written */
#define SGT_INVALID_LISTED 16 /* number of places of ill-formed UTF-8 that the manifest names */

typedef enum sgt_part_kind {
    SGT_PART_TEXT,  /* a document of text, or a part of one */
    SGT_PART_LINES, /* whole lines of JSONL, as they were read */
    SGT_PART_PAGE,  /* rows of a page of Parquet, as they were read */
    SGT_PART_LINE,  /* the document of a line of JSONL */
    SGT_PART_ROW    /* the document of a row of Parquet */
} sgt_part_kind;

typedef struct sgt_part {
    sgt_part_kind kind;
    uint64_t file; /* index in the corpus */
    /* bytes of the file's stream (source.h) where this part and the next one begin; of Parquet,
     * rows of the file */
    uint64_t offset, end;
    /* hash: that of the first `hashed` bytes (of Parquet: rows) of the stream: those before this
     * part, or before the unit of lines or the page that it is in; block: of its whole blocks; all:
     * of the whole stream, if the part closes its file */
    uint64_t hashed, hash, block, all;
    uint64_t raw; /* bytes read from the file on disk when the part ends; for progress only */
    /* extent of its text in the unit's text; of a text file it ends where the part ends */
    size_t at, length;
    /* extent of its ids in the unit's ids; a document's first part begins with the end-of-text
     * id */
    size_t first_id, ids;
    /* 1 for the first and last part of a document; a part with neither flag and no text stands for
     * no document */
    int first, last;
    int closes;        /* 1: it is the last part of its file */
    int split;         /* 0 train, 1 val */
    uint64_t literals; /* literal ends of text that were encoded as text */
    /* of a line or row: lines or rows that end in the part, and how many of them are bad and left
     * out; of the last part of a packed file whose end was left out, that counts as one more. As it
     * was read, a part of lines has records 1 if it is one line that is too long */
    uint64_t records, bad;
    union {
        struct {
            uint64_t invalid; /* ill-formed units of UTF-8 in it (utf8.h) */
        } text;
        struct {
            size_t page; /* 1 + its index in the unit's pages; 0: no page */
        } page;
        struct {
            uint64_t surrogates;      /* lone surrogates in it that became U+FFFD */
            size_t kept, kept_length; /* extent of the fields to keep, in the unit's `kept` */
        } line;
        struct {
            uint64_t number; /* of the row in its file, for the fields to keep */
        } row;
    };
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

/* Zeroed, it is empty. */
typedef struct sgt_unit {
    const sgt_reading *reading; /* the feed's that filled the unit */
    uint8_t *text;
    size_t used, room; /* bytes of text; bytes allocated for it */
    /* folded: the parts as they were read, before they were divided into documents */
    sgt_part *parts, *folded;
    size_t count, part_room, folded_room;
    struct sgt_parquet_page *pages; /* pages of the folded parts (parquet.h) */
    size_t page_count, page_room;
    size_t unpacked; /* bytes of the pages' rows, once unpacked */
    char *ids;       /* of the vocabulary's width */
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

/* Make room for `bytes` of text and SGT_UNIT_PAD. */
int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err);
/* Make room for `bytes` bytes and SGT_UNIT_PAD in the scratch buffer; its content is lost. */
int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err);
/* Append a part; the unit may grow beyond SGT_UNIT_PARTS parts. */
int sgt_unit_add_part(sgt_unit *u, const sgt_part *p, sgt_error *err);
/* Free buffers that are larger than usual text, and a usual page of Parquet, need. */
void sgt_unit_trim(sgt_unit *u);
void sgt_unit_free(sgt_unit *u);

/* Replace each part of u that holds lines or a page by one part per document, and a last one without
 * a document for the rest of its lines or rows. Text is decoded in place. A document's position,
 * which decides its split, is where its line begins in the stream, or the number of its row. Blank
 * lines are skipped. u ends at the first bad line or row, which u->bad describes; with --skip-bad
 * such lines are counted instead. Any number of threads may call this, each with its own unit.
 *
 * If the literal divides, each one in a document begins a document of its own. The text before a
 * literal at the very beginning is no document. The documents of one line or row have one offset,
 * and only the last of them moves the end on, so that a run begins at the first of them. Otherwise
 * each part's literals are counted. */
int sgt_unit_unfold(sgt_unit *u, sgt_error *err);

/* Add a record, a line or row, that begins at `position` and ends before `end`, both as offsets are,
 * to *next: the records after the last document. Its document, whose text and union *next has, is
 * appended to u, and *next is empty again. If the record is bad, why is not NULL, and byte as in
 * sgt_bad_line: then it is counted, or u->bad is set and 1 is returned. */
int sgt_unit_add_record(sgt_unit *u, sgt_part *next, uint64_t position, uint64_t end,
                        const char *why, uint64_t byte, sgt_error *err);

/* What a thread does with a part of its unit, whose text[n] is mended and normalized as the options
 * say; the text lies in the unit, and is valid until this returns. The error does not name the file. */
typedef int sgt_part_work(void *worker, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                          sgt_error *err);

/* Unfold lines and rows into documents, then call `work` for all parts in order. Ill-formed units are
 * counted, and the first ones of the unit are recorded. */
int sgt_unit_work(sgt_unit *u, sgt_part_work *work, void *worker, sgt_error *err);

/* Encode a part: append its ids to the unit's. encoder: pointer to an sgt_encoder of the vocabulary,
 * the thread's own. */
int sgt_part_encode(void *encoder, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                    sgt_error *err);

/* ---- the feed ---- */

/* Where the feed begins: byte `offset` of the stream of file `file`, where a part of an earlier run
 * began. The first `hashed` bytes of the stream must still have the hash `hash` (sgt_part), as far as
 * they are read again. `split` is that of the document which goes on there. */
typedef struct sgt_text_feed_from {
    uint64_t file, offset, hashed, hash, block, split;
} sgt_text_feed_from;

typedef struct sgt_text_feed_options {
    sgt_reading reading;
    /* bytes per unit; an extent of text that cannot be cut makes a longer unit */
    size_t piece;
    const sgt_stop *cancel; /* requesting it, or the options' stop, ends the wait for a stream */
    /* text that has no other place to cut for so many bytes is cut between tokens; 0: 1 MiB */
    size_t long_piece;
    size_t extent;  /* most bytes of text without a cut; more is an error; 0: 1 GiB */
    size_t threads; /* twice as many files are unpacked and filtered at once; 0: one */
    sgt_text_feed_from from;
} sgt_text_feed_options;

typedef struct sgt_text_feed sgt_text_feed;

/* Return the bytes of text per unit that suit an encoder. The output does not depend on them. */
size_t sgt_text_feed_piece(void);

/* Open a feed; *o is copied. */
int sgt_text_feed_open(sgt_text_feed **out, const sgt_text_feed_options *o, sgt_error *err);
/* Fill in u's text and parts with the next unit. Return 0; 1 at the end; or a negative SGT_E*,
 * which every further call returns again. */
int sgt_text_feed_next(sgt_text_feed *f, sgt_unit *u, sgt_error *err);
void sgt_text_feed_close(sgt_text_feed *f);

/* Return the split of a document, 0 train or 1 val, which depends only on the arguments. `name`:
 * its file's name. `position`: the byte of the file's stream at which the document, or its JSONL
 * line, begins; 0 for a file of text, and the first byte of the literal that begins a document. */
int sgt_text_feed_split(const char *name, uint64_t position, double val_fraction);

/* If all files of c are text and none falls into the val split, choose one of several for it: the
 * first with the smallest hash. If all do, and val_fraction is less than 1, choose one for the train
 * split, and return 1: the first with the largest hash. Only the names decide, so all ranks choose
 * the same file. */
int sgt_text_feed_choose(sgt_corpus *c, double val_fraction);

/* ---- whether an input has the bytes that were read when a set was made ----
 *
 * An input is known by a hash of what is tokenized: the bytes of its stream, so the unpacked text of
 * .gz and .zst, and the output of a filter; of Parquet, the metadata and the pages of the text's
 * column (sgt_parquet_hash). The feed hashes what it reads, so nothing is read twice. sources.jsonl
 * keeps the hash of a file, and the journal that of the part of a file that was read so far.
 *
 * A later run compares inode, size and time of each file first, as they were when the
 * inputs were listed: sources.jsonl has a hash of them, and for a run that is resumed, inputs.jsonl
 * in .work. A file for which they are equal counts as unchanged. Any other is read and hashed, and
 * the run is refused if its hash differs. */

/* Read a file, or its first `length` bytes (of Parquet: rows), and set *hash to their hash. field:
 * the column of Parquet. If the file is shorter, hash what there is. */
int sgt_same_hash(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                  const sgt_stop *stop, sgt_error *err);

#endif
