/* feed.h: reads the files of a corpus in order, delivers their text in units of work, and encodes
 * units. Only one thread at a time may use a feed. Any number of threads may encode at the same
 * time, each thread a different unit.
 *
 *     sgt_text_feed *f;
 *     sgt_text_feed_options o = {.reading = {.corpus = c, .o = options}, .piece = 1 << 18};
 *     if (sgt_text_feed_open(&f, &o, &err) < 0) ...;
 *     while ((rc = sgt_text_feed_next(f, &unit, &err)) == 0) use(&unit);
 *     sgt_text_feed_close(f);
 *
 * A unit is the text that a thread tokenizes at a time: a list of parts, about 256 KiB in all. A
 * small document is one part. A large document is cut into several parts, at offsets that no token
 * crosses, so the ids of the document are the ids of its parts, joined. What a part holds depends
 * on the format of the file:
 * - Text: a document, or a section of a document. A cut may be inside a line.
 * - JSONL: a block of many lines. Every cut is between two lines.
 * - Parquet: a page of rows.
 *
 * Before parts that hold lines or pages are encoded, they are unfolded, that is, replaced with one
 * part per document (sgt_unit_unfold).
 *
 * Every part begins at an offset in the stream of its file, and a resumed run can begin at any
 * part. The offset is a number of bytes, counted after decompression if the file is compressed. In
 * a Parquet file, it is the index of a row.
 *
 * If the split rule allows no cut in a long text (such as a mebibyte of one letter), the text is
 * cut between two tokens (bpe/bpe.h). Text is not cut at all if the split rule is a PCRE2 pattern,
 * or if the text is to be normalized, is not all ASCII, and contains no white space. More than 1
 * GiB of text without a cut is an error. A JSONL line of more than 1 GiB is a bad line.
 *
 * With --special eot, each end-of-text literal (the text <|endoftext|>) begins a document, and text
 * that was read is cut before the last literal in it. As a result, a document that begins in the
 * middle of a part also ends in that part. The part after the cut begins with the literal, but the
 * text of this part begins after the literal. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/text/normalize.h"
#include "tokenize/text/split.h"

/* ---- the literal end of text ---- */

/* A literal: the name of the end-of-text token, such as <|endoftext|>, written out in the text of a
 * document. With --special eot, each literal begins a new document. Otherwise literals are ordinary
 * text and are only counted. */
typedef struct sgt_literal {
    /* the characters of the literal; the first byte must not occur again in the literal. If NULL,
     * no literal is searched for. */
    const char *text;
    int divides; /* 1: it begins a document */
} sgt_literal;

/* Return the number of times that the literal *l occurs in the n bytes at `text`. */
uint64_t sgt_literal_count(const sgt_literal *l, const uint8_t *text, size_t n);

/* ---- units ---- */

/* Settings of a feed, which apply to all units that it reads. */
typedef struct sgt_reading {
    const sgt_corpus *corpus;
    const sgt_tokenize_options *o;
    /* Vocabulary with which the text is encoded. It also determines where long text may be cut
     * between two tokens. While a vocabulary is being trained, it is NULL, and long text is not cut
     * between tokens. */
    const sgt_vocab *vocab;
    /* Rule by which the text is split into pre-tokens; NULL: GPT-2's rule. If `vocab` is not NULL,
     * the feed sets this field to the vocabulary's rule. If the rule is a PCRE2 pattern, the split
     * rule allows no cuts inside a document. */
    const sgt_rule *rule;
    /* The feed sets all fields below. */
    sgt_normalize normalize; /* Unicode normal form to which text is converted before it is split */
    /* the end-of-text literal (text such as <|endoftext|>); if literals begin documents, text is
     * never cut inside a literal */
    sgt_literal literal;
} sgt_reading;

/* Maximum number of parts that the feed reads into a unit. Without this limit, a unit would never
 * be full if all documents were empty. A unit may have more parts after unfolding, which replaces a
 * block of JSONL lines with one part per line. */
#define SGT_UNIT_PARTS 4096
/* number of additional bytes that are allocated after the text of a unit; code may read and
 * overwrite these bytes */
#define SGT_UNIT_PAD 32
/* maximum number of ill-formed UTF-8 sequences whose positions are listed in the manifest */
#define SGT_INVALID_LISTED 16

