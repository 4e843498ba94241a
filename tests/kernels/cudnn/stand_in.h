/* stand_in.h: a libcudnn.so.9 that does on a CPU, in double, what an operation graph says:
 * stand_in.c. It is as strict as the real one where that matters here: finalized descriptors do not
 * change, every tensor in memory is given once, aligned, and nothing else is. Tests steer it
 * through what it exports beside cuDNN's own functions. */
#ifndef SGT_CUDNN_STAND_IN_H
#define SGT_CUDNN_STAND_IN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set by the test, read at the next call that it concerns. */
typedef struct stand_in_control {
    size_t version;   /* what cudnnGetVersion says: 91900 */
    int create_fails; /* cudnnCreate: no device */
    int configs;      /* engine configurations offered */
    int refused;      /* the first so many of which make no plan */
    int flagged;      /* the first so many of which say that they are nondeterministic */
    int execute_fails;
    int adds;         /* dQ's sums are added to what is there: before 9.6 */
    size_t workspace; /* bytes that a run overwrites: all that the plan asked for */
    /* told to the test */
    void *stream;      /* of the last run */
    int runs, live;    /* runs done; descriptors that exist */
    char refusal[256]; /* why the last call that failed did */
} stand_in_control;

extern stand_in_control stand_in;

/* Operations of a plan's matrix products, two for each multiplication with its addition, and how
 * many products those are. Nothing is left out for a mask. */
double stand_in_flops(void *plan, int *products);

#ifdef __cplusplus
}
#endif

#endif
