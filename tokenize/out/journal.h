/* journal.h: OUT/.work/journal, from which a killed run resumes. It is text, one record per line,
 * and is only appended to:
 *
 *     sgt-tokenize 2 FINGERPRINT {"format": ...}   the vocabulary and the options
 *     shard train 0 TOKENS DOCUMENTS XXH3          a shard is complete
 *     invalid 0 FILE OFFSET                        ill-formed UTF-8 that the manifest will name
 *     state ...                                    a whole sgt_checkpoint: all lines above are true
 *
 * Every line ends in its own checksum. Lines after the last good `state` are ignored. What a line
 * describes was on disk before the line was written. A shard that the journal lists may still have
 * to be moved from .work to OUT: sgt_out_claim does that. */
#ifndef SGT_JOURNAL_H
#define SGT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/shards/manifest.h"
#include "tokenize/input/feed.h"
#include "tokenize/out/writer.h"

/* The position of a run. The next part of a document begins at byte `offset` of the stream of file
 * `file`; the first `skip` tokens from there on are already written. All other fields count what
 * lies before that part. All are uint64_t, because they are written and read as an array. */
typedef struct sgt_checkpoint {
    uint64_t file, offset, skip;
    /* of the unfinished shard of each split */
    uint64_t tokens[SGT_SPLITS], documents[SGT_SPLITS];
    uint64_t sources;                                 /* bytes of sources.jsonl */
    uint64_t file_tokens, file_documents, file_bytes; /* of file `file`, so far */
    uint64_t line;                                    /* JSONL: lines of file `file`, so far */
    uint64_t all_documents, all_bytes, all_invalid, all_bad, all_surrogates;
    /* of the first bytes of the stream of file `file` (sgt_part) */
    uint64_t hashed, hash, block;
    uint64_t all_literals; /* literal ends of text that are text */
    /* split of the document at `offset`: if literals begin documents, nothing else tells a later run
     * the split of the one that goes on there */
    uint64_t split;
} sgt_checkpoint;

typedef struct sgt_journal {
    sgt_sink file;
    uint64_t fingerprint;
    char *options; /* JSON text of an object */
    /* number of `state` lines read or written; 0: nothing has been done yet */
    uint64_t states;
    sgt_checkpoint now;                     /* the last state */
    sgt_manifest_shard *shards[SGT_SPLITS]; /* complete shards, in order */
    size_t count[SGT_SPLITS], room[SGT_SPLITS];
    sgt_invalid_at invalid[SGT_INVALID_LISTED];
    size_t invalid_count, invalid_written;
    int lost;  /* 1: memory ran out, so the contents are incomplete */
    int other; /* 1: another version wrote the states; they are counted, and not known */
} sgt_journal;

/* Create a journal with only its first line, replacing any other atomically. */
int sgt_journal_create(sgt_journal **out, const char *work, uint64_t fingerprint,
                       const char *options, sgt_error *err);
/* Open the journal of an earlier run and cut it after its last good state. *out is NULL if there is
 * no journal, or none with a valid first line. */
int sgt_journal_open(sgt_journal **out, const char *work, sgt_error *err);
void sgt_journal_close(sgt_journal *j); /* NULL is allowed */

/* Record a place of ill-formed UTF-8, in order; the next commit writes it. A place that is already
 * known, because the text is read again, is ignored. */
void sgt_journal_invalid(sgt_journal *j, sgt_invalid_at at);
/* Write a checkpoint, and return when it is on disk. `done`: for each split, the shard that became
 * complete; its tokens are 0 if there is none. */
int sgt_journal_commit(sgt_journal *j, const sgt_manifest_shard done[SGT_SPLITS],
                       const sgt_checkpoint *now, sgt_error *err);

static inline int sgt_journal_empty(const sgt_journal *j) { return !j->count[0] && !j->count[1]; }

#endif
