/* estimate.h: sgt-tokenize --dry-run: prints what the command would produce, as text or JSON. */
#ifndef SGT_TOOLS_TOKENIZE_ESTIMATE_H
#define SGT_TOOLS_TOKENIZE_ESTIMATE_H

#include "tokenize/sgt_tokenize.h"

/* Print the estimate on standard output. operands[0 .. count - 1] are INPUTs, and the last of them
 * is OUT if it can be: a new name, an empty folder, or one made by sgt-tokenize. `o` has all other
 * options. Returns 0 or a negative SGT_E*. If OUT needs more space than is free and --force is not
 * given, returns SGT_EIO after printing the results. */
int tokenize_dry_run(sgt_tokenize_options *o, const char *const *operands, size_t count, int json,
                     int quiet, sgt_error *err);

#endif
