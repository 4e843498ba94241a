/* pretend.cpp: stands in for a GPU where there is none, so that check-cuda-device itself is tested: plain memory, the
 * kernels of the host run, and cases that do wrong on purpose (planted_...), which only --case names. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "host/check-cuda.h"
#include "host/streams.h"

static const char *error;

static void *allocate(size_t size)
{
    return aligned_alloc(256, (size + 255) / 256 * 256);
}

const char *device_open(device *d, device_place place)
{
    if (getenv("PRETEND_NO_DEVICE")) return "no CUDA driver";
    const char *arch = getenv("PRETEND_ARCH");
    d->arch = arch ? atoi(arch) : 90;
    snprintf(d->name, sizeof d->name, "no device, but the host");
    if (place == DEVICE_MANAGED && d->arch < 90) return "this device has no managed memory to share";
    d->memory = check_memory{allocate, free, 0};
    return nullptr;
}

const char *device_wait()
{
    host::finish(nullptr);
    return error;
}

/* ---- what must be found ---- */

CUDA_CASE(planted_overrun)
{
    unsigned char *x = cuda_output<unsigned char>(t, 37);
    check_at(t, "37 bytes");
    x[37] = 1;
}

CUDA_CASE(planted_underrun)
{
    unsigned char *x = cuda_output<unsigned char>(t, 64);
    check_at(t, "64 bytes");
    x[-1] = 1;
}

CUDA_CASE(planted_far_overrun)
{
    unsigned char *x = cuda_output<unsigned char>(t, 64);
    check_at(t, "64 bytes");
    x[64 + CHECK_GUARD - 1] = 1;
}

CUDA_CASE(planted_other_bits)
{
    static float drifts;
    float *x = cuda_output<float>(t, 4);
    check_at(t, "4 floats");
    for (int i = 0; i < 4; i++) x[i] = 1;
    x[3] += t->turn ? 1 + drifts++ : 0;
}

CUDA_CASE(planted_wrong)
{
    float *x = cuda_random<float>(t, 4, 1), *want = check_copy(t, x, 4);
    check_at(t, "4 floats");
    want[2] += 1;
    check_equal(t, "x", x, want, 4);
}

CUDA_CASE(planted_error)
{
    error = "a kernel failed: an illegal memory access was encountered (cudaErrorIllegalAddress)";
    cuda_sync(t);
    error = nullptr;
}

CUDA_CASE(planted_crash)
{
    (void)t;
    raise(SIGSEGV);
}

CUDA_CASE(planted_hang)
{
    (void)t;
    for (;;) pause();
}
