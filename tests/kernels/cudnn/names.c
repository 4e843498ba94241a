/* names.c: check that the numbers in kernels/cuda/cudnn.h equal those of cudnn_graph.h, if that
 * header is available. */
#include "kernels/cuda/cudnn.h"

#include "tests/kernels/cudnn/check-cudnn.h"

#if defined(__has_include)
#if __has_include(<cudnn_graph.h>) && __has_include(<cuda_runtime_api.h>)
#include <cudnn_graph.h>
#if CUDNN_VERSION >= SGT_CUDNN_OLDEST
#define HAVE_NAMES 1
#endif
#endif
#endif

#ifdef HAVE_NAMES
#define SAME(name, value) _Static_assert((int)CUDNN_##name == (value), #name);
SGT_CUDNN_NAMES(SAME)
_Static_assert(sizeof(cudnnStatus_t) == sizeof(int) &&
                   sizeof(cudnnBackendAttributeName_t) == sizeof(int),
               "enumerations are passed as int");
_Static_assert(sizeof(cudnnBackendDescriptor_t) == sizeof(sgt_cudnn_desc),
               "descriptors are pointers");
#define COUNT(name, value) +1
const int names_compared = 0 SGT_CUDNN_NAMES(COUNT);
#else
const int names_compared = 0;
#endif
