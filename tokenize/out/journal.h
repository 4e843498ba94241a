/* journal.h: OUT/.work/journal, from which a killed run resumes. It is a JSON object with the
 * vocabulary, the options, the position of the run, and the positions of the first ill-formed
 * UTF-8. A checkpoint replaces the whole file (a temporary file, fsync, rename), so the journal is
 * complete at any moment. All files that it describes were flushed to disk before. The shards that
 * it counts may still have to be moved from .work to OUT, which sgt_out_claim does. */
#ifndef SGT_JOURNAL_H
#define SGT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/file.h"
#include "tokenize/input/feed.h"
#include "tokenize/out/writer.h"

/* The position of a run. The next part of a document begins at byte `offset` of the stream of file
 * `file`, and the first `skip` tokens from there on are already written. All other fields count
 * what comes before that part. All fields are uint64_t, because they are written and read as an
 * array. */
typedef struct sgt_checkpoint {
    uint64_t file, offset, skip;
    uint64_t shards[SGT_SPLITS]; /* (split): number of complete shards */
    /* (split): tokens and documents in the unfinished shard */
    uint64_t tokens[SGT_SPLITS], documents[SGT_SPLITS];
    uint64_t sources;                                 /* bytes written of sources.jsonl */
    uint64_t file_tokens, file_documents, file_bytes; /* counts of file `file`, so far */
    /* for JSONL, the number of lines of file `file`, so far */
    uint64_t line;
    uint64_t all_documents, all_bytes, all_invalid, all_bad, all_surrogates;
    /* hashes of the beginning of the stream of file `file` (sgt_part) */
    uint64_t hashed, hash, block;
    uint64_t all_literals; /* number of literal ends of text that were encoded as text */
    /* split of the document that continues at `offset`. If literals begin documents, a resumed run
     * cannot find it out in any other way */
    uint64_t split;
} sgt_checkpoint;

typedef struct sgt_journal {
    char path[SGT_PATH];
    uint64_t fingerprint;
    char *options;      /* options of the run, as a JSON object */
    int begun;          /* 1: a checkpoint was written; 0: nothing has been written yet */
    sgt_checkpoint now; /* the last checkpoint */
    sgt_invalid_at invalid[SGT_INVALID_LISTED];
    size_t invalid_count;
} sgt_journal;

/* Create a journal without a checkpoint, which replaces any other. */
int sgt_journal_create(sgt_journal **out, const char *work, uint64_t fingerprint,
                       const char *options, sgt_error *err);
/* Read the journal of an earlier run; *out is NULL if there is none. */
int sgt_journal_open(sgt_journal **out, const char *work, sgt_error *err);
void sgt_journal_close(sgt_journal *j); /* NULL is allowed */

/* Record the position of ill-formed UTF-8. Positions come in order; the next commit writes them.
 * One that is already recorded, because the text is read again, is ignored. */
void sgt_journal_invalid(sgt_journal *j, sgt_invalid_at at);
/* Write a checkpoint, and return once it is on disk. */
int sgt_journal_commit(sgt_journal *j, const sgt_checkpoint *now, sgt_error *err);

/* Return whether no shard is complete yet. */
static inline int sgt_journal_empty(const sgt_journal *j)
{
    return !j->now.shards[0] && !j->now.shards[1];
}

#endif
