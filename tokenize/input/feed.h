/* feed.h: delivers the files of a corpus as units of work, in order, and encodes units. Only one
 * thread at a time may use a feed. Any number of threads may encode, each a different unit.
 *
 *     sgt_text_feed *f;
 *     sgt_text_feed_options o = {.reading = {.corpus = c, .o = options}, .piece = 1 << 18};
 *     if (sgt_text_feed_open(&f, &o, &err) < 0) ...;
 *     while ((rc = sgt_text_feed_next(f, &unit, &err)) == 0) use(&unit);
 *     sgt_text_feed_close(f);
 *
 * A unit is what one thread tokenizes at a time: about 256 KiB of parts of documents, one after
 * another. A small document is one part. A large document is cut where no token crosses the cut, so
 * the ids of its parts, joined, are the ids of the document. What a part is depends on the format:
 * - Text: a document or a section of it. A cut may be within a line.
 * - JSONL: many lines. A cut is always between lines.
 * - Parquet: a page of rows.
 *
 * Before lines and pages are encoded, they are unfolded into one part per document
 * (sgt_unit_unfold).
 *
 * Every part has an offset in its file's stream, and a run can begin at any part. The offset counts
 * bytes, after decompression if the file is compressed. In Parquet files, it is the index of a row.
 *
 * If the split rule allows no cut in a long text (a mebibyte of one letter), the text is cut
 * between two tokens (bpe/bpe.h). Text is not cut at all if it is split by a pattern (PCRE2), or if
 * it is to be normalized and has neither white space nor only ASCII. More than 1 GiB of text
 * without a cut is an error. A JSONL line of more than 1 GiB counts as bad.
 *
 * If the end-of-text literal begins a document (--special eot), text is cut before the last literal
 * in it. As a result, a document that begins in the middle of a part also ends in that part. The
 * part after the cut begins with the literal, but its text begins after the literal. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/text/normalize.h"
#include "tokenize/text/split.h"

/* ---- the literal end of text ---- */

/* A literal such as <|endoftext|> in the text of documents. With --special eot, each literal begins
 * a document; otherwise it is ordinary text and is only counted. */
typedef struct sgt_literal {
    /* text of the literal, whose first byte must not occur again in it; NULL: search for no
     * literal */
    const char *text;
    int divides; /* 1: it begins a document */
} sgt_literal;

/* Return the number of occurrences of the literal in the n bytes at `text`. */
uint64_t sgt_literal_count(const sgt_literal *l, const uint8_t *text, size_t n);

/* ---- units ---- */

/* Settings that all units of a feed share. */
typedef struct sgt_reading {
    const sgt_corpus *corpus;
    const sgt_tokenize_options *o;
    /* Vocabulary that encodes the text. It also decides where long text may be cut between two
     * tokens. NULL while a vocabulary is being trained, when long text is not cut in this way. */
    const sgt_vocab *vocab;
    /* Rule that splits the text; NULL is GPT-2's. If `vocab` is set, the feed takes the rule from
     * it. Documents are never cut if the rule is a PCRE2 pattern. */
    const sgt_rule *rule;
    /* The feed sets all fields below. */
    sgt_normalize normalize; /* normal form that text is converted to before it is split */
    /* the end-of-text literal; if it begins documents, text is never cut inside it */
    sgt_literal literal;
} sgt_reading;

/* Maximum number of parts that the feed reads into a unit. Without this limit, a unit would never
 * be full if all documents were empty. After unfolding, a unit may have more parts than this,
 * because a block of JSONL lines becomes one part per line. */
#define SGT_UNIT_PARTS 4096
/* number of spare bytes after a unit's text, which code may read and overwrite */
#define SGT_UNIT_PAD 32
/* maximum number of ill-formed UTF-8 units whose positions the manifest lists */
#define SGT_INVALID_LISTED 16

