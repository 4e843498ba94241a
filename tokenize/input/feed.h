/* feed.h: deliver the files of a corpus as units of work, in order. One feed belongs to one thread
 * at a time.
 *
 *     sgt_text_feed *f;
 *     sgt_text_feed_options o = {.corpus = c, .piece = 1 << 18};
 *     if (sgt_text_feed_open(&f, &o, &err) < 0) ...;
 *     while ((rc = sgt_text_feed_next(f, &unit, &err)) == 0) use(&unit);
 *     sgt_text_feed_close(f);
 *
 * Text is cut where no token crosses the cut. JSONL comes as whole lines, which sgt_json_parts
 * turns into documents, and Parquet as pages of rows. Every part has an offset in the stream of its
 * file (unpacked if it is packed; of Parquet, the number of a row), and a run can begin at any
 * part. If the split rule gives no place to cut in a long text (a mebibyte of one letter), the
 * vocabulary's merges give one (bpe/extent.h). More than 1 GiB is an error for a line, and for text
 * that is not cut. Text is not cut if it is split by a pattern, or if it is to be normalized and
 * has neither white space nor only ASCII.
 *
 * If a literal end of text begins a document, a part is cut before the last one in it, so that no
 * part ends within a document that a literal inside it has begun; json_parts.h divides the rest. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/input/unit.h"

/* Where the feed begins: byte `offset` of the stream of file `file`, where a part of an earlier run
 * began. The first `hashed` bytes of the stream must still have the hash `hash` (sgt_part), as far as
 * they are read again. `split` is that of the document which goes on there. */
typedef struct sgt_text_feed_from {
    uint64_t file, offset, hashed, hash, block, split;
} sgt_text_feed_from;

typedef struct sgt_text_feed_options {
    const sgt_corpus *corpus;
    const uint64_t *joins; /* the vocabulary's table for sgt_split_cut */
    /* bytes per unit; an extent of text that cannot be cut makes a longer unit */
    size_t piece;
    const char *field;    /* field or column that holds the text; NULL: "text" */
    sgt_literal literal;  /* the literal end of text, which is never cut */
    const sgt_rule *rule; /* rule that text is split by; NULL: GPT-2's */
    /* documents are not cut at all, because they are split by a pattern */
    int whole;
    /* text is normalized before it is split, and cut only where that is safe */
    int normalized;
    double val_fraction;           /* fraction of documents that go to the val split */
    const sgt_stop *stop, *cancel; /* requesting either ends the wait for a stream */
    /* vocabulary whose merges may cut long pieces; NULL: do not cut them */
    const sgt_vocab *vocab;
    int replaced; /* ill-formed bytes become U+FFFD before the text is encoded */
    /* text that has no other place to cut for so many bytes is cut between tokens of `vocab`; 0: 1
     * MiB */
    size_t long_piece;
    size_t extent;  /* most bytes of text without a cut; more is an error; 0: 1 GiB */
    size_t threads; /* threads that unpack and filter in parallel; 0: one */
    /* told, once, of a stream whose first bytes decide whether it is JSONL */
    sgt_notice notice;
    sgt_text_feed_from from;
} sgt_text_feed_options;

typedef struct sgt_text_feed sgt_text_feed;

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

#endif
