/* space.h: check whether a set fits on the disk, before anything is written.
 *
 * A generous estimate from the sizes of the inputs costs nothing. Samples are taken (dry_run.h)
 * only if that would not fit. */
#ifndef SGT_SPACE_H
#define SGT_SPACE_H

#include <stdint.h>

#include "loader/base/error.h"
#include "tokenize/dry_run.h"
#include "tokenize/input/corpus.h"
#include "tokenize/sgt_tokenize.h"

/* Return the bytes free for this user on the file system that OUT is on, or will be. Return
 * SGT_NOT_KNOWN (dry_run.h) if out is NULL or the system does not say. */
uint64_t sgt_space_free(const char *out);

/* Return the bytes on disk of the set in OUT, complete or not; 0 if there is none. */
uint64_t sgt_space_used(const char *out);

/* Return whether a set of `need` bytes does not fit into `avail` free bytes. `there` of its bytes
 * are already written. */
int sgt_space_lacks(uint64_t need, uint64_t there, uint64_t avail);

/* Set r->shards, r->disk and r->disk_meanwhile, given the tokens and the documents of r, and the
 * bytes of the lines that keep fields of documents in sources.jsonl. */
int sgt_space_needed(sgt_dry_run_result *r, double kept, const sgt_tokenize_options *o,
                     const sgt_corpus *c, const sgt_vocab *v, sgt_error *err);

/* Return SGT_EIO, with both numbers, if OUT needs more bytes than are free. Return SGT_OK without a
 * check if o->force is set, OUT is complete, or an input is standard input. Of connected ranks,
 * only rank 0 checks. */
int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err);

/* Fail with SGT_EIO and a message that gives these numbers for `out`. */
int sgt_space_fail(const char *out, uint64_t need, uint64_t there, uint64_t avail, sgt_error *err);

#endif
