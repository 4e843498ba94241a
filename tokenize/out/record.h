/* record.h: what a run has done so far, and putting it on disk: ids into shards, sources.jsonl, and
 * checkpoints in the journal. Takes encoded units in the order of the text. One thread. */
#ifndef SGT_RECORD_H
#define SGT_RECORD_H

#include "input/unit.h"
#include "out.h"

typedef struct sgt_record sgt_record;

/* Goes on where o->journal stands. o, corpus and vocab must live as long as the record. digests:
 * leave the record of each document that dedup.h wants. */
int sgt_record_open(sgt_record **out, const sgt_out *o, const sgt_corpus *c, const sgt_vocab *v,
                    uint64_t shard_tokens, int digests, sgt_error *err);
void sgt_record_close(sgt_record *r); /* NULL is fine */

int sgt_record_unit(sgt_record *r, const sgt_unit *u, sgt_error *err);

/* Everything up to the last unit on disk and in the journal, so that a later run goes on from
 * here. */
int sgt_record_save(sgt_record *r, sgt_error *err);

/* After the last unit: the shards that are not full, and the manifest of it all (options and
 * vocabulary are the caller's to fill in; free it with sgt_manifest_free). */
int sgt_record_finish(sgt_record *r, sgt_manifest *m, sgt_error *err);

uint64_t sgt_record_bytes(const sgt_record *r); /* of text, in all runs so far */
/* of files, as they lie on disk, that lie behind it */
uint64_t sgt_record_read(const sgt_record *r);
uint64_t sgt_record_tokens(const sgt_record *r);

#endif
