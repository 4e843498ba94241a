/* cuda_driver.h: functions that ask the driver whether CUDA can be used on this machine. They need
 * neither CUDA's headers nor its libraries. A program can therefore call them before it uses CUDA,
 * and get an error message that names the missing component.
 *
 *     int version, devices;
 *     if (sgt_cuda_driver_ask(&version, &devices, &err) < 0) ...; // "no CUDA driver: ..."
 *     if (sgt_cuda_driver_serves(version, CUDART_VERSION, &err) < 0) ...;
 *     if (sgt_cuda_device_serves("NVIDIA H200", 9, 0, &err) < 0) ...;
 *
 * Each function returns 0, or SGT_EUNSUPPORTED with a one-line message in *err. Any thread may call
 * these functions. */
#ifndef SGT_CUDA_DRIVER_H
#define SGT_CUDA_DRIVER_H

#include "loader/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Set *version to the newest CUDA version that the driver supports, for example 12040 for 12.4, or
 * to 0 if the driver does not report its version. Set *devices to the number of CUDA devices. If
 * there is none, the function fails, so *devices is at least 1 on success. */
int sgt_cuda_driver_ask(int *version, int *devices, sgt_error *err);

/* Check that a driver for CUDA version `version` can run a program built with CUDA version
 * `runtime`. Both numbers have the form 12040 for CUDA 12.4. The check fails if the program's major
 * version is newer than the driver's. It succeeds if `version` is 0 (unknown). */
int sgt_cuda_driver_serves(int version, int runtime, sgt_error *err);

/* Check that the device's compute capability, major.minor, is at least 8.0, the lowest for which
 * the kernels are compiled. */
int sgt_cuda_device_serves(const char *name, int major, int minor, sgt_error *err);

#ifdef __cplusplus
}
#endif
#endif
