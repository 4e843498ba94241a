/* feed.h: deliver the files of a corpus as units of work, in order, and encode units. Only one
 * thread at a time may use a feed; any number of threads may encode, each a unit of its own.
 *
 *     sgt_text_feed *f;
 *     sgt_text_feed_options o = {.reading = {.corpus = c, .o = options}, .piece = 1 << 18};
 *     if (sgt_text_feed_open(&f, &o, &err) < 0) ...;
 *     while ((rc = sgt_text_feed_next(f, &unit, &err)) == 0) use(&unit);
 *     sgt_text_feed_close(f);
 *
 * A unit is what one thread tokenizes at a time: parts of documents, end to end, some 256 KiB
 * together. A small document is one part. A large one is cut where no token crosses the cut, so
 * that the ids of its parts, joined, are the ids of the document. Each format is cut in its own
 * way: text is cut anywhere, JSONL is cut between lines, with many lines to a part, and a part of
 * Parquet is a page of rows. Before they are encoded, lines and pages are unfolded into one part
 * per document (sgt_unit_unfold).
 *
 * Every part has an offset in the stream of its file, and a run can begin at any part. The offset
 * counts the bytes of the stream, unpacked if the file is packed; for Parquet, it is the number of
 * a row. If the split rule allows no cut in a long text (a mebibyte of one letter), the
 * vocabulary's merges give one (bpe/bpe.h). A line of more than 1 GiB is bad; as much text without
 * a cut is an error. Text is not cut if it is split by a pattern (PCRE2). Nor is text cut that is
 * to be normalized, unless it has white space or is all ASCII.
 *
 * If a literal end of text begins a document (--special eot), text is cut before the last literal
 * in it, so that no part ends within a document that a literal inside the part has begun. The part
 * after the cut begins with the literal, but its extent in the unit's text leaves the literal
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

/* A literal such as <|endoftext|> in the bytes of documents. Either it begins a document (--special
 * eot), or it is text like any other and is only counted. */
typedef struct sgt_literal {
    /* the literal; its first byte occurs in it only once; NULL: there is no literal */
    const char *text;
    int divides; /* 1: it begins a document */
} sgt_literal;

/* Return how often the literal occurs in text[n]. */
uint64_t sgt_literal_count(const sgt_literal *l, const uint8_t *text, size_t n);

/* ---- units ---- */

/* Properties that all units of a feed share. */
typedef struct sgt_reading {
    const sgt_corpus *corpus;
    const sgt_tokenize_options *o;
    /* vocabulary that encodes the text, and whose merges may cut long pieces; NULL: none yet, so
     * long pieces are not cut */
    const sgt_vocab *vocab;
    /* rule that text is split by; NULL: GPT-2's. The feed sets it if there is a vocabulary. If the
     * rule is a PCRE2 pattern, documents are not cut at all */
    const sgt_rule *rule;
    /* The feed sets all fields below. */
    sgt_normalize normalize; /* normal form to which text is brought before it is split */
    sgt_literal literal;     /* the literal end of text, which is never cut */
} sgt_reading;

/* most parts that are read into a unit (documents may be empty). A unit may get more later, when
 * each line of a part of JSONL lines becomes a part */
#define SGT_UNIT_PARTS 4096
#define SGT_UNIT_PAD 32 /* bytes after a unit's text that may be read and overwritten */
/* number of ill-formed units of UTF-8 whose positions the manifest lists */
#define SGT_INVALID_LISTED 16

typedef enum sgt_part_kind {
    SGT_PART_TEXT,  /* a document of text, or a part of one */
    SGT_PART_LINES, /* a block of complete JSONL lines, as read */
    SGT_PART_PAGE,  /* rows of a page of Parquet, as read */
    SGT_PART_LINE,  /* the document of a line of JSONL */
    SGT_PART_ROW    /* the document of a row of Parquet */
} sgt_part_kind;

