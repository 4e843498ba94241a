/* check-cudnn.h: what the two halves of check-cudnn share. */
#ifndef SGT_CHECK_CUDNN_H
#define SGT_CHECK_CUDNN_H

#include "kernels/cuda/attention_cudnn.h"

extern const int names_compared; /* with cudnn_graph.h's, when this was compiled */

/* One line for a check: "ok what", or "FAIL what: why". Returns `good`. */
int verdict(int good, const char *why, const char *fmt, ...) SGT_PRINTF(3, 4);
void skip(const char *fmt, ...) SGT_PRINTF(1, 2);

void check_stand_in(void); /* stand_in.c in the place of cuDNN */

/* Calls of other libraries that failed, as the CUDA runtime would be told. */
extern int failures_noted;

#endif
