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
    LT_OUTPUT_TYPE, /* split K: parts of a sum are rounded to D's type, in the workspace */
    LT_INPLACE,     /* split K: parts are added in D */
    LT_SPLIT,       /* split K: parts are float, in the workspace */
    LT_TENSOR,      /* these two need nothing */
    LT_PLAIN,
    LT_ALGOS
};

/* Settings, and counts of calls. A set of algorithms has bit i for algorithm i. */
struct Lt {
    bool missing = false;    /* there is no library */
    bool no_driver = false;  /* creating a handle fails */
    bool refuses = false;    /* it supports no product */
    size_t version = 130100; /* of the library */
    int broken = 0;          /* algorithms that the heuristics return and matmul refuses */
    /* the algorithm that takes 10 us by event_clock, while others take 2 ms; negative: all take
     * 10 us */
    int fast = -1;
    int wrong = 0;     /* algorithms whose sums are half of the right ones */
    int forgetful = 0; /* algorithms that do not add C */
    /* algorithms that round the product to D's type before they add C or apply the epilogue, as
     * cuBLASLt 13.1 does on an H100; all with SGT_HOST_CUBLASLT=rounds */
    int rounds = 0;
    /* number of calls; descriptors, layouts, preferences and handles not destroyed yet */
    int heuristics = 0, checks = 0, matmuls = 0, alive = 0;
    int last = -1;           /* algorithm of the last matmul; negative: none yet */
    int multiprocessors = 0; /* number of multiprocessors that the last matmul was confined to */
};
extern Lt lt;
void lt_reset(); /* reset all but `alive` */

} /* namespace host */

#endif