typedef enum sgt_part_kind {
    SGT_PART_TEXT,  /* a document of a text file, or a section of a document */
    SGT_PART_LINES, /* a block of complete JSONL lines, before it is divided into documents */
    SGT_PART_PAGE,  /* rows of a Parquet page, before they are divided into documents */
    SGT_PART_LINE,  /* the document of one JSONL line */
    SGT_PART_ROW    /* the document of one Parquet row */
} sgt_part_kind;

typedef struct sgt_part {
    sgt_part_kind kind;
    uint64_t file; /* index of the file in the corpus */
    /* The range of the file's stream (source.h) that the part covers: from `offset` up to, but not
     * including, `end`, at which the next part begins. In a Parquet file, these are indices of
     * rows; in all other files, offsets in bytes. */
    uint64_t offset, end;
    /* Hashes with which a resumed run checks that the file has not changed.
     *
     * hashed: number of bytes (in Parquet files, rows) before this part or, if the part comes from
     *         a block of lines or a page, before that block or page
     * hash:   hash of the first `hashed` bytes or rows of the file
     * block:  hash of those of them that form complete hash blocks (source.h)
     * all:    hash of the complete stream; set only if `closes` is 1 */
    uint64_t hashed, hash, block, all;
    /* number of bytes of the file that have been read from disk up to the end of the part; used to
     * show progress */
    uint64_t raw;
    /* The text of the part is the `length` bytes at offset `at` of the unit's `text`. If the part
     * begins with a literal, the text may begin after the literal. In a text file, the text ends
     * where the part ends. */
    size_t at, length;
    /* The ids of the part are the `ids` elements of the unit's array `ids` that begin at index
     * first_id. If the part is the first of its document, the end-of-text id comes first. */
    size_t first_id, ids;
    /* first: 1 if the part is the first part of a document; last: 1 if it is the last part of a
     * document. Otherwise these fields are 0. Both are also 0 in a part that belongs to no
     * document: such a part has counts and positions, but no text. */
    int first, last;
    int closes; /* 1 if this is the last part of its file; otherwise 0 */
    int split;  /* 0 training, 1 validation */
    /* number of end-of-text literals (<|endoftext|>) in the part that are encoded as ordinary
     * text */
    uint64_t literals;
    /* records: number of lines or rows that end in the part. Before unfolding, it is 0, or 1 if the
     * part is a single line that is too long. bad: number of these lines or rows that are bad and
     * were skipped. If the end of a compressed file is damaged, `bad` of the file's last part is 1
     * more. */
    uint64_t records, bad;
    union {
        struct {
            uint64_t invalid; /* number of ill-formed UTF-8 sequences in the part (utf8.h) */
        } text;
        struct {
            /* the page that holds the rows of the part, as an index into the unit's `pages` plus 1;
             * 0 if no page could be read */
            size_t page;
        } page;
        struct {
            /* number of lone surrogates in the line, each of which was replaced with U+FFFD */
            uint64_t surrogates;
            /* offset, in the unit's buffer `kept`, and length of the JSON text with the fields of
             * this document that --keep-fields copies */
            size_t kept, kept_length;
        } line;
        struct {
            /* index of the row in its file, with which --keep-fields finds the row in other
             * columns */
            uint64_t number;
        } row;
    };
} sgt_part;

/* The bad JSONL line or Parquet row at which the run fails. In the file, it directly follows the
 * lines or rows of the unit's last part. */
typedef struct sgt_bad_line {
    /* file: index of the file in the corpus. byte: position of the first invalid byte in the line
     * or in the row's string, counted from 1; 0 if no single byte is invalid. */
    uint64_t file, byte;
    /* reason why the line or row is bad; NULL if the run does not fail in this unit */
    const char *why;
} sgt_bad_line;

/* Set *err to the error for the bad line or row *b, and return its code. `line` is the number of
 * the line or row in its file, counted from 1. */
int sgt_bad_line_fail(const sgt_bad_line *b, const sgt_corpus *c, uint64_t line, sgt_error *err);

typedef struct sgt_invalid_at {
    uint64_t file, offset;
} sgt_invalid_at;

/* A unit: the text that a thread tokenizes at a time, and its ids. A unit that is all zeros is
 * empty. */
