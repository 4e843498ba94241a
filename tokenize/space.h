/* space.h: whether a set fits on the disk, asked before anything is written.
 *
 * What the inputs can give at most costs nothing to work out. Samples are taken (dry_run.h) only if
 * that would not fit. */
#ifndef SGT_SPACE_H
#define SGT_SPACE_H

#include <stdint.h>

#include "base/error.h"
#include "input/corpus.h"
#include "sgt_tokenize.h"

/* Bytes free for this user on the file system that OUT is on, or will be; SGT_NOT_KNOWN (dry_run.h)
 * if out is NULL or the system does not say. */
uint64_t sgt_space_free(const char *out);

/* Bytes on disk of a set that is in OUT, complete or not; 0: there is none. */
uint64_t sgt_space_used(const char *out);

/* Whether a set of `need` bytes, of which `there` are written already, takes more than is free. */
int sgt_space_lacks(uint64_t need, uint64_t there, uint64_t avail);

/* SGT_EIO, with both numbers, if OUT needs more than is free. OK with o->force, if OUT is complete,
 * if an input is standard input, and on every connected rank but the first. */
int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err);

/* The failure itself, for `out`. */
int sgt_space_fail(const char *out, uint64_t need, uint64_t there, uint64_t avail, sgt_error *err);

#endif
