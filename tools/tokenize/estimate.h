/* estimate.h: sgt-tokenize --dry-run: what the command would give, said to people or as JSON. */
#ifndef SGT_TOOLS_TOKENIZE_ESTIMATE_H
#define SGT_TOOLS_TOKENIZE_ESTIMATE_H

#include "sgt_tokenize.h"

/* operands[count]: INPUTs, and OUT as the last where it can be OUT: a name that is new, an empty
 * folder or a folder of sgt-tokenize's making. o says everything else. Results go to standard
 * output. 0 or a negative SGT_E*: SGT_EIO, after the results, if OUT needs more than is free and
 * there is no --force. */
int tokenize_dry_run(sgt_tokenize_options *o, const char *const *operands, size_t count, int json,
                     int quiet, sgt_error *err);

#endif
