/* feed.h: the files of a corpus as units of work, in order. One feed belongs to one thread at a
 * time.
 *
 *     sgt_text_feed *f;
 *     if (sgt_text_feed_open(&f, &(sgt_text_feed_options){.corpus = c, .piece = 1 << 18}, &err) < 0) ...;
 *     while ((rc = sgt_text_feed_next(f, &unit, &err)) == 0) use(&unit);
 *     sgt_text_feed_close(f);
 *
 * Text is cut where no token is; JSONL comes as whole lines, which sgt_json_parts unfolds. Both
 * have an offset in the file's stream, unpacked where it is packed, and a run can begin at any
 * part's. Where nothing but a vocabulary's merges says where to cut (a mebibyte of one letter),
 * they do (bpe/extent.h). A line of more than 1 GiB is an error, and so is as much text that is not
 * cut: because the vocabulary has a rule of its own, or text past ASCII without white space is
 * normalized. */
#ifndef SGT_FEED_H
#define SGT_FEED_H

#include <stdint.h>

#include "base/error.h"
#include "corpus.h"
#include "unit.h"

/* Where it begins: byte `offset` of the stream of file `file`, at which a part of an earlier run
 * began. Where such a stream has to be made again up to there, the hash of its first `hashed` bytes
 * must be the one it was (sgt_part). */
typedef struct sgt_text_feed_from {
    uint64_t file, offset, hashed, hash;
} sgt_text_feed_from;

typedef struct sgt_text_feed_options {
    const sgt_corpus *corpus;
    const uint64_t *joins; /* of the vocabulary, for sgt_split_cut */
    /* bytes of a unit; one extent of text that cannot be cut makes a longer one */
    size_t piece;
    const char *special; /* a literal that is never cut; NULL: there is none */
    /* documents are not cut at all: the vocabulary has a rule of its own */
    int whole;
    /* text is normalized before it is split, and cut where that allows it */
    int normalized;
    double val_fraction;           /* of documents that go to the val split */
    const sgt_stop *stop, *cancel; /* either ends the wait for a stream */
    const sgt_vocab *vocab;        /* by whose merges long pieces are cut; NULL: they are not */
    int replaced;                  /* ill-formed bytes become U+FFFD before the text is encoded */
    size_t long_piece;             /* bytes from which on that is tried; 0: 1 MiB */
    size_t extent;                 /* bytes that cannot be cut, at most; 0: 1 GiB */
    size_t threads;                /* that unpack and filter beside each other; 0: one */
    sgt_text_feed_from from;
} sgt_text_feed_options;

typedef struct sgt_text_feed sgt_text_feed;

/* *o is copied */
int sgt_text_feed_open(sgt_text_feed **out, const sgt_text_feed_options *o, sgt_error *err);
/* Fills u's text and parts with what comes next. 0; 1 at the end; or a negative SGT_E*, again at
 * each further call. */
int sgt_text_feed_next(sgt_text_feed *f, sgt_unit *u, sgt_error *err);
void sgt_text_feed_close(sgt_text_feed *f);

/* Which split a document of the file called `name` belongs to: 0 train, 1 val. Nothing else
 * decides. Position: where it begins in the file's stream, in bytes; of JSONL, where its line does;
 * of text it is 0. */
int sgt_text_feed_split(const char *name, uint64_t position, double val_fraction);

/* If c holds two or more files, all of them text, and none falls into the val split: moves the one
 * with the smallest hash there, the first of several such. Depends on the names alone, so it is the
 * same for any ranks. */
void sgt_text_feed_choose(sgt_corpus *c, double val_fraction);

#endif
