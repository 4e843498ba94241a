/* cuda.cu: the first CUDA device, for check-cuda-device. Not yet run on a GPU. */
#include <cuda_runtime.h>
#include <stdio.h>

#include "device/device.h"

static char text[256];

static const char *failed(const char *what, cudaError_t error)
{
    snprintf(text, sizeof text, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
    return text;
}

static void *allocate_mapped(size_t size)
{
    void *p = nullptr;
    return cudaHostAlloc(&p, size, cudaHostAllocMapped | cudaHostAllocPortable) == cudaSuccess ? p : nullptr;
}

static void release_mapped(void *p)
{
    cudaFreeHost(p);
}

static void *allocate_managed(size_t size)
{
    void *p = nullptr;
    return cudaMallocManaged(&p, size) == cudaSuccess ? p : nullptr;
}

static void release_managed(void *p)
{
    cudaFree(p);
}

/* One line that says which: no driver, or no device for it. */
static const char *none(cudaError_t error)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no CUDA driver";
    if (error == cudaErrorInsufficientDriver) return failed("the CUDA driver is too old", error);
    return failed("no CUDA device", error);
}

const char *device_open(device *d, device_place place)
{
    cudaDeviceProp p;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) return none(error == cudaSuccess ? cudaErrorNoDevice : error);
    if ((error = cudaSetDevice(0)) != cudaSuccess) return failed("no CUDA device", error);
    if ((error = cudaGetDeviceProperties(&p, 0)) != cudaSuccess) return failed("no CUDA device", error);
    snprintf(d->name, sizeof d->name, "%s", p.name);
    d->arch = p.major * 10 + p.minor;
    if (d->arch < 80) {
        snprintf(text, sizeof text, "no CUDA device of sm_80 or later: %s is sm_%d", p.name, d->arch);
        return text;
    }
    if (place == DEVICE_MANAGED && !p.concurrentManagedAccess) return "this device has no managed memory to share";
    d->memory = place == DEVICE_MANAGED ? check_memory{allocate_managed, release_managed, 0}
                                        : check_memory{allocate_mapped, release_mapped, 0};
    return nullptr;
}

/* A launch that was refused is told first; what a kernel did wrong shows when it is waited for. */
const char *device_wait()
{
    cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
    if (launched != cudaSuccess) return failed("a launch was refused", launched);
    return ended == cudaSuccess ? nullptr : failed("a kernel failed", ended);
}