typedef enum sgt_part_kind {
    SGT_PART_TEXT,  /* a document of a text file, or a part of it */
    SGT_PART_LINES, /* a block of complete JSONL lines, not yet divided into documents */
    SGT_PART_PAGE,  /* rows of a Parquet page, not yet divided into documents */
    SGT_PART_LINE,  /* the document of one JSONL line */
    SGT_PART_ROW    /* the document of one Parquet row */
} sgt_part_kind;

typedef struct sgt_part {
    sgt_part_kind kind;
    uint64_t file; /* index of the file in the corpus */
    /* Range of the file's stream (source.h) that the part covers: from `offset` up to `end`, at
     * which the next part begins. Counted in bytes or, in Parquet files, in rows. */
    uint64_t offset, end;
    /* Hashes by which a resumed run checks that the file is unchanged.
     *
     * hashed: number of bytes (Parquet: rows) before this part; if the part comes from a block of
     *         lines or a page, before that block or page
     * hash:   hash of these bytes
     * block:  hash of only the complete hash blocks among them (source.h)
     * all:    hash of the whole stream, if `closes` is 1 */
    uint64_t hashed, hash, block, all;
    uint64_t raw; /* bytes of the file read from disk up to the part's end; used to show progress */
    /* Range of the part's text in the unit: text[at ... at + length). In a text file, it ends where
     * the part ends. A literal at the part's beginning may be left out. */
    size_t at, length;
    /* The part's ids are ids[first_id ... first_id + ids) of the unit. In the first part of a
     * document, they begin with the end-of-text id. */
    size_t first_id, ids;
    /* first: 1 if a document begins with this part; last: 1 if it ends with this part. A part that
     * only carries counts and positions belongs to no document: both are 0, and it has no text. */
    int first, last;
    int closes; /* 1 if this is the last part of its file */
    int split;  /* 0 training, 1 validation */
    /* number of end-of-text literals in the part that are encoded as ordinary text */
    uint64_t literals;
    /* records: number of lines or rows that end in the part; 1 if the part is a single line, not
     * yet unfolded, that is too long. bad: how many of these are bad and skipped. If a compressed
     * file ends early because of damage, its last part has one more bad record. */
    uint64_t records, bad;
    union {
        struct {
            uint64_t invalid; /* number of ill-formed UTF-8 units in the part (utf8.h) */
        } text;
        struct {
            /* 1 + index, in the unit's `pages`, of the page that has the part's rows; 0 if no page
             * could be read */
            size_t page;
        } page;
        struct {
            /* number of lone surrogates in the line, each replaced by U+FFFD */
            uint64_t surrogates;
            /* offset and length, in the unit's buffer `kept`, of the JSON text of the fields that
             * --keep-fields copies from this document */
            size_t kept, kept_length;
        } line;
        struct {
            /* index of the row in its file, by which its other columns are found (--keep-fields) */
            uint64_t number;
        } row;
    };
} sgt_part;

/* The JSONL line or Parquet row at which the run fails. It comes directly after the records of the
 * unit's last part. */
typedef struct sgt_bad_line {
    /* file: index of the file; byte: position of the error in the line or string, from 1, or 0 if
     * no single byte is wrong */
    uint64_t file, byte;
    const char *why; /* reason why the line or row is bad; NULL: the unit has no bad line or row */
} sgt_bad_line;

/* Return the error for a bad line or row, whose number is `line` (from 1). */
int sgt_bad_line_fail(const sgt_bad_line *b, const sgt_corpus *c, uint64_t line, sgt_error *err);

typedef struct sgt_invalid_at {
    uint64_t file, offset;
} sgt_invalid_at;