typedef struct sgt_unit {
    const sgt_reading *reading; /* settings of the feed that filled the unit */
    uint8_t *text;
    size_t used, room; /* number of bytes used in `text`, and number of bytes allocated */
    /* parts: the parts of the unit. folded: after unfolding, the parts as they were before, when
     * blocks of lines and pages were not yet divided into documents. */
    sgt_part *parts, *folded;
    size_t count, part_room, folded_room;
    /* Parquet pages that hold the rows of parts of the kind SGT_PART_PAGE */
    struct sgt_parquet_page *pages;
    size_t page_count, page_room;
    size_t unpacked; /* estimated total uncompressed size, in bytes, of the rows in `pages` */
    char *ids;       /* token ids of all parts, 2 or 4 bytes each (sgt_vocab_width) */
    size_t id_count, id_room;
    /* temporary buffer in which JSON strings are decoded, or ill-formed UTF-8 is replaced with
     * U+FFFD */
    uint8_t *scratch;
    size_t scratch_room;
    /* JSON text of the fields that --keep-fields copies from the JSONL lines of the unit
     * (kept.h) */
    char *kept;
    size_t kept_used, kept_room;
    sgt_normalizer normal; /* memory for normalizing text */
    /* positions of the first ill-formed UTF-8 sequences in this unit, in order */
    sgt_invalid_at invalid[SGT_INVALID_LISTED];
    size_t invalid_count;
    sgt_bad_line bad;
} sgt_unit;

/* Make sure that the unit has room for `bytes` bytes of text, and SGT_UNIT_PAD more. The text that
 * it holds is kept. */
int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err);
/* Make sure that the buffer u->scratch has room for `bytes` bytes, and SGT_UNIT_PAD more. The
 * contents of the buffer may be lost. */
int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err);
/* Free those buffers of the unit that are larger than most units need, so that their memory is not
 * kept until the unit is freed. */
void sgt_unit_trim(sgt_unit *u);
void sgt_unit_free(sgt_unit *u);

/* Unfold the unit: replace each part that holds a block of lines or the rows of a page with one
 * part per document. If lines or rows remain after the last document, add a part without a document
 * for them. Text is decoded in place, and blank lines are skipped. The split of a document is
 * determined by its position: the offset in the stream at which its line begins, or the index of
 * its row.
 *
 * At the first bad line or row, stop, remove everything after it from the unit, and describe it in
 * u->bad. With --skip-bad, only count bad lines and rows.
 *
 * With --special eot, each literal (<|endoftext|>) in the text of a line or row begins another
 * document. If the text begins with a literal, there is no document before this literal. All
 * documents of a line or row have the same offset, and `end` is advanced only in the part of the
 * last of them, so a resumed run begins with the first of them. Without --special eot, the literals
 * in each part are only counted.
 *
 * Any number of threads may call this function at the same time, each with a different unit. */
int sgt_unit_unfold(sgt_unit *u, sgt_error *err);

/* Add a record (a JSONL line or a Parquet row) to the unit. The record begins at offset `position`
 * of the stream and ends before offset `end` (see sgt_part.offset). *next is a part that collects
 * all records since the last document.
 *
 * If `why` is NULL, the record is good, and *next refers to its text: append *next to the parts of
 * u, and reset *next. Otherwise the record is bad, `why` is the reason, and `byte` is the position
 * of the error (see sgt_bad_line.byte). With --skip-bad, count the bad record in *next; without
 * --skip-bad, set u->bad and return 1. */
int sgt_unit_add_record(sgt_unit *u, sgt_part *next, uint64_t position, uint64_t end,
                        const char *why, uint64_t byte, sgt_error *err);

/* A function that a thread calls for each part of a unit, after unfolding. u: the unit. p: the
 * part. text: the text of the part, n bytes, ready to be encoded: normalized, and with ill-formed
 * UTF-8 replaced, if the options request this. These bytes are valid until the function returns.
 * worker: the state of the thread. Error messages need not name the file, because the caller adds
 * the path of the file. */
typedef int sgt_part_work(void *worker, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                          sgt_error *err);

/* Unfold the unit (sgt_unit_unfold), and then call `work` for each part, in order. Count the
 * ill-formed UTF-8 sequences in text files, and store the positions of the first ones in
 * u->invalid. */
int sgt_unit_work(sgt_unit *u, sgt_part_work *work, void *worker, sgt_error *err);

