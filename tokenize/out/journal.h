/* journal.h: writes and reads OUT/.work/journal, from which a killed run resumes. The journal is a
 * JSON object with the fingerprint of the vocabulary, the options, the position that the run has
 * reached, and the first positions at which the input had ill-formed UTF-8.
 *
 * Each checkpoint replaces the journal (temporary file, fsync, rename), so the journal on disk is
 * always complete. All files that the journal describes were flushed to disk before the journal was
 * written. Some of the complete shards that the journal counts may still be in .work; when a later
 * run claims OUT, sgt_out_claim moves these shards to OUT. */
#ifndef SGT_JOURNAL_H
#define SGT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/file.h"
#include "tokenize/input/feed.h"
#include "tokenize/out/writer.h"

/* A checkpoint: the position in the input from which a killed run can be resumed. The resumed run
 * begins with the part of a document (input/feed.h) that starts at byte `offset` of the stream of
 * input file `file`, and skips the next `skip` tokens, because they are already written. `shards`,
 * `tokens` and `documents` include these tokens; all other fields count only what comes before
 * `offset`. All fields are uint64_t, because the journal stores them as one array. */
typedef struct sgt_checkpoint {
    uint64_t file, offset, skip;
    uint64_t shards[SGT_SPLITS]; /* number of complete shards in each split */
    /* for each split: number of tokens in its unfinished shard, and number of documents that start
     * in this shard */
    uint64_t tokens[SGT_SPLITS], documents[SGT_SPLITS];
    uint64_t sources;                                 /* bytes written of sources.jsonl */
    uint64_t file_tokens, file_documents, file_bytes; /* counts of file `file`, so far */
    /* number of lines (in Parquet files: rows) of input file `file` that have been read so far */
    uint64_t line;
    uint64_t all_documents, all_bytes, all_invalid, all_bad, all_surrogates;
    /* State of the hash of the stream of `file` up to `offset`, with which a later run continues
     * hashing. The values are copied from the fields of sgt_part with the same names. */
    uint64_t hashed, hash, block;
    /* number of times that the text contained "<|endoftext|>" and it was encoded as ordinary
     * text */
    uint64_t all_literals;
    /* Index of the split to which the document that continues at `offset` belongs. Normally, the
     * split is computed from the offset at which the document begins. A resumed run may not know
     * that offset: if <|endoftext|> in the text begins documents, the document can begin anywhere
     * before `offset`. Therefore, the split is stored. */
    uint64_t split;
} sgt_checkpoint;

typedef struct sgt_journal {
    char path[SGT_PATH];
    uint64_t fingerprint;
    char *options;      /* the run's options as the text of a JSON object */
    int begun;          /* 1 if `now` holds a checkpoint; 0 if none has been written yet */
    sgt_checkpoint now; /* the last checkpoint */
    sgt_invalid_at invalid[SGT_INVALID_LISTED];
    size_t invalid_count;
} sgt_journal;

/* Write a journal that has no checkpoint yet into folder `work`, replacing any earlier journal. The
 * caller closes *out. */
int sgt_journal_create(sgt_journal **out, const char *work, uint64_t fingerprint,
                       const char *options, sgt_error *err);
/* Read the journal of an earlier run. If there is none, set *out to NULL and return 0. */
int sgt_journal_open(sgt_journal **out, const char *work, sgt_error *err);
void sgt_journal_close(sgt_journal *j); /* NULL is allowed */

/* Add a position of ill-formed UTF-8 to the journal; the next call to sgt_journal_commit writes it
 * to disk. Positions must be added in ascending order. A position that is already recorded is
 * ignored, because a resumed run reads some text a second time. */
void sgt_journal_invalid(sgt_journal *j, sgt_invalid_at at);
/* Replace the checkpoint in the journal with *now, and flush the journal to disk before
 * returning. */
int sgt_journal_commit(sgt_journal *j, const sgt_checkpoint *now, sgt_error *err);

/* Return 1 if the journal counts no complete shard in any split, else 0. */
static inline int sgt_journal_empty(const sgt_journal *j)
{
    return !j->now.shards[0] && !j->now.shards[1];
}

#endif