/* A unit. All zeros is an empty one. */
typedef struct sgt_unit {
    const sgt_reading *reading; /* settings of the feed that filled the unit */
    uint8_t *text;
    size_t used, room; /* used: bytes used in `text`; room: bytes allocated for it */
    /* parts: the unit's parts; folded: the parts as they were before blocks of lines and pages were
     * divided into documents */
    sgt_part *parts, *folded;
    size_t count, part_room, folded_room;
    struct sgt_parquet_page *pages; /* Parquet pages to which parts of kind SGT_PART_PAGE refer */
    size_t page_count, page_room;
    size_t unpacked; /* sum of the estimated uncompressed sizes in bytes of the rows in `pages` */
    char *ids;       /* token ids of all parts, each as wide as the vocabulary's ids */
    size_t id_count, id_room;
    /* scratch buffer: for decoding JSON strings, and for text in which U+FFFD replaces ill-formed
     * units */
    uint8_t *scratch;
    size_t scratch_room;
    /* JSON text of the fields that --keep-fields copies from the unit's JSONL lines (kept.h) */
    char *kept;
    size_t kept_used, kept_room;
    sgt_normalizer normal; /* memory for normalizing text */
    /* positions of the first ill-formed UTF-8 units in this unit, in order */
    sgt_invalid_at invalid[SGT_INVALID_LISTED];
    size_t invalid_count;
    sgt_bad_line bad;
} sgt_unit;

/* Allocate room for `bytes` bytes of text plus SGT_UNIT_PAD; the text is kept. */
int sgt_unit_reserve(sgt_unit *u, size_t bytes, sgt_error *err);
/* Allocate room for `bytes` bytes plus SGT_UNIT_PAD in the scratch buffer; its contents are
 * lost. */
int sgt_unit_reserve_scratch(sgt_unit *u, size_t bytes, sgt_error *err);
/* Free the buffers that have become larger than most units need, so that the unit does not keep
 * their memory. */
void sgt_unit_trim(sgt_unit *u);
void sgt_unit_free(sgt_unit *u);

/* Unfold the unit: replace each part that holds lines or a page by one part per document, followed
 * by one part without a document for the remaining lines or rows. Text is decoded in place, and
 * blank lines are skipped. A document's position, which decides its split, is the offset in the
 * stream at which its line begins, or the number of its row.
 *
 * The unit ends at the first bad line or row, which u->bad then describes. With --skip-bad, bad
 * lines and rows are only counted.
 *
 * If the options say that literals begin documents (--special eot), each literal in a line or row
 * begins another document. A literal at the very beginning has no document before it. All documents
 * of one line or row have the same offset, and only the last of them advances `end`, so a resumed
 * run begins with the first of them. Without this option, the literals of each part are counted.
 *
 * Any number of threads may call this, each with a different unit. */
int sgt_unit_unfold(sgt_unit *u, sgt_error *err);

/* Add a record (a line or a row) to the unit. The record begins at `position` and ends before
 * `end`, both as in sgt_part.offset. *next is the part that begins after the last document.
 *
 * If the record is good, `why` is NULL, and *next has the document's text: append *next to u, and
 * then empty it. If it is bad, `why` is the reason, and `byte` is as in sgt_bad_line. With
 * --skip-bad, a bad record is only counted in *next; otherwise, set u->bad and return 1. */
int sgt_unit_add_record(sgt_unit *u, sgt_part *next, uint64_t position, uint64_t end,
                        const char *why, uint64_t byte, sgt_error *err);

/* A function that a thread calls for each part p of its unit. The n bytes at `text` are the part's
 * text, ready to encode: normalized, and with ill-formed UTF-8 replaced if the options say so. They
 * are valid until the function returns. Error messages need not name the file, because the caller
 * adds its path. */
typedef int sgt_part_work(void *worker, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                          sgt_error *err);

/* Unfold lines and rows into documents, and then call `work` for each part in order. Count the
 * ill-formed UTF-8 sequences, and record the positions of the first ones in u->invalid. */
int sgt_unit_work(sgt_unit *u, sgt_part_work *work, void *worker, sgt_error *err);

/* Encode a part, and append its ids to the unit's ids. This function is an sgt_part_work, whose
 * `worker` here points to a pointer to the thread's sgt_encoder. */
