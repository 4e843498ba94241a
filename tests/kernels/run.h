/* run.h: declarations that harness.c and check-kernels.c share, and that cases do not need. */
#ifndef SGT_CHECK_RUN_H
#define SGT_CHECK_RUN_H

#include "tests/kernels/harness.h"

enum { CHECK_AT_END, CHECK_AT_START, CHECK_ONE_IN, CHECK_PLACEMENTS };

#ifdef __cplusplus
extern "C"
#endif
    void
    check_release(check *t); /* all buffers */

#endif
