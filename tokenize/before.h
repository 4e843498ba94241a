/* before.h: checks the options of a call, and whether the output will fit on its disk, before
 * anything is read or written. For --dry-run, it also estimates, from the sizes of the inputs, how
 * many tokens they hold and how much disk space is needed.
 *
 *     sgt_dry_run_result r;
 *     sgt_tokenize_options o = {.inputs = in, .input_count = n, .out = "out"};
 *     if (sgt_dry_run(&o, &r, &err) < 0) ...;
 *
 * The estimate is rough. It assumes that a token stands for four bytes of text, and that text is
 * three times as large as the compressed file that holds it. No text is read. The metadata of
 * Parquet files is read. */
#ifndef SGT_BEFORE_H
#define SGT_BEFORE_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

#define SGT_NOT_KNOWN UINT64_MAX

/* Copy the caller's options from *given to *o, and check the options. *given may have the size that
 * the struct has in an older or newer version of the library. Unless `result` is NULL, also check
 * result->size. Return 0 or SGT_EUSAGE. */
int sgt_tokenize_given(sgt_tokenize_options *o, const sgt_tokenize_options *given,
                       const sgt_tokenize_result *result, sgt_error *err);

typedef struct sgt_dry_run_result {
    uint64_t files, bytes; /* number of input files, and their total size on disk in bytes */
    uint64_t skipped;      /* number of input files that were skipped because they are not text */
    /* exact number of documents; SGT_NOT_KNOWN if the documents cannot be counted without reading
     * the text of the inputs */
    uint64_t documents;
    /* rough estimate of the number of tokens; includes the tokens of duplicate documents, even if
     * --dedup would skip these documents */
    uint64_t tokens;
    int packed; /* 1 if an input file is compressed or Parquet; otherwise 0 */
    /* estimated number of shards, and estimated size in bytes of the finished output folder */
    uint64_t shards, disk;
    /* additional disk space in bytes that is needed only during the run: for temporary copies of
     * the tokens (with several ranks, --shuffle or --dedup), and for shards that are then converted
     * to the layout of another program */
    uint64_t disk_meanwhile;
    /* disk space in bytes that this user can still use; SGT_NOT_KNOWN if no output folder is given
     * or if the space cannot be determined */
    uint64_t disk_free;
    /* 1 if the output folder already holds a set of shards, complete or not; otherwise 0. If it is
     * 1, sgt_space_lacks does not check the disk space, because the run that began the set did. */
    int begun;
} sgt_dry_run_result;

/* Estimate what sgt_tokenize would write if it were called with the options *o, and store the
 * estimate in *r. o->out may be NULL. Return 0 or a negative SGT_E*. If an input is standard input,
 * return SGT_EUSAGE, because the size of standard input is unknown. */
int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err);

/* Check that the set of shards will fit on the disk of the output folder o->out. If it will not
 * fit, return SGT_EIO with a message that states the space needed and the space that is free.
 * Otherwise return SGT_OK. Nothing is checked, and the result is SGT_OK, if
 * - o->force is set,
 * - the output folder already holds a set,
 * - an input is standard input, or
 * - several processes are connected (o->joined is set), and this process is not rank 0. */
int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err);

/* Return SGT_EIO if the run needs more disk space, according to the estimate *r, than is free on
 * the disk of the output folder `out`. The error message states the space needed and the space that
 * is free. Return SGT_OK if there is enough space, if the free space is unknown, or if the output
 * folder already holds a set of shards. */
int sgt_space_lacks(const char *out, const sgt_dry_run_result *r, sgt_error *err);

#endif
