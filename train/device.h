/* device.h: whether CUDA can be used, and the library that does. */
#ifndef SGT_DEVICE_H
#define SGT_DEVICE_H

#include "base/error.h"
#include "cuda/cuda_library.h"

/* Loads libsgt-cuda.so: ../lib or ../lib/sgt of the folder of the running program, else wherever
 * the system looks. It stays loaded, and so does *lib. SGT_EUNSUPPORTED, one line: where there is
 * none, what the driver lacks ("no CUDA driver", "no CUDA device") or, where that is fine, "this
 * build has no CUDA backend"; a library of another build, or a broken one, by its path. Any
 * thread. */
int sgt_device_open(const sgt_cuda_library **lib, sgt_error *err);

/* The same, and what the library says of device 0. */
int sgt_device_cuda(const sgt_cuda_library **lib, sgt_cuda_device *d, sgt_error *err);

/* Decide what "auto" in *device means, "cuda" if it can be used and "cpu" if not, and say which.
 * SGT_EUNSUPPORTED if "cuda" was asked for and cannot be used. */
int sgt_device_choose(const char **device, const sgt_notice *notice, sgt_error *err);

/* A backend on "cpu", "cuda", or "auto": CUDA where it can be used. Messages as above and as the
 * backend's own. */
int sgt_device_backend(sgt_backend **out, const char *device, const sgt_backend_options *o,
                       sgt_error *err);

#endif
