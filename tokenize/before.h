/* before.h: checks made before any work: the options of a call, and whether OUT fits on its disk.
 * sgt also estimates, from the sizes of the inputs, how many tokens they give and how much disk
 * space is needed (--dry-run).
 *
 *     sgt_dry_run_result r;
 *     sgt_tokenize_options o = {.inputs = in, .input_count = n, .out = "out"};
 *     if (sgt_dry_run(&o, &r, &err) < 0) ...;
 *
 * The estimate is rough. It assumes that a token stands for four bytes of text, and that text is
 * three times as large as its compressed file. No text is read, only the metadata of Parquet
 * files. */
#ifndef SGT_BEFORE_H
#define SGT_BEFORE_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

#define SGT_NOT_KNOWN UINT64_MAX

/* Copy the caller's options *given to *o, and check them. The caller's struct may be of another
 * version. Unless result is NULL, check result->size, too. Return 0 or SGT_EUSAGE. */
int sgt_tokenize_given(sgt_tokenize_options *o, const sgt_tokenize_options *given,
                       const sgt_tokenize_result *result, sgt_error *err);

typedef struct sgt_dry_run_result {
    uint64_t files, bytes; /* files: number of input files; bytes: their total size on disk */
    uint64_t skipped;      /* number of input files skipped because they are not text */
    /* exact number of documents; SGT_NOT_KNOWN if counting them would need reading the inputs */
    uint64_t documents;
    /* rough estimate of the number of tokens, including those of duplicate documents */
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

/* Check that the set of shards fits on the disk of the output folder. If it does not, return
 * SGT_EIO with a message that states both sizes. Nothing is checked, and the result is SGT_OK, if
 * - o->force is set,
 * - the output folder already holds a set,
 * - an input is standard input, or
 * - ranks are connected and this rank is not rank 0. */
int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err);

/* Return SGT_EIO if the run needs more disk space, by the estimate *r, than is free on the disk of
 * `out`. The message states both sizes. Otherwise return SGT_OK, even if the free space is unknown
 * or if the output folder already holds a set. */
int sgt_space_lacks(const char *out, const sgt_dry_run_result *r, sgt_error *err);

#endif
