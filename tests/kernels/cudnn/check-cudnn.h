/* check-cudnn.h: declarations that the two halves of check-cudnn share. */
#ifndef SGT_CHECK_CUDNN_H
#define SGT_CHECK_CUDNN_H

#include "kernels/cuda/attention_cudnn.h"

/* 1 if names.c compared the numbers with cudnn_graph.h: that header was there when it was
 * compiled */
extern const int names_compared;

/* Print one line for a check: "ok what", or "FAIL what: why". Returns `good`. */
int verdict(int good, const char *why, const char *fmt, ...) SGT_PRINTF(3, 4);
void skip(const char *fmt, ...) SGT_PRINTF(1, 2);

void check_stand_in(void); /* run the checks with stand_in.c instead of cuDNN */

/* number of failed calls of other libraries that were reported to the CUDA runtime */
extern int failures_noted;

#endif
