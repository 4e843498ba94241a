/* writer.h: the shards of one split, written one after the other. Ids go to
 * WORK/SPLIT_NNNNNN.bin.tmp and the starts of documents to WORK/SPLIT_NNNNNN.idx.tmp; a shard that
 * is full is made whole (header, fsync) and waits there under these names until the journal knows
 * it and they are moved into OUT. One thread at a time. */
#ifndef SGT_WRITER_H
#define SGT_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "shards/manifest.h"
#include "sgt_tokenize.h"

#define SGT_WRITER_SHARDS 1000000 /* a split's shards are numbered with six digits */

typedef struct sgt_writer sgt_writer;

typedef struct sgt_writer_options {
    const char *work;      /* the folder for what is not yet whole */
    const char *split;     /* "train" */
    uint64_t shard_tokens; /* in every shard but the last */
    const sgt_vocab *vocab;
} sgt_writer_options;

/* Goes on after `shards` whole shards with one of which the first `tokens` tokens and `documents`
 * starts are on disk (0, 0: none begun): what the files hold beyond is cut off. Strings and vocab
 * must live as long as the writer. */
int sgt_writer_open(sgt_writer **out, const sgt_writer_options *o, uint64_t shards, uint64_t tokens,
                    uint64_t documents, sgt_error *err);
void sgt_writer_close(sgt_writer *w); /* leaves the files as they are; NULL is fine */

uint64_t sgt_writer_tokens(const sgt_writer *w);    /* in the shard being written */
uint64_t sgt_writer_documents(const sgt_writer *w); /* that start in it */
/* tokens until it is full; never 0 before an append */
uint64_t sgt_writer_room(const sgt_writer *w);

int sgt_writer_document(sgt_writer *w, sgt_error *err); /* the next token starts a document */
int sgt_writer_append(sgt_writer *w, const uint16_t *ids, size_t n, sgt_error *err); /* n <= room */
int sgt_writer_sync(sgt_writer *w, sgt_error *err); /* everything appended is on disk */

/* Makes the shard being written whole (it must hold a token), says what it is, and turns to the
 * next number. */
int sgt_writer_finish(sgt_writer *w, sgt_manifest_shard *s, sgt_error *err);

/* "train", 7, "bin" -> "train_000007.bin", into name[64]. */
void sgt_writer_name(char name[64], const char *split, uint64_t index, const char *suffix);

#endif
