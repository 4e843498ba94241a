/* self_check.h: sgt-train --self-check. */
#ifndef TOOLS_TRAIN_SELF_CHECK_H
#define TOOLS_TRAIN_SELF_CHECK_H

#include "tools/cli/options.h"

/* Tries every path of the CUDA backend, whatever the cache folder has of it, keeps the verdicts
 * there and prints them, a line a path, or as one JSON document. The exit code: 1 where one is out,
 * or nothing could be tried. */
int self_check(const sgt_program *program, const char *cache, const sgt_stop *stop, int json);

#endif