typedef struct sgt_part {
    sgt_part_kind kind;
    uint64_t file; /* index of the file in the corpus */
    /* positions in the file's stream (source.h) where this part and the next one begin: bytes; for
     * Parquet, rows of the file */
    uint64_t offset, end;
    /* hash: hash of the first `hashed` bytes of the stream (for Parquet, rows): of all before this
     * part, or before the block of lines or the page that holds it. block: hash of the complete
     * hash blocks among them. all: hash of the whole stream, if the part closes its file */
    uint64_t hashed, hash, block, all;
    uint64_t raw; /* bytes read from the file on disk when the part ends; for progress only */
    /* extent of the part's text in the unit's text; in a text file, the text ends where the part
     * ends */
    size_t at, length;
    /* extent of the part's ids in the unit's ids; a document's first part begins with the
     * end-of-text id */
    size_t first_id, ids;
    /* 1 for the first and last part of a document; a part with neither flag and no text is no part
     * of a document */
    int first, last;
    int closes;        /* 1: the part is the last of its file */
    int split;         /* 0 train, 1 val */
    uint64_t literals; /* number of literal ends of text that were encoded as text */
    /* number of lines or rows that end in the part, and how many of those are bad and left out. In
     * the last part of a packed file whose end was left out, that end counts as one more. In a part
     * of lines as read, records is 1 if the part is one line that is too long */
    uint64_t records, bad;
    union {
        struct {
            uint64_t invalid; /* number of ill-formed units of UTF-8 in the part (utf8.h) */
        } text;
        struct {
            size_t page; /* 1 + index of the part's page in the unit's pages; 0: no page */
        } page;
        struct {
            uint64_t surrogates;      /* number of lone surrogates in the line that became U+FFFD */
            size_t kept, kept_length; /* extent in the unit's `kept` of the fields to keep */
        } line;
        struct {
            uint64_t number; /* number of the row in its file, to find the fields to keep */
        } row;
    };
} sgt_part;

/* The line of JSONL, or the row of Parquet, at which the run fails: the first one after the unit's
 * last part. */
typedef struct sgt_bad_line {
    uint64_t file, byte; /* byte of the line or the string, counted from 1; 0: no single byte */
    const char *why;     /* why it is bad; NULL: there is no bad line */
} sgt_bad_line;

/* Return the error of a bad line or row, whose number is `line`, counted from 1. */
int sgt_bad_line_fail(const sgt_bad_line *b, const sgt_corpus *c, uint64_t line, sgt_error *err);

typedef struct sgt_invalid_at {
    uint64_t file, offset;
} sgt_invalid_at;

/* A unit. All zeros is an empty one. */
typedef struct sgt_unit {
    const sgt_reading *reading; /* common properties of the feed that filled the unit */
    uint8_t *text;
    size_t used, room; /* bytes of text; bytes allocated for text */
    /* folded: the parts as read, before they were divided into documents */
    sgt_part *parts, *folded;
    size_t count, part_room, folded_room;
    struct sgt_parquet_page *pages; /* pages of the folded parts (parquet.h) */
    size_t page_count, page_room;
    size_t unpacked; /* bytes of the pages' rows when unpacked */
    char *ids;       /* ids, each of the vocabulary's width */
    size_t id_count, id_room;
    /* buffer for the text of a part in which U+FFFD replaces ill-formed units, and for decoding
     * JSON strings */
    uint8_t *scratch;
    size_t scratch_room;
    char *kept; /* fields to keep, of lines of JSONL (kept.h) */
    size_t kept_used, kept_room;
    sgt_normalizer normal; /* memory for the text in its normal form */
    /* the first ill-formed units in this unit, in order */
    sgt_invalid_at invalid[SGT_INVALID_LISTED];
    size_t invalid_count;
    sgt_bad_line bad;
} sgt_unit;

/* Make room for `bytes` bytes of text and SGT_UNIT_PAD. */
int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err);
/* Make room for `bytes` bytes and SGT_UNIT_PAD in the scratch buffer. Its content is lost. */
int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err);
/* Append a copy of *p to the unit's parts, of which there may be more than SGT_UNIT_PARTS. */
int sgt_unit_add_part(sgt_unit *u, const sgt_part *p, sgt_error *err);
/* Free buffers that are larger than usual text and a usual page of Parquet need. */
void sgt_unit_trim(sgt_unit *u);
void sgt_unit_free(sgt_unit *u);

/* Replace each part of u that holds lines or a page by one part per document, and one last part
 * without a document for the rest of its lines or rows. Text is decoded in place. A document's
 * position, which decides its split, is the byte of the stream at which its line begins, or the
 * number of its row. Blank lines are skipped. u ends at the first bad line or row, which u->bad
 * then describes; with --skip-bad, bad lines and rows are counted instead.
 *
 * If literals divide, each literal in a document begins another document. A literal at the very
 * beginning has no document before it. The documents of one line or row have the same offset, and
 * only the last of them advances `end`, so that a resumed run begins with the first of them. If
 * literals do not divide, each part's literals are counted.
 *
 * Any number of threads may call this, each with its own unit. */
int sgt_unit_unfold(sgt_unit *u, sgt_error *err);

