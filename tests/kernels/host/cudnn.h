/* cudnn.h: settings of the host's fake of cuDNN (cudnn.cpp), for tests. */
#ifndef SGT_HOST_CUDNN_H
#define SGT_HOST_CUDNN_H

#include <stdint.h>

#include <string>

namespace host
{

/* What its engines do with dQ's sums: clear them first, add to the old values, or make them NaN. */
enum Sums { SUMS_CLEARED, SUMS_ADDED, SUMS_NAN };

struct Cudnn {
    bool there;     /* cuDNN exists, even if SGT_HOST_CUDNN is not set */
    bool no_device; /* creating a handle fails */
    int version = 91900;
    int configs = 2; /* number of engine configurations offered */
    int refused;     /* number of configurations, from the first, that give no plan */
    int flagged;     /* number of configurations, from the first, that are nondeterministic */
    bool fails;      /* each run is refused */
    Sums sums;       /* of the engines */
    bool slow;       /* events say that each run takes 100 s more */
    /* results of rows of more than T tokens, and of heads of more than D numbers, are not written */
    int64_t T = INT64_MAX, D = INT64_MAX;
    int alive = 0;     /* handles and descriptors not destroyed yet */
    std::string graph; /* the last graph, as text */
};
extern Cudnn cudnn;

} /* namespace host */

#endif
