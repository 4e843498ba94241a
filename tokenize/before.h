/* before.h: checks made before any work: check the options of a call; estimate, from the sizes of
 * the inputs, the number of tokens and the disk space that they need (--dry-run); and check that
 * OUT fits on its disk.
 *
 *     sgt_dry_run_result r;
 *     sgt_tokenize_options o = {.inputs = in, .input_count = n, .out = "out"};
 *     if (sgt_dry_run(&o, &r, &err) < 0) ...;
 *
 * The estimate is rough: it assumes four bytes of text per token, and that a packed file unpacks to
 * three times its size. It reads no text, only the metadata of Parquet files. */
#ifndef SGT_BEFORE_H
#define SGT_BEFORE_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

#define SGT_NOT_KNOWN UINT64_MAX

/* Copy *given, the caller's options of sgt_tokenize or sgt_vocab_train, which may be of another
 * version, to *o, and check them. Check the size field of *result, which may be NULL. Return 0 or
 * SGT_EUSAGE. */
int sgt_tokenize_given(sgt_tokenize_options *o, const sgt_tokenize_options *given,
                       const sgt_tokenize_result *result, sgt_error *err);

typedef struct sgt_dry_run_result {
    uint64_t files, bytes; /* number of input files, and their bytes on disk */
    uint64_t skipped;      /* number of files left out because they are not text */
    /* exact number; SGT_NOT_KNOWN if the inputs would have to be read to count them */
    uint64_t documents;
    uint64_t tokens;       /* rough estimate, including duplicates */
    int packed;            /* 1: some files are compressed (.gz, .zst) */
    uint64_t shards, disk; /* number of shards; bytes of the complete OUT */
    /* bytes needed in addition while the run lasts: for the parts of ranks, --shuffle or --dedup,
     * and for the set of shards that another layout is converted from */
    uint64_t disk_meanwhile;
    uint64_t disk_free; /* bytes free for this user; SGT_NOT_KNOWN if OUT is not given */
    /* 1: OUT already holds a set, complete or not, whose space was checked when it was begun */
    int begun;
} sgt_dry_run_result;

/* Estimate what sgt_tokenize(o) would write; o->out may be NULL. Return 0 or a negative SGT_E*.
 * Standard input is refused, because its size is unknown. */
int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err);

/* Return SGT_EIO, with both numbers in the message, if OUT needs more bytes than are free. Return
 * SGT_OK without a check if o->force is set, if OUT is begun or complete, or if an input is
 * standard input. If ranks are connected, only rank 0 checks. */
int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err);

/* Return SGT_EIO, with both numbers in the message, if an OUT of these sizes does not fit on its
 * disk. Return SGT_OK if it fits, or if the system does not tell the free space. */
int sgt_space_lacks(const char *out, const sgt_dry_run_result *r, sgt_error *err);

#endif
