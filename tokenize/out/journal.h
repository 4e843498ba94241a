/* journal.h: writes and reads OUT/.work/journal, from which a killed run resumes. The journal is a
 * JSON object with the vocabulary, the options, the position of the run, and the positions of the
 * first ill-formed UTF-8.
 *
 * A checkpoint replaces the file (temporary file, fsync, rename), so the journal on disk is always
 * complete. All files that it describes were flushed to disk before. Some of the complete shards
 * that it counts may still be in .work; sgt_out_claim moves them to OUT. */
#ifndef SGT_JOURNAL_H
#define SGT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/file.h"
#include "tokenize/input/feed.h"
#include "tokenize/out/writer.h"

/* The position of a run, from which a later run can resume. The later run continues with a part of
 * a document (input/feed.h): the part that begins at byte `offset` of the stream of input file
 * `file`. The first `skip` tokens of this part are already written. All other fields count only
 * what comes before the part. All fields are uint64_t, because they are written and read as an
 * array. */
typedef struct sgt_checkpoint {
    uint64_t file, offset, skip;
    uint64_t shards[SGT_SPLITS]; /* number of complete shards in each split */
    /* for each split: number of tokens written to its unfinished shard, and number of documents
     * that start in this shard */
    uint64_t tokens[SGT_SPLITS], documents[SGT_SPLITS];
    uint64_t sources;                                 /* bytes written of sources.jsonl */
    uint64_t file_tokens, file_documents, file_bytes; /* counts of file `file`, so far */
    /* number of lines (Parquet: rows) of input file `file` that have been read so far */
    uint64_t line;
    uint64_t all_documents, all_bytes, all_invalid, all_bad, all_surrogates;
    /* hash of the stream of `file` up to `offset`, from which a later run can continue; copied from
     * the fields of sgt_part with the same names */
    uint64_t hashed, hash, block;
    /* number of times that <|endoftext|> occurred in the text and was encoded as ordinary text */
    uint64_t all_literals;
    /* Split of the document that continues at `offset`. A split is computed from the position at
     * which the document begins. A resumed run may not know that position: if <|endoftext|> in the
     * text begins documents, it can be anywhere before `offset`. Therefore the split is stored. */
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

/* Create a journal without a checkpoint in folder `work`, where it replaces any earlier journal.
 * The caller closes *out. */
int sgt_journal_create(sgt_journal **out, const char *work, uint64_t fingerprint,
                       const char *options, sgt_error *err);
/* Read the journal of an earlier run. If there is none, set *out to NULL and return 0. */
int sgt_journal_open(sgt_journal **out, const char *work, sgt_error *err);
void sgt_journal_close(sgt_journal *j); /* NULL is allowed */

/* Record a position of ill-formed UTF-8, for the next commit to write. Positions must come in
 * order. A position that is already recorded is ignored, because a resumed run reads some text
 * again. */
void sgt_journal_invalid(sgt_journal *j, sgt_invalid_at at);
/* Write a checkpoint, replacing the last one, and return when it is on disk. */
int sgt_journal_commit(sgt_journal *j, const sgt_checkpoint *now, sgt_error *err);

/* Return 1 if, according to the journal, no shard is complete. */
static inline int sgt_journal_empty(const sgt_journal *j)
{
    return !j->now.shards[0] && !j->now.shards[1];
}

#endif
