/* record.h: write the results of a run to disk: ids into shards, sources.jsonl, and checkpoints in
 * the journal. Takes encoded units in the order of the text. One thread at a time. */
#ifndef SGT_RECORD_H
#define SGT_RECORD_H

#include "tokenize/input/feed.h"
#include "tokenize/out/out.h"

/* The file of a part with a record of each document, in the order of the input. dedup.h finds
 * duplicates by them. */
#define SGT_DEDUP_FILE "documents.sgt"
#define SGT_DEDUP_VAL ((uint64_t)1 << 63) /* flag in `length`: the document is in the val split */

typedef struct sgt_dedup_record {
    uint64_t hash[2]; /* XXH3-128 of the text, low half first */
    uint64_t length;  /* bytes of the text, with the flag SGT_DEDUP_VAL in the val split */
} sgt_dedup_record;

typedef struct sgt_record sgt_record;

/* Continue from the state of out->journal. All arguments must outlive the record. If o->dedup is
 * set, also write the record of each document that dedup.h needs. */
int sgt_record_open(sgt_record **r, const sgt_out *out, const sgt_corpus *c, const sgt_vocab *v,
                    const sgt_tokenize_options *o, sgt_error *err);
void sgt_record_close(sgt_record *r); /* NULL is allowed */

int sgt_record_unit(sgt_record *r, const sgt_unit *u, sgt_error *err);

/* Write everything up to the last unit to disk and commit it to the journal, so that a later run
 * resumes here. */
int sgt_record_save(sgt_record *r, sgt_error *err);

/* Finish after the last unit: write the shards that are not full, and fill in the manifest. The
 * caller adds options and vocabulary, and frees it with sgt_manifest_free. */
int sgt_record_finish(sgt_record *r, sgt_manifest *m, sgt_error *err);

uint64_t sgt_record_bytes(const sgt_record *r); /* bytes of text, in all runs so far */
/* Return the bytes on disk of the files recorded so far. */
uint64_t sgt_record_read(const sgt_record *r);
uint64_t sgt_record_tokens(const sgt_record *r);

#endif
