/* record.h: writes the results of a run to disk: ids into shards, lines into sources.jsonl, and
 * checkpoints into the journal. Its input is encoded units (consecutive sections of the text with
 * their token ids, input/feed.h), in the order of the text. Only one thread at a time may use an
 * sgt_record. */
#ifndef SGT_RECORD_H
#define SGT_RECORD_H

#include "tokenize/input/feed.h"
#include "tokenize/out/out.h"

/* Name of a file that has a record of each document, in the order of the input. If duplicates are
 * to be removed, each rank writes such a file, from which the duplicates are found (dedup.h). */
#define SGT_DEDUP_FILE "documents.sgt"
/* flag that is set in sgt_dedup_record.length if the document is in the validation split */
#define SGT_DEDUP_VAL ((uint64_t)1 << 63)

typedef struct sgt_dedup_record {
    uint64_t hash[2]; /* XXH3-128 of the document's text, low half first */
    /* length of the text in bytes, with the flag SGT_DEDUP_VAL if the document is in the validation
     * split */
    uint64_t length;
} sgt_dedup_record;

typedef struct sgt_record sgt_record;

/* Create an sgt_record that continues at the position in out->journal. All arguments must outlive
 * *r. If o->dedup is set, a record of each document is also written, so that duplicates can be
 * found (dedup.h). */
int sgt_record_open(sgt_record **r, const sgt_out *out, const sgt_corpus *c, const sgt_vocab *v,
                    const sgt_tokenize_options *o, sgt_error *err);
void sgt_record_close(sgt_record *r); /* NULL is allowed */

int sgt_record_unit(sgt_record *r, const sgt_unit *u, sgt_error *err);

/* Flush the results of all units so far to disk, and then write the position to the journal, so
 * that a later run can resume there. */
int sgt_record_save(sgt_record *r, sgt_error *err);

/* Complete the shards that are not full, and fill in *m except for the options and the vocabulary,
 * which the caller adds. Call this after the last unit. The caller frees *m with
 * sgt_manifest_free. */
int sgt_record_finish(sgt_record *r, sgt_manifest *m, sgt_error *err);

/* Return the number of bytes of text recorded so far, by this run and by the earlier runs that it
 * resumes. */
uint64_t sgt_record_bytes(const sgt_record *r);
/* Return how many bytes of the input files have been read so far, for a progress display.
 * Compressed files count with their compressed size. */
uint64_t sgt_record_read(const sgt_record *r);
uint64_t sgt_record_tokens(const sgt_record *r);

#endif
