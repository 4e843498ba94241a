/* cublaslt.h: settings and results of the host's stand-in for cuBLASLt (cublaslt.cpp), for
 * tests. */
#ifndef SGT_HOST_CUBLASLT_H
#define SGT_HOST_CUBLASLT_H

#include <stddef.h>

namespace host
{

/* Its algorithms, in the order in which the heuristics return them. */
enum LtAlgo {
    /* needs operands at multiples of 256 bytes, which is the preferences' default */
    LT_ALIGNED,
    /* sums over k in several parts (split K): */
    LT_OUTPUT_TYPE, /* each part is rounded to D's type, in the workspace */
    LT_INPLACE,     /* each part is added in D */
    LT_SPLIT,       /* each part is float, in the workspace */
    LT_TENSOR,      /* needs operands, rows and strides at multiples of 16 bytes */
    LT_PLAIN,       /* needs only the alignment of the type */
    LT_ALGOS
};

struct Lt {
    bool missing;   /* set by a test: there is no library */
    bool no_driver; /* set by a test: creating a handle fails */
    size_t version; /* set by a test: version of the library */
    /* set by a test: bits of algorithms that the heuristics return and matmul refuses */
    int broken;
    /* set by a test: the algorithm that takes 10 us by event_clock, while others take 2 ms;
     * negative: all take 10 us */
    int fast;
    /* number of calls; descriptors, layouts, preferences and handles not destroyed yet */
    int heuristics, checks, matmuls, alive;
    int last;          /* algorithm of the last matmul; negative: none yet */
    double tanh_error; /* set by a test: relative error of the library's tanh, up or down */
    int wrong;         /* set by a test: bits of algorithms whose sums are half of the right ones */
    int forgetful;     /* set by a test: bits of algorithms that do not add C */
    /* set by a test, or all by SGT_HOST_CUBLASLT=rounds: bits of algorithms that round the product
     * to D's type before they add C or apply the epilogue, as cuBLASLt 13.1 does on an H100 */
    int rounds;
};
extern Lt lt;
void lt_reset(); /* Reset the fields: version 13.1.0, no faults, all counts 0 except `alive`. */

} /* namespace host */

#endif
