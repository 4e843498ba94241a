/* self_check.h: runs sgt-train --self-check. */
#ifndef TOOLS_TRAIN_SELF_CHECK_H
#define TOOLS_TRAIN_SELF_CHECK_H

#include "tools/cli/options.h"

/* Try every path of the CUDA backend, even if the cache folder has verdicts; store the new verdicts
 * there, and print them, one per line or as a JSON document. Returns the exit code: 1 if a path
 * failed or if no path could be tried. */
int self_check(const sgt_program *program, const char *cache, const sgt_stop *stop, int json);

#endif
