/* device.cpp: the host as the device of check-cuda, and cases that fail on purpose (planted_...),
 * which test check-cuda itself. These run only if --case names them. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <set>

#include "kernels/cuda/runtime.h"
#include "tests/kernels/device/device.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/streams.h"

const bool device_is_card = false;

static const char *error;
static std::set<const void *> asked; /* addresses that cuda_there was asked for */

static bool is_asked(const void *p) { return asked.count(p); }

const char *device_open(device *d)
{
    static sgt_error err;
    sgt_cuda_device described;
    if (sgt_cuda_device_open(&described, 0, &err) < 0) return err.text;
    d->arch = described.major * 10 + described.minor;
    host::options.race = host::instrumented;
    snprintf(d->name, sizeof d->name, "the host%s, schedule %u",
             host::options.race ? ", race mode" : "", host::options.seed);
    host::may_be_mapped =
        is_asked; /* on a GPU, a tensor map of any other address would be of the CPU's memory */
    return nullptr;
}

const char *device_wait()
{
    static char text[128];
    const host::Counts &n = host::counts;
    host::finish(nullptr);
    if (!n.races && !n.uninitialised && !n.proxy_misses) return error;
    snprintf(text, sizeof text,
             "%ld races, %ld reads of nothing, %ld missing proxy fences in shared memory", n.races,
             n.uninitialised, n.proxy_misses);
    return text;
}

void *device_address(void *p)
{
    asked.insert(p);
    return p;
}

/* ---- failures that check-cuda must find ---- */

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

CUDA_CASE(planted_other_bits)
{
    static float drifts;
    float *x = cuda_output<float>(t, 4);
    check_at(t, "4 floats");
    for (int i = 0; i < 4; i++) x[i] = 1;
    x[3] += drifts++;
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
