/* cuda.cu: the first CUDA device, for check-cuda. Buffers come from cudaMalloc and have a
 * copy for the CPU (mirror.h). The linker's --wrap redirects launches to this file. Before a
 * launch, it copies what the CPU wrote, and makes the arguments point to the device's buffers. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#include "tests/kernels/device/device.h"
#include "tests/kernels/device/mirror.h"

static char text[256];
static const char *refused; /* reason why a launch was refused; NULL: none was */

static const char *failed(const char *what, cudaError_t error)
{
    snprintf(text, sizeof text, "%s: %s (%s)", what, cudaGetErrorString(error),
             cudaGetErrorName(error));
    return text;
}

/* ---- memory ---- */

static void *allocate(size_t size)
{
    void *p = nullptr;
    return cudaMalloc(&p, size) == cudaSuccess ? p : nullptr;
}

static void release(void *p) { cudaFree(p); }

static const char *copy(void *to, const void *from, size_t size)
{
    cudaError_t error = cudaMemcpy(to, from, size, cudaMemcpyDefault);
    return error == cudaSuccess ? nullptr : failed("a copy failed", error);
}

static const mirror_calls calls = {allocate, release, copy};

void *device_address(void *p)
{
    const char *why = mirror_push();
    if (why) refused = why;
    return mirror_there(p);
}

/* ---- launches ---- */

static decltype(&cuKernelGetParamInfo) parameter;

extern "C" cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *kernel,
                                                  void **args);

/* Launch a kernel for dev::launch. The driver reports the sizes of the arguments. */
extern "C" cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *kernel,
                                                  void **args)
{
    /* memory for the arguments of a launch, at most 4096 bytes */
    alignas(128) static unsigned char copies[4096];
    std::vector<void *> there;
    size_t at, size;
    cudaKernel_t known;
    if ((refused = mirror_push())) return cudaErrorUnknown; /* dev::launch ignores the result */
    cudaError_t error = cudaGetKernel(&known, kernel);
    if (error != cudaSuccess) return error;
    for (size_t i = 0; parameter((CUkernel)known, i, &at, &size) == CUDA_SUCCESS; i++) {
        if (at + size > sizeof copies) {
            refused = "a launch with more than 4096 bytes of arguments";
            return cudaErrorInvalidValue;
        }
        memcpy(copies + at, args[i], size);
        mirror_translate(copies + at, size);
        there.push_back(copies + at);
    }
    return __real_cudaLaunchKernelExC(how, kernel, there.data());
}

static const char *find_parameter()
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    if (cudaGetDriverEntryPointByVersion("cuKernelGetParamInfo", &found, 12040, cudaEnableDefault,
                                         &result) != cudaSuccess ||
        result != cudaDriverEntryPointSuccess)
        return "the CUDA driver is older than 12.4";
    parameter = (decltype(parameter))found;
    return nullptr;
}

/* ---- the device ---- */

/* Return a line that says what is missing: a driver or a device. */
static const char *none(cudaError_t error)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no CUDA driver";
    if (error == cudaErrorInsufficientDriver) return failed("the CUDA driver is too old", error);
    return failed("no CUDA device", error);
}

const bool device_is_card = true;

const char *device_open(device *d)
{
    cudaDeviceProp p;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        return none(error == cudaSuccess ? cudaErrorNoDevice : error);
    if ((error = cudaSetDevice(0)) != cudaSuccess) return failed("no CUDA device", error);
    if ((error = cudaGetDeviceProperties(&p, 0)) != cudaSuccess)
        return failed("no CUDA device", error);
    snprintf(d->name, sizeof d->name, "%s", p.name);
    d->arch = p.major * 10 + p.minor;
    if (d->arch < 80) {
        snprintf(text, sizeof text, "no CUDA device of sm_80 or later: %s is sm_%d", p.name,
                 d->arch);
        return text;
    }
    mirror_open(&calls);
    d->memory = check_memory{mirror_allocate, mirror_release, 0};
    return find_parameter();
}

/* Wait for the device and copy results back. Return NULL, or why a launch was refused or a kernel
 * failed. A refused launch is reported first. */
const char *device_wait()
{
    cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
    const char *why = refused;
    refused = nullptr;
    if (why) return why;
    if (launched != cudaSuccess) return failed("a launch was refused", launched);
    return ended == cudaSuccess ? mirror_pull() : failed("a kernel failed", ended);
}
