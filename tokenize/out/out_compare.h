/* out_compare.h: is what lies in OUT the work of the same command? Options, vocabulary, and the
 * inputs' paths and sizes decide; time stamps only inform. */
#ifndef SGT_OUT_COMPARE_H
#define SGT_OUT_COMPARE_H

#include "out.h"

/* 1: OUT is complete and of this request's making. 0: it has no manifest. A negative SGT_E*: it is
 * of another's, or damaged. */
int sgt_out_is_complete(const sgt_out_request *r, sgt_error *err);

/* Whether OUT, complete or begun, was made before there was the option `key`: its options do not
 * say it. */
int sgt_out_predates(const char *out, const char *key);

/* 1: a run that left `j` (NULL: none) in `work` can be gone on with. 0: nothing of worth is there,
 * or it cannot be resumed (standard input). A negative SGT_E*: whole shards of another command are
 * there, or what sgt-tokenize did not make. */
int sgt_out_may_resume(const sgt_journal *j, const sgt_out_request *r, const char *work,
                       sgt_error *err);

/* WORK/inputs.jsonl: path, size and mtime of every input of a run that is not complete. */
int sgt_out_write_inputs(const char *work, const sgt_corpus *c, sgt_error *err);

/* NAME in FOLDER must have `want` bytes, or at least so many. */
int sgt_out_check_size(const char *folder, const char *name, uint64_t want, int at_least,
                       sgt_error *err);

/* Whether `folder` holds anything but `count` names. One that is not there holds nothing. */
int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count);

/* Whether NAME in .work is a folder of a part, or of what is made of parts; whether there is
 * any. */
int sgt_out_is_part(const char *name);
int sgt_out_has_parts(const char *work);

int sgt_out_file_exists(const char *folder, const char *name);

#endif
