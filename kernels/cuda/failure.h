/* failure.h: keeps the first CUDA failure, with the name of the kernel that was launched. Both
 * runtime.cu and the host's stand-in (tests/kernels/host/runtime.cpp) use it and supply
 * sgt_cuda_device_error, so that failure.c, which calls it, needs no CUDA.
 *
 *     sgt_cuda_note("cudaMemcpyAsync: %s", why);              // kept if it is the first
 *     return sgt_cuda_noted(err);                             // reported once, then forgotten */
#ifndef SGT_CUDA_FAILURE_H
#define SGT_CUDA_FAILURE_H

#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keep a message for the next sgt_cuda_check, unless an earlier one is still kept. */
void sgt_cuda_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Return SGT_OK if nothing was noted; otherwise SGT_EIO with the message, which is then
 * forgotten. */
int sgt_cuda_noted(sgt_error *err);

/* Return whether the error may come from earlier work on the device (an illegal address, for
 * instance), and not from the call that returned it. */
int sgt_cuda_error_is_late(int code);

/* Return the code of the error that the device or the last launch left, without clearing it, or 0;
 * *why is CUDA's text for it. If `wait` is set, wait first for the work of the stream. */
int sgt_cuda_device_error(sgt_cuda_stream s, int wait, const char **why);

#ifdef __cplusplus
}
#endif
#endif
