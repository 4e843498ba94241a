/* record.h: writes the results of a run to disk: ids into shards, lines into sources.jsonl, and
 * checkpoints into the journal. It takes encoded units in the order of the text. Only one thread at
 * a time may use an sgt_record. */
#ifndef SGT_RECORD_H
#define SGT_RECORD_H

#include "tokenize/input/feed.h"
#include "tokenize/out/out.h"

/* File with a record of each document, in the order of the input. It exists in each rank's part if
 * duplicates are to be removed: they are found from these records (dedup.h). */
#define SGT_DEDUP_FILE "documents.sgt"
/* flag in sgt_dedup_record.length: the document is in the validation split */
#define SGT_DEDUP_VAL ((uint64_t)1 << 63)

typedef struct sgt_dedup_record {
    uint64_t hash[2]; /* XXH3-128 of the document's text, low half first */
    /* length of the text in bytes, ORed with SGT_DEDUP_VAL if the document is for validation */
    uint64_t length;
} sgt_dedup_record;

typedef struct sgt_record sgt_record;

/* Create an sgt_record that continues at the position in out->journal. All arguments must outlive
 * it. If o->dedup is set, also write a record of each document, by which duplicates are found
 * (dedup.h). */
int sgt_record_open(sgt_record **r, const sgt_out *out, const sgt_corpus *c, const sgt_vocab *v,
                    const sgt_tokenize_options *o, sgt_error *err);
void sgt_record_close(sgt_record *r); /* NULL is allowed */

int sgt_record_unit(sgt_record *r, const sgt_unit *u, sgt_error *err);

/* Flush everything up to the last unit to disk, and commit the position to the journal, so that a
 * later run can resume there. */
int sgt_record_save(sgt_record *r, sgt_error *err);

/* Finish after the last unit: complete the shards that are not full, and fill in *m, except options
 * and vocabulary. The caller adds these, and frees *m with sgt_manifest_free. */
int sgt_record_finish(sgt_record *r, sgt_manifest *m, sgt_error *err);

/* Return the number of bytes of text recorded, including earlier runs. */
uint64_t sgt_record_bytes(const sgt_record *r);
/* Return the number of bytes of the input files that have been read so far, as stored on disk
 * (compressed files count with their compressed size). It is used to show progress. */
uint64_t sgt_record_read(const sgt_record *r);
uint64_t sgt_record_tokens(const sgt_record *r);

#endif
