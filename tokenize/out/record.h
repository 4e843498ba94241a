/* record.h: write the results of a run to disk: ids into shards, lines into sources.jsonl, and
 * checkpoints into the journal. It takes encoded units in the order of the text. Only one thread at
 * a time may use a record. */
#ifndef SGT_RECORD_H
#define SGT_RECORD_H

#include "tokenize/input/feed.h"
#include "tokenize/out/out.h"

/* A file in a rank's part, with a record of each document in the order of the input. dedup.h uses
 * it to find duplicates. */
#define SGT_DEDUP_FILE "documents.sgt"
#define SGT_DEDUP_VAL ((uint64_t)1 << 63) /* flag in `length`: the document is in the val split */

typedef struct sgt_dedup_record {
    uint64_t hash[2]; /* XXH3-128 of the text, low half first */
    /* bytes of the text; the flag SGT_DEDUP_VAL is set if the document is in the val split */
    uint64_t length;
} sgt_dedup_record;

typedef struct sgt_record sgt_record;

/* Open a record that continues from the state of out->journal. All arguments must outlive it. If
 * o->dedup is set, also write the records of documents that dedup.h needs. */
int sgt_record_open(sgt_record **r, const sgt_out *out, const sgt_corpus *c, const sgt_vocab *v,
                    const sgt_tokenize_options *o, sgt_error *err);
void sgt_record_close(sgt_record *r); /* NULL is allowed */

int sgt_record_unit(sgt_record *r, const sgt_unit *u, sgt_error *err);

/* Write everything up to the last unit to disk, and commit it to the journal, so that a later run
 * resumes there. */
int sgt_record_save(sgt_record *r, sgt_error *err);

/* Finish after the last unit: write the shards that are not full, and fill in *m. The caller adds
 * options and vocabulary to *m, and frees it with sgt_manifest_free. */
int sgt_record_finish(sgt_record *r, sgt_manifest *m, sgt_error *err);

uint64_t sgt_record_bytes(const sgt_record *r); /* bytes of text, counting earlier runs */
/* Return the bytes on disk of the files recorded so far, for progress. */
uint64_t sgt_record_read(const sgt_record *r);
uint64_t sgt_record_tokens(const sgt_record *r);

#endif