/* Encode the n bytes at `text`, the text of part p, and append the ids to u->ids. This function has
 * the type sgt_part_work. `encoder` must point to a pointer to the thread's sgt_encoder. */
int sgt_part_encode(void *encoder, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                    sgt_error *err);

/* ---- the feed ---- */

/* Where a feed begins to read: at `offset` in the stream of the file with index `file`, at which a
 * part of an earlier run began. `hashed`, `hash` and `block` are copied from that part (sgt_part).
 * If the feed must read bytes before the offset again, it checks that the first `hashed` bytes of
 * the stream have the hash `hash`. `split` is the split of the document that continues at the
 * offset. */
typedef struct sgt_text_feed_from {
    uint64_t file, offset, hashed, hash, block, split;
} sgt_text_feed_from;

typedef struct sgt_text_feed_options {
    sgt_reading reading;
    /* number of bytes of text per unit; a unit has more text only if the text cannot be cut */
    size_t piece;
    /* Stop request in addition to the one in the options. If a stop is requested through either of
     * them, waiting for more bytes of a stream ends with SGT_ESTOPPED. */
    const sgt_stop *cancel;
    /* minimum size in bytes of text that is cut between two tokens if the split rule allows no cut
     * in it; 0 means 1 MiB */
    size_t long_piece;
    /* maximum size in bytes of text in which no cut is found; more text is an error. 0 means 1
     * GiB. */
    size_t extent;
    /* number of threads that encode; 0 means 1. The feed opens up to twice as many compressed or
     * filtered files before they are needed. */
    size_t threads;
    sgt_text_feed_from from;
} sgt_text_feed_options;

typedef struct sgt_text_feed sgt_text_feed;

/* Return the number of bytes of text per unit with which encoding is fastest. The output does not
 * depend on this number. */
size_t sgt_text_feed_piece(void);

/* Open a feed; *o is copied. */
int sgt_text_feed_open(sgt_text_feed **out, const sgt_text_feed_options *o, sgt_error *err);
/* Read the next unit: set the text and the parts of *u. Return 0, or 1 at the end of the corpus, or
 * a negative SGT_E* on failure. After a failure, every further call returns the same error. */
int sgt_text_feed_next(sgt_text_feed *f, sgt_unit *u, sgt_error *err);
void sgt_text_feed_close(sgt_text_feed *f);

/* Return the split of a document: 0 for training, 1 for validation. The result depends only on the
 * arguments. name: name of the file that holds the document. position: a number that identifies the
 * document in the file: the offset at which its line (JSONL) or its literal (--special eot) begins,
 * the index of its row (Parquet), or 0 for a complete text file. */
int sgt_text_feed_split(const char *name, uint64_t position, double val_fraction);

/* If all files of c are text files, move a file to a split that would be empty. If the validation
 * split is empty and there are several files, move the file with the smallest hash there. If the
 * training split is empty and val_fraction is less than 1, move the file with the largest hash
 * there. Of several files with an equal hash, the first is moved. All ranks move the same file,
 * because the hashes depend only on the files' names. Return 1 if a file was moved to the training
 * split, otherwise 0. */
int sgt_text_feed_choose(sgt_corpus *c, double val_fraction);

/* ---- checking that inputs are unchanged ----
 *
 * An input file is identified by a hash of its stream, that is, of the bytes that are tokenized,
 * after decompression or from a filter. For a Parquet file, the hash covers the metadata and the
 * pages of the text column (sgt_parquet_hash). The feed computes the hash while it reads the file,
 * so the file is not read twice. sources.jsonl stores the hash of each file. The journal stores the
 * hash of the bytes that have been read from the current file.
 *
 * A later run first compares the inode number, the size and the modification time of each file with
 * those that the earlier run recorded when it listed the inputs. (They are recorded in
 * sources.jsonl or, if the earlier run was interrupted, in .work/inputs.jsonl.) If all are equal,
 * the file is assumed to be unchanged. Otherwise the file is read and hashed, and the later run
 * fails if the hash differs. */

/* Read the first `length` bytes (in a Parquet file, rows) of the stream of the file f, and set
 * *hash to their hash. If the stream is shorter than `length`, hash all of it. field: name of the
 * column that is hashed in a Parquet file. */
int sgt_same_hash(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                  const sgt_stop *stop, sgt_error *err);

#endif
