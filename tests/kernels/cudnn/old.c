/* old.c: a libcudnn.so.9 that is too old. Each of its functions returns the version. */
#include "kernels/cuda/cudnn.h"

#define FUNCTION(result, name, arguments) \
    size_t cudnn##name(void);             \
    size_t cudnn##name(void) { return 90300; }
SGT_CUDNN_FUNCTIONS(FUNCTION)
