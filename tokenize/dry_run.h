/* dry_run.h: what tokenizing would give and take, without writing anything: documents, tokens, disk
 * and time, from samples that are spread over all inputs.
 *
 * Two users need it: one who plans a run by the number of tokens (--dry-run), and one whose disk
 * would be full after hours of work (sgt_tokenize asks before it writes, see space.h). Most corpora
 * are packed or JSONL, so that these are sampled too.
 *
 *     sgt_dry_run_result r;
 *     if (sgt_dry_run(&(sgt_tokenize_options){.inputs = in, .input_count = n, .out = "out"}, &r, &err) < 0) ...;
 *
 * 256 places, evenly spaced in the bytes on disk, of which some 32 KiB each are read and encoded;
 * small inputs are encoded whole, and so known exactly. The same inputs give the same estimate (but
 * for the time). Files that are packed, or read through a command, are read from their beginning,
 * up to 256 MiB of what all of them give: the small ones to their end. */
#ifndef SGT_DRY_RUN_H
#define SGT_DRY_RUN_H

#include <stdint.h>

#include "base/error.h"
#include "input/corpus.h"
#include "sgt_tokenize.h"

#define SGT_NOT_KNOWN UINT64_MAX

typedef struct sgt_dry_run_result {
    uint64_t files, bytes; /* of the inputs, as they lie on disk */
    uint64_t skipped;      /* files left out because they are not text */
    /* a file of text is one: these are counted; those of JSONL are estimated ... */
    uint64_t documents;
    int documents_exact; /* ... unless all was read */
    /* before duplicates are left out; an end of text for each document among them */
    uint64_t tokens;
    /* twice the standard error of `tokens`; 0: exact; SGT_NOT_KNOWN: from one sample, or from the
     * beginnings of a few packed files */
    uint64_t tokens_error;
    uint64_t samples, sample_bytes, sample_tokens; /* what was encoded: bytes of text and of JSON */
    uint64_t bad_lines, invalid_utf8;              /* in the samples */
    uint64_t shards, disk;                         /* bytes of OUT when it is complete */
    /* beside it until then: parts of ranks, of --shuffle or of --dedup */
    uint64_t disk_meanwhile;
    uint64_t disk_free;  /* there, for this user; SGT_NOT_KNOWN where OUT is not said */
    uint64_t disk_there; /* bytes of OUT that lie there already, from an earlier run */
    double seconds;      /* on this machine, as fast as the samples went */
} sgt_dry_run_result;

/* o as for sgt_tokenize, but out may be NULL. Lines of JSONL that sgt_tokenize would stop at are
 * counted. Standard input is refused: what was looked at would be gone. */
int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err);

/* The same with inputs that are listed and a vocabulary that is loaded: no standard input among
 * them. */
int sgt_dry_run_corpus(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                       sgt_dry_run_result *r, sgt_error *err);

#endif
