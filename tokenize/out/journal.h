/* journal.h: OUT/.work/journal, from which a run that was killed goes on. Text, a line each,
 * written only at its end:
 *
 *     sgt-tokenize 2 FINGERPRINT {"format": ...}              the vocabulary and the options
 *     shard train 0 TOKENS DOCUMENTS XXH3                     a shard is whole
 *     invalid 0 FILE OFFSET                                   ill-formed UTF-8 that the manifest will name
 *     state ...                                               all of sgt_checkpoint: everything above is true
 *
 * Every line ends in its own checksum. What follows the last good `state` is as if it had not been
 * written; what stands before it was on disk before the line was. A shard that the journal knows
 * may still have to be moved from .work to OUT: sgt_out_claim does that. */
#ifndef SGT_JOURNAL_H
#define SGT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "input/unit.h"
#include "shards/manifest.h"

#define SGT_SPLITS 2

/* Where a run stands: the next part of a document begins at byte `offset` of the stream of file
 * `file`, and of the tokens from there on the first `skip` are written already. All else counts
 * what lies before that part. uint64_t alone: written and read as an array. */
typedef struct sgt_checkpoint {
    uint64_t file, offset, skip;
    /* in the shard being written of each split */
    uint64_t tokens[SGT_SPLITS], documents[SGT_SPLITS];
    uint64_t sources;                                 /* bytes of sources.jsonl */
    uint64_t file_tokens, file_documents, file_bytes; /* of file `file` so far */
    uint64_t line;                                    /* JSONL: lines of it so far */
    uint64_t all_documents, all_bytes, all_invalid, all_bad, all_surrogates;
    uint64_t hashed, hash; /* of the stream of file `file` (sgt_part) */
} sgt_checkpoint;

typedef struct sgt_journal {
    int fd;
    char *path;
    uint64_t fingerprint;
    char *options; /* JSON object text */
    /* how many were read or written; 0: nothing has been done yet */
    uint64_t states;
    sgt_checkpoint now;                     /* of the last of them */
    sgt_manifest_shard *shards[SGT_SPLITS]; /* in order */
    size_t count[SGT_SPLITS], room[SGT_SPLITS];
    sgt_invalid_at invalid[SGT_INVALID_LISTED];
    size_t invalid_count, invalid_written;
    int lost; /* there was no memory for all of it */
} sgt_journal;

extern const char *const sgt_split_names[SGT_SPLITS]; /* "train", "val" */

/* A journal with nothing in it but its first line, in the place of any other (atomically). */
int sgt_journal_create(sgt_journal **out, const char *work, uint64_t fingerprint,
                       const char *options, sgt_error *err);
/* The journal of an earlier run, cut after its last good state. *out is NULL where there is none,
 * or none that says whose it is. */
int sgt_journal_open(sgt_journal **out, const char *work, sgt_error *err);
/* The options in the first line of that journal, which is not touched: JSON text, malloc'd; NULL:
 * none to be had. */
char *sgt_journal_options(const char *work);
void sgt_journal_close(sgt_journal *j); /* NULL is fine */

/* Ill-formed UTF-8 at `at`, in order; goes out with the next commit. One that is known, as text is
 * read again, is not noted twice. */
void sgt_journal_invalid(sgt_journal *j, sgt_invalid_at at);
/* `done`: a shard per split that became whole, tokens 0 for none. Returns when it is on disk. */
int sgt_journal_commit(sgt_journal *j, const sgt_manifest_shard done[SGT_SPLITS],
                       const sgt_checkpoint *now, sgt_error *err);

static inline int sgt_journal_empty(const sgt_journal *j) { return !j->count[0] && !j->count[1]; }

#endif
