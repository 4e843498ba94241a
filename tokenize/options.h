/* options.h: what sgt_tokenize, sgt_vocab_train and sgt_dry_run are given, held against what makes
 * sense. */
#ifndef SGT_TOKENIZE_OPTIONS_H
#define SGT_TOKENIZE_OPTIONS_H

#include "sgt_tokenize.h"

#define SGT_MAX_THREADS 1024

/* SGT_EUSAGE names the field. */
int sgt_tokenize_options_check(const sgt_tokenize_options *o, sgt_error *err);

/* The same, of calls that write an OUT. */
int sgt_tokenize_options_check_out(const sgt_tokenize_options *o, sgt_error *err);

#endif
