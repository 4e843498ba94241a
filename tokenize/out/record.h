/* record.h: write the results of a run to disk: ids into shards, sources.jsonl, and checkpoints in
 * the journal. Takes encoded units in the order of the text. One thread at a time. */
#ifndef SGT_RECORD_H
#define SGT_RECORD_H

#include "tokenize/input/feed.h"
#include "tokenize/out/out.h"

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
