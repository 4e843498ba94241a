/* self_check.h: sgt-train --self-check. */
#ifndef TOOLS_TRAIN_SELF_CHECK_H
#define TOOLS_TRAIN_SELF_CHECK_H

#include "tools/cli/options.h"

/* Try every path of the CUDA backend, whatever verdicts the cache folder has, store the new ones
 * there, and print them, one per line or as a JSON document. Returns the exit code: 1 if a path
 * failed or nothing could be tried. */
int self_check(const sgt_program *program, const char *cache, const sgt_stop *stop, int json);

#endif
