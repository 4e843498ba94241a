/* device.h: chooses the device for training, and loads libsgt-cuda.so. */
#ifndef SGT_DEVICE_H
#define SGT_DEVICE_H

#include "loader/base/error.h"
#include "train/cuda/cuda_library.h"

/* Load libsgt-cuda.so and set *lib to its functions. The library is searched for in ../lib and
 * ../lib/sgt, relative to the program's folder, and then in the system's library search path. It is
 * never unloaded, so *lib stays valid. Any thread may call this function.
 *
 * If the library is missing, broken or from another build, return SGT_EUNSUPPORTED with a one-line
 * message. If it is missing, the message gives the first of these reasons that applies: "no CUDA
 * driver", "no CUDA device", "this build has no CUDA backend". */
int sgt_device_open(const sgt_cuda_library **lib, sgt_error *err);

/* Load libsgt-cuda.so as sgt_device_open does, and set *d to the properties of CUDA device 0. */
int sgt_device_cuda(const sgt_cuda_library **lib, sgt_cuda_device *d, sgt_error *err);

/* If *device is "auto", set it to "cuda" if CUDA can be used, otherwise to "cpu", and report the
 * choice. If *device is "cuda" but CUDA cannot be used, return SGT_EUNSUPPORTED. */
int sgt_device_choose(const char **device, const sgt_notice *notice, sgt_error *err);

/* Open a backend on `device` and set *out to it. `device` must be "cpu" or "cuda", as
 * sgt_device_choose sets it. */
int sgt_device_backend(sgt_backend **out, const char *device, const sgt_backend_options *o,
                       sgt_error *err);

#endif
