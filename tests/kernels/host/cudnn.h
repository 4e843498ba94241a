/* cudnn.h: settings of the host's fake of cuDNN (cudnn.cpp), for tests. */
#ifndef SGT_HOST_CUDNN_H
#define SGT_HOST_CUDNN_H

#include <stdint.h>

#include <string>

namespace host
{

/* What the stand-in's engines do with dQ's sums: clear them first, add to the old values, or make
 * them NaN. */
enum Sums { SUMS_CLEARED, SUMS_ADDED, SUMS_NAN };

struct Cudnn {
    bool no_half;   /* offers no engine for fp16 */
    bool there;     /* cuDNN is found, even if SGT_HOST_CUDNN is not set */
    bool no_device; /* creating a handle fails */
    int version = 91900;
    int configs = 2;            /* number of engine configurations offered */
    int refused;                /* the first `refused` configurations give no plan */
    int flagged;                /* the first `flagged` configurations are nondeterministic */
    bool fails;                 /* each run is refused */
    Sums sums;                  /* of the engines */
    int64_t long_T = INT64_MAX; /* rows of so many tokens or more: the sums are cleared first */
    bool slow;                  /* events report 100 s more for each run */
    /* No results are written for rows of more than T tokens, and for heads of more than D
     * numbers. */
    int64_t T = INT64_MAX, D = INT64_MAX;
    int alive = 0;     /* number of handles and descriptors not destroyed yet */
    std::string graph; /* the last graph, as text */
};
extern Cudnn cudnn;

} /* namespace host */

#endif
