/* cudnn.c: compares kernels/cuda/cudnn.h with cuDNN's own header, if there is one of 9.10.2 or
 * newer. check-nvcc compiles this file and never runs it. Assertions compare constants. */
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

#include "kernels/cuda/cudnn.h"

#if CUDNN_VERSION >= SGT_CUDNN_OLDEST
#define SAME(name, value) _Static_assert((int)CUDNN_##name == (value), #name);
SGT_CUDNN_NAMES(SAME)
#endif
_Static_assert(sizeof(cudnnStatus_t) == sizeof(int) &&
                   sizeof(cudnnBackendAttributeName_t) == sizeof(int),
               "enumerations are passed as int");
_Static_assert(sizeof(cudnnBackendDescriptor_t) == sizeof(sgt_cudnn_desc),
               "descriptors are pointers");
#else
typedef int nothing;
#endif
