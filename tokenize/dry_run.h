/* dry_run.h: estimate the documents, tokens, disk space and time that tokenizing would take,
 * without writing anything, from samples spread over all inputs.
 *
 * It serves users who plan a run by its number of tokens (--dry-run). It also warns before a run
 * that would fill the disk after hours of work: sgt_tokenize asks before it writes (space.h). Most
 * corpora are packed or JSONL, so these are sampled too.
 *
 *     sgt_dry_run_result r;
 *     sgt_tokenize_options o = {.inputs = in, .input_count = n, .out = "out"};
 *     if (sgt_dry_run(&o, &r, &err) < 0) ...;
 *
 * 256 places are evenly spaced in the bytes on disk; some 32 KiB at each are read and encoded.
 * Small inputs are encoded whole, so the result is exact. The same inputs give the same estimate,
 * except for the time. Files that are packed, or read through a command, are read from their
 * beginning, up to 256 MiB of unpacked text in all. Small ones are read to their end. */
#ifndef SGT_DRY_RUN_H
#define SGT_DRY_RUN_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

#define SGT_NOT_KNOWN UINT64_MAX

typedef struct sgt_dry_run_result {
    uint64_t files, bytes; /* of the inputs, as stored on disk */
    uint64_t skipped;      /* files left out because they are not text */
    /* text files, one document each, are counted; JSONL documents are estimated unless
     * documents_exact is set */
    uint64_t documents;
    int documents_exact; /* 1: everything was read, so `documents` is exact */
    /* estimate, including duplicates and an end-of-text id for each document */
    uint64_t tokens;
    /* twice the standard error of `tokens`; 0: exact; SGT_NOT_KNOWN: there was one sample, or only
     * the beginnings of a few packed files */
    uint64_t tokens_error;
    uint64_t samples, sample_bytes, sample_tokens; /* what was encoded; bytes of text and of JSON */
    uint64_t bad_lines, invalid_utf8;              /* found in the samples */
    uint64_t shards, disk;                         /* disk: bytes of the complete OUT */
    /* further bytes until then: parts of ranks, of --shuffle or of --dedup; and the set that files
     * in another layout are written from */
    uint64_t disk_meanwhile;
    uint64_t disk_free;  /* bytes free for this user; SGT_NOT_KNOWN if OUT is not given */
    uint64_t disk_there; /* bytes of OUT already on disk from an earlier run */
    /* estimated duration on this machine, at the speed measured on the samples */
    double seconds;
} sgt_dry_run_result;

/* Estimate what sgt_tokenize(o) would give; o->out may be NULL. JSONL lines at which sgt_tokenize
 * would fail are counted. Standard input is refused, because the samples would use it up. */
int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err);

/* Estimate as sgt_dry_run does, for a corpus that is already listed (without standard input) and a
 * loaded vocabulary. */
int sgt_dry_run_corpus(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                       sgt_dry_run_result *r, sgt_error *err);

#endif
