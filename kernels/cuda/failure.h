/* failure.h: keeps the first CUDA failure, with the name of the kernel that was launched.
 * runtime.cu and its replacement on the host (tests/kernels/host/runtime.cpp) use it. Both define
 * sgt_cuda_device_error, which failure.c calls, so failure.c itself needs no CUDA.
 *
 *     sgt_cuda_note("cudaMemcpyAsync: %s", why);              // kept if it is the first
 *     return sgt_cuda_noted(err);                             // reported once, then forgotten */
#ifndef SGT_CUDA_FAILURE_H
#define SGT_CUDA_FAILURE_H

#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keep a message for the next sgt_cuda_check, unless an earlier message is still kept. */
void sgt_cuda_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Return SGT_OK if nothing was noted. Otherwise return SGT_EIO with the message, and forget it. */
int sgt_cuda_noted(sgt_error *err);

/* Return whether an error may come from earlier work on the device (for instance an illegal
 * address) and not from the call that returned it. */
int sgt_cuda_error_is_late(int code);

/* Return the error code that the device or the last launch left, or 0. The error is not cleared.
 * Set *why to CUDA's text for it. If `wait` is set, first wait for the work of the stream. */
int sgt_cuda_device_error(sgt_cuda_stream s, int wait, const char **why);

#ifdef __cplusplus
}
#endif
#endif
