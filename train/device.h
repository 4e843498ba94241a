/* device.h: choose the device, and load the CUDA library. */
#ifndef SGT_DEVICE_H
#define SGT_DEVICE_H

#include "loader/base/error.h"
#include "train/cuda/cuda_library.h"

/* Load libsgt-cuda.so: from ../lib or ../lib/sgt of the program's folder, else from the system's
 * search path. It stays loaded, and *lib stays valid. SGT_EUNSUPPORTED, with one line: the library
 * is missing (then what the driver lacks comes first: "no CUDA driver", "no CUDA device", "this
 * build has no CUDA backend"), or it is broken or of another build, with its path. May be called
 * from any thread. */
int sgt_device_open(const sgt_cuda_library **lib, sgt_error *err);

/* Do the same, and fill in *d for device 0. */
int sgt_device_cuda(const sgt_cuda_library **lib, sgt_cuda_device *d, sgt_error *err);

/* Replace "auto" in *device by "cuda" if it can be used, else by "cpu", and say so.
 * SGT_EUNSUPPORTED if "cuda" was requested and cannot be used. */
int sgt_device_choose(const char **device, const sgt_notice *notice, sgt_error *err);

/* Open a backend on "cpu", "cuda" or "auto": CUDA if it can be used. Errors are those above and the
 * backend's. */
int sgt_device_backend(sgt_backend **out, const char *device, const sgt_backend_options *o,
                       sgt_error *err);

#endif