int sgt_part_encode(void *encoder, sgt_unit *u, sgt_part *p, const uint8_t *text, size_t n,
                    sgt_error *err);

/* ---- the feed ---- */

/* Where a feed begins: at byte `offset` of the stream of file `file`, where an earlier run began a
 * part. `hashed`, `hash` and `block` are those of that part (sgt_part): if bytes before `offset`
 * must be read again, the first `hashed` of them must have the hash `hash`. `split` is the split of
 * the document that continues at `offset`. */
typedef struct sgt_text_feed_from {
    uint64_t file, offset, hashed, hash, block, split;
} sgt_text_feed_from;

typedef struct sgt_text_feed_options {
    sgt_reading reading;
    /* number of bytes of text per unit; a unit is longer only if its text cannot be cut */
    size_t piece;
    /* a second stop request, besides the one in the options: if either is set, waiting for a
     * stream's next bytes ends with SGT_ESTOPPED */
    const sgt_stop *cancel;
    /* Text without any other cut point is cut between two tokens, but only if it has at least this
     * many bytes. 0: 1 MiB. */
    size_t long_piece;
    /* maximum length in bytes of text that has no cut point; longer text is an error; 0: 1 GiB */
    size_t extent;
    /* Number of threads that encode; 0: one. The feed opens up to twice as many compressed or
     * filtered files in advance. */
    size_t threads;
    sgt_text_feed_from from;
} sgt_text_feed_options;

typedef struct sgt_text_feed sgt_text_feed;

/* Return the best number of bytes of text per unit for encoding. The output does not depend on this
 * number. */
size_t sgt_text_feed_piece(void);

/* Open a feed; *o is copied. */
int sgt_text_feed_open(sgt_text_feed **out, const sgt_text_feed_options *o, sgt_error *err);
/* Fill in the text and the parts of *u with the next unit. Return 0, or 1 at the end of the corpus,
 * or a negative SGT_E*. After an error, every further call returns the same error. */
int sgt_text_feed_next(sgt_text_feed *f, sgt_unit *u, sgt_error *err);
void sgt_text_feed_close(sgt_text_feed *f);

/* Return the split of a document: 0 training, 1 validation. The result depends only on the
 * arguments. name: name of the document's file. position: where the document begins in the file's
 * stream; for JSONL, where its line begins; if literals begin documents, where its literal begins;
 * 0 for a whole text file. */
int sgt_text_feed_split(const char *name, uint64_t position, double val_fraction);

/* If all files of c are text files, make sure that neither split is empty. If no file falls into
 * the validation split and there are several, the one with the smallest hash is put there. If all
 * files fall into the validation split and val_fraction is less than 1, the one with the largest
 * hash is put into the training split, and the call returns 1. Of equal hashes, the first file is
 * chosen. The choice depends only on the names, so all ranks make the same one. */
int sgt_text_feed_choose(sgt_corpus *c, double val_fraction);

/* ---- checking that an input has not changed since a set was made ----
 *
 * An input is identified by a hash of what is tokenized: the bytes of its stream, after
 * decompression or from a filter. For Parquet, it is a hash of the metadata and the text column's
 * pages (sgt_parquet_hash). The feed hashes what it reads, so nothing is read twice. sources.jsonl
 * stores the hash of each file; the journal stores the hash of what was read of the current file.
 *
 * A later run first compares each file's inode, size and time with those recorded when the inputs
 * were listed. (A hash of them is in sources.jsonl or, for a run to be resumed, in
 * .work/inputs.jsonl.) If they are equal, the file counts as unchanged. Otherwise the file is read
 * and hashed, and the run is refused if its hash differs. */

/* Read a file, or only its first `length` bytes (Parquet: rows), and set *hash to their hash. If
 * the file is shorter than `length`, hash all of it. field: the Parquet column. */
int sgt_same_hash(uint64_t *hash, const sgt_corpus_file *f, const char *field, uint64_t length,
                  const sgt_stop *stop, sgt_error *err);

#endif
