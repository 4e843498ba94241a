/* check-cudnn.h: declarations that the two halves of check-cudnn share. */
#ifndef SGT_CHECK_CUDNN_H
#define SGT_CHECK_CUDNN_H

#include "kernels/cuda/attention_cudnn.h"

/* compares with cudnn_graph.h's, if this was compiled with that header */
extern const int names_compared;

/* Print one line for a check: "ok what", or "FAIL what: why". Returns `good`. */
int verdict(int good, const char *why, const char *fmt, ...) SGT_PRINTF(3, 4);
void skip(const char *fmt, ...) SGT_PRINTF(1, 2);

void check_stand_in(void); /* with stand_in.c instead of cuDNN */

/* Return the failed calls of other libraries that the CUDA runtime would be told of. */
extern int failures_noted;

#endif
