/* run.h: declarations that harness.c, check-kernels.c and check-cuda.cpp share, and that cases do not
 * need. */
#ifndef SGT_CHECK_RUN_H
#define SGT_CHECK_RUN_H

#include "tests/kernels/harness.h"

enum { CHECK_AT_END, CHECK_AT_START, CHECK_ONE_IN, CHECK_PLACEMENTS };

/* An option of a program that runs the cases: a flag, a word or a number. */
typedef struct check_option {
    const char *name;
    int *flag;
    const char **word;
    uint64_t *number;
} check_option;

#ifdef __cplusplus
extern "C" {
#endif

void check_release(check *t); /* all buffers */

/* Parse a command line into the variables that the options point to. The last option has no name.
 * Return 0; or, if the usage is wrong, print a line and return 2. */
int check_parse(const check_option *options, const char *usage, int argc, char **argv);
/* print that line; return 2 */
int check_usage(const char *usage, const char *what, const char *arg);

#ifdef __cplusplus
}
#endif

#endif
