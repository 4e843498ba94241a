/* options.h: check the options of sgt_tokenize, sgt_vocab_train and sgt_dry_run. */
#ifndef SGT_TOKENIZE_OPTIONS_H
#define SGT_TOKENIZE_OPTIONS_H

#include "tokenize/sgt_tokenize.h"

#define SGT_MAX_THREADS 1024

/* Return 0, or SGT_EUSAGE, which names the wrong field. */
int sgt_tokenize_options_check(const sgt_tokenize_options *o, sgt_error *err);

/* Check the options of a call that writes OUT, as sgt_tokenize_options_check does. */
int sgt_tokenize_options_check_out(const sgt_tokenize_options *o, sgt_error *err);

#endif
