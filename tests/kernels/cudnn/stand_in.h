/* stand_in.h: a libcudnn.so.9 that computes an operation graph on a CPU, in double (stand_in.c). It
 * is as strict as the real one where these tests need it: finalized descriptors do not change;
 * every tensor in memory is given exactly once, aligned; and nothing else is given. Tests control
 * it through what it exports beside cuDNN's own functions. */
#ifndef SGT_CUDNN_STAND_IN_H
#define SGT_CUDNN_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set by the test; each call reads the fields that concern it. */
typedef struct stand_in_control {
    size_t version;   /* the result of cudnnGetVersion: 91900 */
    int create_fails; /* cudnnCreate fails: no device */
    int configs;      /* number of engine configurations offered */
    int refused;      /* how many of them, from the first on, give no plan */
    int flagged;      /* how many of them, from the first on, are nondeterministic */
    int execute_fails;
    int adds;         /* dQ's sums are added to the present contents, as before 9.6 */
    size_t workspace; /* bytes of workspace that a run overwrites: all that the plan asked for */
    /* Results for the test. */
    void *stream;      /* of the last run */
    int runs, live;    /* runs done; descriptors that exist */
    char refusal[256]; /* why the last failed call failed */
} stand_in_control;

extern stand_in_control stand_in;

/* FLOPs of a plan's matrix products, two for each multiplication with its addition, and the number
 * of those products. Masked elements count too. */
double stand_in_flops(void *plan, int *products);

#ifdef __cplusplus
}
#endif

#endif
