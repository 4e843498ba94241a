/* before.h: what is done before any work: check the options of a call; estimate, from the sizes of the
 * inputs, the tokens that they give and the disk space that these need (--dry-run); and check that
 * OUT fits on its disk.
 *
 *     sgt_dry_run_result r;
 *     sgt_tokenize_options o = {.inputs = in, .input_count = n, .out = "out"};
 *     if (sgt_dry_run(&o, &r, &err) < 0) ...;
 *
 * The estimate is rough: four bytes of text are taken for a token, and a packed file for three times
 * as many bytes of text. No text is read, only the metadata of Parquet files. */
#ifndef SGT_BEFORE_H
#define SGT_BEFORE_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

#define SGT_NOT_KNOWN UINT64_MAX

/* Copy and check what the caller of sgt_tokenize or sgt_vocab_train gave: *given, of any version,
 * to *o; and the size of *result, which may be NULL. Return 0 or SGT_EUSAGE. */
int sgt_tokenize_given(sgt_tokenize_options *o, const sgt_tokenize_options *given,
                       const sgt_tokenize_result *result, sgt_error *err);

typedef struct sgt_dry_run_result {
    uint64_t files, bytes; /* of the inputs, as stored on disk */
    uint64_t skipped;      /* files left out because they are not text */
    uint64_t documents;    /* exact; SGT_NOT_KNOWN if only reading the inputs would tell */
    uint64_t tokens;       /* roughly, including duplicates */
    int packed;            /* 1: some files are packed */
    uint64_t shards, disk; /* disk: bytes of the complete OUT */
    /* further bytes until then: parts of ranks, of --shuffle or of --dedup; and the set that files
     * in another layout are written from */
    uint64_t disk_meanwhile;
    uint64_t disk_free; /* bytes free for this user; SGT_NOT_KNOWN if OUT is not given */
    int begun;          /* 1: OUT holds a set, complete or not, and was checked when that began */
} sgt_dry_run_result;

/* Estimate what sgt_tokenize(o) would give; o->out may be NULL. Return 0 or a negative SGT_E*:
 * standard input is refused, because it has no size. */
int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err);

/* Return SGT_EIO, with both numbers, if OUT needs more bytes than are free. Return SGT_OK without a
 * check if o->force is set, OUT is begun or complete, or an input is standard input. Of connected
 * ranks, only rank 0 checks. */
int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err);

/* Return SGT_EIO, with both numbers, if an OUT of these sizes does not fit on its disk. Return
 * SGT_OK if it fits, or if the system does not say. */
int sgt_space_lacks(const char *out, const sgt_dry_run_result *r, sgt_error *err);

#endif
