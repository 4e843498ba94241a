/* cublaslt.h: what a test tells the host's cuBLASLt (cublaslt.cpp), and what it learns from it. */
#ifndef SGT_HOST_CUBLASLT_H
#define SGT_HOST_CUBLASLT_H

#include <stddef.h>

namespace host
{

/* The algorithms it has, in the order in which its heuristics give them. */
enum LtAlgo {
    /* operands at multiples of 256 bytes, which is what the preferences say where nobody sets
     * them */
    LT_ALIGNED,
    LT_OUTPUT_TYPE, /* sums cut in two: the parts rounded to D's type, in the workspace */
    LT_INPLACE,     /* the same, in D */
    LT_SPLIT,       /* the same, parts as floats in the workspace */
    LT_TENSOR,      /* operands, rows and strides at multiples of 16 bytes */
    LT_PLAIN,       /* whatever is aligned as its type */
    LT_ALGOS
};

struct Lt {
    bool missing;   /* set: no library */
    bool no_driver; /* set: no handle */
    size_t version; /* set */
    int broken;     /* set: bits of algorithms that the heuristics give and matmul refuses */
    /* set: the algorithm that takes 10 us of event_clock, the others 2 ms; negative: all take 10
     * us */
    int fast;
    /* set: the algorithm that takes 1.9 ms, and 4 from its 13th run on; negative: none */
    int tires;
    int runs; /* of that one */
    /* calls; descriptors, layouts, preferences and handles not destroyed */
    int heuristics, checks, matmuls, alive;
    int last;          /* algorithm of the last matmul, negative: none yet */
    double tanh_error; /* set: what its tanh is off by, of its size, up or down */
    int wrong;         /* set: bits of algorithms whose sums are half of what they should be */
};
extern Lt lt;
void lt_reset(); /* version 13.1.0, nothing wrong, all counts 0 but alive */

} /* namespace host */

#endif
