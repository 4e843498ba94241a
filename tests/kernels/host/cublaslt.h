/* cublaslt.h: settings and results of the stand-in for cuBLASLt on the host (cublaslt.cpp), for
 * tests. */
#ifndef SGT_HOST_CUBLASLT_H
#define SGT_HOST_CUBLASLT_H

#include <stddef.h>

namespace host
{

/* The stand-in's algorithms, in the order in which its heuristics return them. */
enum LtAlgo {
    /* needs operands at multiples of 256 bytes, the default of cuBLASLt's preferences */
    LT_ALIGNED,
    LT_OUTPUT_TYPE, /* split K: partial sums in the workspace, rounded to D's type */
    LT_INPLACE,     /* split K: parts are added in D */
    LT_SPLIT,       /* split K: partial sums in the workspace, as floats */
    LT_TENSOR,      /* these two need nothing */
    LT_PLAIN,
    LT_ALGOS
};

/* Settings of the stand-in, and counts of calls. In a set of algorithms, bit i stands for algorithm
 * i. */
struct Lt {
    bool missing = false;    /* there is no library */
    bool no_driver = false;  /* creating a handle fails */
    bool refuses = false;    /* it supports no product */
    bool bf16_plain = false; /* it supports no epilogues in bf16 */
    /* By events, a product takes the square of its elements in seconds, or 1000 s. With
     * SGT_HOST_CUBLASLT=slow-rows and =slow-calls. */
    bool slow_rows = false, slow_calls = false;
    size_t version = 130100; /* of the library */
    int broken = 0;          /* set of algorithms that the heuristics return but matmul refuses */
    /* index of the algorithm that takes 10 us by event_clock, while all others take 2 ms; negative:
     * all algorithms take 10 us */
    int fast = -1;
    int wrong = 0;     /* set of algorithms whose sums are half of the correct sums */
    int forgetful = 0; /* algorithms that do not add C */
    /* set of algorithms that round the product to D's type before they add C or apply the epilogue,
     * as cuBLASLt 13.1 does on an H100. With SGT_HOST_CUBLASLT=rounds, all algorithms do. */
    int rounds = 0;
    /* heuristics, checks, matmuls: number of calls; alive: number of descriptors, layouts,
     * preferences and handles that are not destroyed yet */
    int heuristics = 0, checks = 0, matmuls = 0, alive = 0;
    int last = -1;           /* algorithm of the last matmul; negative: none yet */
    int multiprocessors = 0; /* multiprocessors that the last matmul was limited to */
};
extern Lt lt;
void lt_reset(); /* reset all but `alive` */

} /* namespace host */

#endif
