/* device.h: chooses the device to train on, and loads libsgt-cuda.so. */
#ifndef SGT_DEVICE_H
#define SGT_DEVICE_H

#include "loader/base/error.h"
#include "train/cuda/cuda_library.h"

/* Load libsgt-cuda.so from ../lib or ../lib/sgt, relative to the program's folder, or else from the
 * system's library search path. The library stays loaded, so *lib stays valid. Any thread may call
 * this function.
 *
 * If the library is missing, broken or from another build, return SGT_EUNSUPPORTED with a message
 * of one line. For a missing library, the message names the first reason that applies: "no CUDA
 * driver", "no CUDA device" or "this build has no CUDA backend". */
int sgt_device_open(const sgt_cuda_library **lib, sgt_error *err);

/* Load libsgt-cuda.so as sgt_device_open does, and set *d to the properties of device 0. */
int sgt_device_cuda(const sgt_cuda_library **lib, sgt_cuda_device *d, sgt_error *err);

/* If *device is "auto", set it to "cuda" or, if CUDA cannot be used, to "cpu", and report the
 * choice. If *device is "cuda" but CUDA cannot be used, return SGT_EUNSUPPORTED. */
int sgt_device_choose(const char **device, const sgt_notice *notice, sgt_error *err);

/* Open a backend on `device`, which is "cpu" or "cuda" as set by sgt_device_choose. */
int sgt_device_backend(sgt_backend **out, const char *device, const sgt_backend_options *o,
                       sgt_error *err);

#endif
