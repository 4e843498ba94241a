/* device.h: chooses the device, and loads the CUDA library. */
#ifndef SGT_DEVICE_H
#define SGT_DEVICE_H

#include "loader/base/error.h"
#include "train/cuda/cuda_library.h"

/* Load libsgt-cuda.so: from ../lib or ../lib/sgt of the program's folder, else from the system's
 * search path. It stays loaded, and *lib stays valid. Returns SGT_EUNSUPPORTED with a message of
 * one line if the library is missing, broken, or from another build. If it is missing, the message
 * names the first of these that applies: "no CUDA driver", "no CUDA device", "this build has no
 * CUDA backend". Any thread may call it. */
int sgt_device_open(const sgt_cuda_library **lib, sgt_error *err);

/* Load the library, and fill in *d for device 0. */
int sgt_device_cuda(const sgt_cuda_library **lib, sgt_cuda_device *d, sgt_error *err);

/* Replace "auto" in *device by "cuda" if CUDA can be used, else by "cpu", and report the choice.
 * Returns SGT_EUNSUPPORTED if "cuda" was requested and cannot be used. */
int sgt_device_choose(const char **device, const sgt_notice *notice, sgt_error *err);

/* Open a backend on "cpu" or "cuda", as sgt_device_choose has decided. */
int sgt_device_backend(sgt_backend **out, const char *device, const sgt_backend_options *o,
                       sgt_error *err);

#endif
