/* nvtx.c: wraps NVTX version 3, which is header-only and looks for a profiler at the first call. */
#include "kernels/cuda/nvtx.h"

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#define HAVE_NVTX 1
#endif
#endif

#ifdef HAVE_NVTX
#include <nvtx3/nvToolsExt.h>

void sgt_nvtx_push(const char *name) { nvtxRangePushA(name); }
void sgt_nvtx_pop(void) { nvtxRangePop(); }
#else
void sgt_nvtx_push(const char *name) { (void)name; }
void sgt_nvtx_pop(void) {}
#endif
