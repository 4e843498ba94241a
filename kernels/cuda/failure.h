/* failure.h: functions that keep the message of the first CUDA failure, with the name of the kernel
 * that was launched, until the failure is reported. runtime.cu and its replacement on the host
 * (tests/kernels/host/runtime.cpp) use these functions. Both define sgt_cuda_device_error, which
 * failure.c calls, so failure.c itself needs no CUDA.
 *
 *     sgt_cuda_note("cudaMemcpyAsync: %s", why);              // kept if it is the first
 *     return sgt_cuda_noted(err);                             // reported once, then forgotten */
#ifndef SGT_CUDA_FAILURE_H
#define SGT_CUDA_FAILURE_H

#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keep a message that the next sgt_cuda_check will report. If an earlier message has not been
 * reported yet, do nothing. */
void sgt_cuda_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Return SGT_OK if no failure was noted. Otherwise return SGT_EIO with the message in *err, and
 * forget the failure. */
int sgt_cuda_noted(sgt_error *err);

/* Return 1 if `code` is an error that earlier work on the device can have caused (for instance,
 * with an illegal address), or 0 if only the call that returned the error can have caused it. */
int sgt_cuda_error_is_late(int code);

/* Return the error code that earlier work or the last launch on the device left, or 0 if there is
 * none. Do not clear the error. Set *why to CUDA's text for the code. If `wait` is set, first wait
 * until the stream's work is done, so that errors of that work are known, too. */
int sgt_cuda_device_error(sgt_cuda_stream s, int wait, const char **why);

#ifdef __cplusplus
}
#endif
#endif
