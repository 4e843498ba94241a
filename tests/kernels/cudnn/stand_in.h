/* stand_in.h: a libcudnn.so.9 that computes an operation graph on a CPU, in double (stand_in.c). It
 * is as strict as the real one where the tests need it. Finalized descriptors do not change. The
 * address of every tensor in memory must be given exactly once, aligned, and no others. Tests
 * control it through the variables below, which it exports in addition to cuDNN's own functions. */
#ifndef SGT_CUDNN_STAND_IN_H
#define SGT_CUDNN_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set by the test; each call reads the fields that concern it. */
typedef struct stand_in_control {
    size_t version;   /* result of cudnnGetVersion; default 91900 */
    int create_fails; /* cudnnCreate fails: no device */
    int configs;      /* number of engine configurations offered */
    int refused;      /* how many of the first ones give no plan */
    int flagged;      /* how many of the first ones are nondeterministic */
    int execute_fails;
    /* 1: dQ's sums are added to the present contents, as cuDNN did before 9.6; 2: the last one is; 3:
     * they are NaN */
    int adds;
    size_t workspace; /* bytes of workspace that a plan asks for; a run overwrites all of them */
    /* Results for the test. */
    void *stream;      /* of the last run */
    int runs, live;    /* runs done; descriptors that exist */
    char refusal[256]; /* why the last failed call failed */
} stand_in_control;

extern stand_in_control stand_in;

#ifdef __cplusplus
}
#endif

#endif