/* Add a record (a line or a row) to *next, the part that collects the records after the last
 * document. The record begins at `position` and ends before `end`, in the units of sgt_part.offset.
 * If the record is good, *next has its text, and is appended to u as its document; then *next is
 * empty again. If it is bad, `why` is the reason, else NULL, and `byte` is as in sgt_bad_line. A
 * bad record is counted with --skip-bad; otherwise u->bad is set, and 1 is returned. */
int sgt_unit_add_record(sgt_unit *u, sgt_part *next, uint64_t position, uint64_t end,
                        const char *why, uint64_t byte, sgt_error *err);

/* The work of a thread on one part p of its unit. text[n] is the part's text, with ill-formed units
 * treated and normalized as the options say. The text lies in the unit, and is valid until this
 * returns. Error messages need not name the file: the caller adds its path. */
typedef int sgt_part_work(void *worker, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                          sgt_error *err);

/* Unfold lines and rows into documents, then call `work` for all parts in order. Ill-formed units
 * of UTF-8 are counted, and the positions of the first ones are recorded in u->invalid. */
int sgt_unit_work(sgt_unit *u, sgt_part_work *work, void *worker, sgt_error *err);

/* Encode a part: append its ids to the unit's. encoder: pointer to the thread's own sgt_encoder of
 * the vocabulary. */
int sgt_part_encode(void *encoder, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                    sgt_error *err);

/* ---- the feed ---- */

/* Where the feed begins: at byte `offset` of the stream of file `file`, where a part of an earlier
 * run began. The first `hashed` bytes of the stream must still have the hash `hash` (sgt_part), as
 * far as they are read again. `split` is the split of the document that continues there. */
typedef struct sgt_text_feed_from {
    uint64_t file, offset, hashed, hash, block, split;
} sgt_text_feed_from;

typedef struct sgt_text_feed_options {
    sgt_reading reading;
    /* bytes of text per unit; an extent of text that cannot be cut makes a longer unit */
    size_t piece;
    /* if this stop, or that of the options, is requested, a wait for a stream ends */
    const sgt_stop *cancel;
    /* text without another cut for this many bytes is cut between tokens; 0: 1 MiB */
    size_t long_piece;
    size_t extent; /* most bytes of text without a cut; more is an error; 0: 1 GiB */
    /* number of threads that encode (0: one); twice as many files are unpacked and filtered
     * ahead */
    size_t threads;
    sgt_text_feed_from from;
} sgt_text_feed_options;

typedef struct sgt_text_feed sgt_text_feed;

/* Return the number of bytes of text per unit that suits an encoder. The output does not depend on
 * it. */
size_t sgt_text_feed_piece(void);

/* Open a feed; *o is copied. */
int sgt_text_feed_open(sgt_text_feed **out, const sgt_text_feed_options *o, sgt_error *err);
/* Fill in u's text and parts with the next unit. Return 0; 1 at the end; or a negative SGT_E*,
 * which every further call returns again. */
int sgt_text_feed_next(sgt_text_feed *f, sgt_unit *u, sgt_error *err);
void sgt_text_feed_close(sgt_text_feed *f);

/* Return the split of a document, 0 train or 1 val, which depends only on the arguments. `name`:
 * its file's name. `position`: the byte of the file's stream at which the document, or its JSONL
 * line, or the literal that begins it, begins; 0 for a file of text. */
int sgt_text_feed_split(const char *name, uint64_t position, double val_fraction);

/* If all files of c are text and none of several falls into the val split, choose one for it: the
 * first with the smallest hash. If all fall into it, and val_fraction is less than 1, choose one
 * for the train split, the first with the largest hash, and return 1. Only the names decide, so all
 * ranks choose the same file. */
int sgt_text_feed_choose(sgt_corpus *c, double val_fraction);

/* ---- whether an input still has the bytes from which a set was made ----
 *
 * An input is identified by a hash of what is tokenized: the bytes of its stream, which for .gz and
 * .zst is the unpacked text, and for a filtered file the filter's output; for Parquet, the metadata
 * and the pages of the text's column (sgt_parquet_hash). The feed hashes what it reads, so nothing
 * is read twice. sources.jsonl keeps the hash of each file, and the journal keeps the hash of the
 * part of the current file that was read so far.
 *
 * A later run first compares inode, size and time of each file with those at the time when the
 * inputs were listed. sources.jsonl has a hash of them; for a run that is resumed, inputs.jsonl in
 * .work has it. A file for which they are equal counts as unchanged. Any other file is read and
 * hashed, and the run is refused if its hash differs. */

/* Read a file, or only its first `length` bytes (for Parquet, rows), and set *hash to their hash.
 * field: the column of Parquet. If the file is shorter, hash all of it. */
int sgt_same_hash(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                  const sgt_stop *stop, sgt_error *err);

#endif
