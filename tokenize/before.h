/* before.h: checks made before any work. sgt checks the options of a call, and that OUT fits on its
 * disk. From the sizes of the inputs, it also estimates the number of tokens and the disk space
 * that they need (--dry-run).
 *
 *     sgt_dry_run_result r;
 *     sgt_tokenize_options o = {.inputs = in, .input_count = n, .out = "out"};
 *     if (sgt_dry_run(&o, &r, &err) < 0) ...;
 *
 * The estimate is rough: it assumes four bytes of text per token, and that compressed files hold
 * text of three times their size. It reads no text, only the metadata of Parquet files. */
#ifndef SGT_BEFORE_H
#define SGT_BEFORE_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

#define SGT_NOT_KNOWN UINT64_MAX

/* Copy the caller's options *given, whose struct may be of another version, to *o, and check them.
 * Check the size field of *result unless result is NULL. Return 0 or SGT_EUSAGE. */
int sgt_tokenize_given(sgt_tokenize_options *o, const sgt_tokenize_options *given,
                       const sgt_tokenize_result *result, sgt_error *err);

typedef struct sgt_dry_run_result {
    uint64_t files, bytes; /* files: number of input files; bytes: their total size on disk */
    uint64_t skipped;      /* number of input files left out because they are not text */
    /* exact number of documents; SGT_NOT_KNOWN if counting them would need reading the inputs */
    uint64_t documents;
    /* rough estimate of the number of tokens; duplicate documents are counted */
    uint64_t tokens;
    int packed; /* 1 if at least one input file is compressed (.gz, .zst) */
    /* shards: number of shards; disk: size in bytes of the complete output folder */
    uint64_t shards, disk;
    /* additional disk space in bytes that is needed only while the run lasts: for temporary parts
     * (several ranks, --shuffle or --dedup), and for sgt's shards if they are converted to another
     * layout */
    uint64_t disk_meanwhile;
    /* free disk space in bytes for this user; SGT_NOT_KNOWN if no output folder is given */
    uint64_t disk_free;
    /* 1 if the output folder already holds a set of shards, complete or not. Its disk space was
     * checked when the set was begun, so sgt_space_lacks does not check it again. */
    int begun;
} sgt_dry_run_result;

/* Estimate what sgt_tokenize(o) would write; o->out may be NULL. Return 0 or a negative SGT_E*.
 * Standard input is refused with SGT_EUSAGE, because its size is unknown. */
int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err);

/* Return SGT_EIO if the set of shards needs more disk space than is free where the output folder
 * is; the message states both sizes. Return SGT_OK without a check if o->force is set, if the
 * output folder already holds a set, or if an input is standard input. If ranks are connected, only
 * rank 0 checks. */
int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err);

/* Return SGT_EIO if the run needs more disk space, by the estimate *r, than is free on the disk of
 * `out`; the message states both numbers. Return SGT_OK if the space suffices, if the system does
 * not report the free space, or if the output folder already holds a set. */
int sgt_space_lacks(const char *out, const sgt_dry_run_result *r, sgt_error *err);

#endif
