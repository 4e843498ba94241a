/* cuda_driver.h: whether CUDA can be used here, asked of the driver alone, without CUDA's headers
 * or libraries: so that what is missing has a name before anything else is tried.
 *
 *     int version, devices;
 *     if (sgt_cuda_driver_ask(&version, &devices, &err) < 0) ...;      // "no CUDA driver: ...", "no CUDA device"
 *     if (sgt_cuda_driver_serves(version, CUDART_VERSION, &err) < 0) ...;
 *     if (sgt_cuda_device_serves("NVIDIA H200", 9, 0, &err) < 0) ...;
 *
 * All return 0 or SGT_EUNSUPPORTED with one line; any thread. */
#ifndef SGT_CUDA_DRIVER_H
#define SGT_CUDA_DRIVER_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's version of CUDA, 12040 for 12.4 (0: it does not tell), and how many devices it
 * drives, at least 1. */
int sgt_cuda_driver_ask(int *version, int *devices, sgt_error *err);

/* A driver runs what was built with a CUDA of its own or an older major version. */
int sgt_cuda_driver_serves(int version, int runtime, sgt_error *err);

/* Compute capability 8.0 or newer: what the kernels are compiled for. */
int sgt_cuda_device_serves(const char *name, int major, int minor, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
