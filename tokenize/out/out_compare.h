/* out_compare.h: compare what is in OUT with the request of this run. Options, vocabulary, and the
 * inputs' paths, sizes and bytes (feed.h) must agree. */
#ifndef SGT_OUT_COMPARE_H
#define SGT_OUT_COMPARE_H

#include "tokenize/out/out.h"

/* Return 1 if OUT is complete and the same request made it; 0 if it has no manifest. Return a
 * negative SGT_E* if another request made it, or if it is damaged. */
int sgt_out_is_complete(const sgt_out_request *r, sgt_error *err);

/* Return 1 if the run of the journal `j` in `work` (NULL: none) is of the same request. Return 0 if
 * there was none, or standard input is read. Return a negative SGT_E* if it is of another. */
int sgt_out_matches(const sgt_journal *j, const sgt_out_request *r, const char *work,
                    sgt_error *err);

/* Return 1 if the run that left `j` (NULL: none) in `work` can be resumed. Return 0 if there is
 * nothing worth keeping, or it cannot be resumed (standard input). Return a negative SGT_E* if
 * `work` has complete shards of another request, or OUT has files that sgt-tokenize did not
 * make. */
int sgt_out_may_resume(const sgt_journal *j, const sgt_out_request *r, const char *work,
                       sgt_error *err);

/* Write FOLDER/NAME with a line per input (sgt_corpus_input), from which a later run sees that
 * inputs are unchanged (feed.h). */
int sgt_out_write_inputs(const char *folder, const char *name, const sgt_corpus *c, sgt_error *err);

/* Compare the inputs of a complete set in `folder`, OUT or a part of it, with r->corpus. */
int sgt_out_compare_inputs(const sgt_out_request *r, const char *folder, sgt_error *err);

/* Check that NAME in FOLDER has `want` bytes, or at least that many. Return 0, SGT_EFORMAT or
 * SGT_ENOMEM. */
int sgt_out_check_size(const char *folder, const char *name, uint64_t want, int at_least,
                       sgt_error *err);

/* Return whether `folder` holds anything but the `count` names. A missing folder holds nothing. */
int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count);

/* Return whether .work's folder `name` holds a rank's part of the shards, or shards made from such
 * parts. */
int sgt_out_is_part(const char *name);
/* Return whether the folder `work` has such a folder. */
int sgt_out_has_parts(const char *work);

int sgt_out_file_exists(const char *folder, const char *name);

#endif
