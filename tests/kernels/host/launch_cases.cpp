/* launch_cases.cpp: tests the message for a failed launch, and that of several failures the first
 * is reported. SGT_HOST_FAULT plants the failures (fault.cpp). */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/failure.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/streams.h"

using namespace dev;

static __global__ void first_kernel(int *x)
{
    if (threadIdx.x == 0) *x = 1;
}

template <class T> static __global__ void typed_kernel(T *x)
{
    if (threadIdx.x == 0) *x = 2;
}

/* Makes launches fail as `words`, the value of SGT_HOST_FAULT, says, until the end of the scope. */
struct Planned {
    sgt_cuda_device d;
    sgt_cuda_stream s;
    int *x;

    explicit Planned(const char *words)
    {
        setenv("SGT_HOST_FAULT", words, 1);
        sgt_cuda_device_open(&d, 0, nullptr);
        sgt_cuda_stream_new(&s, nullptr);
        sgt_cuda_malloc((void **)&x, 64, nullptr);
    }
    ~Planned()
    {
        sgt_cuda_stream_free(s);
        sgt_cuda_free(x);
        unsetenv("SGT_HOST_FAULT");
        sgt_cuda_device_open(&d, 0, nullptr);
        sgt_cuda_check(nullptr);
    }
};

static void told(check *t, const char *want)
{
    sgt_error err;
    int rc = sgt_cuda_check(&err);
    if (rc == SGT_OK) check_fail(t, "no failure told, not \"%s\"", want);
    else if (rc != SGT_EIO || strcmp(err.text, want)) check_fail(t, "code %d, %s", rc, err.text);
}

CUDA_CASE(launch_refused)
{
    Planned p("typed_kernel:refuse");
    DEV_LAUNCH(first_kernel, dim3(2), dim3(32), 0, p.s, p.x);
    if (sgt_cuda_check(nullptr) < 0) check_fail(t, "a launch that nothing was planned for");
    check_at(t, "one, two and three dimensions; the first of several; once");
    DEV_LAUNCH(typed_kernel<int>, dim3(3), dim3(64), 128, p.s, p.x);
    DEV_LAUNCH((typed_kernel<float>), dim3(4), dim3(32), 0, p.s, (float *)p.x);
    told(t, "typed_kernel (grid 3, block 64, 128 bytes of shared memory): invalid argument (CUDA "
            "error 1)");
    if (sgt_cuda_check(nullptr) < 0) check_fail(t, "told twice");
    DEV_LAUNCH(typed_kernel<int>, dim3(3, 5), dim3(8, 8, 2), 0, p.s, p.x);
    told(t, "typed_kernel (grid 3 x 5, block 8 x 8 x 2, 0 bytes of shared memory): invalid "
            "argument (CUDA error 1)");
    DEV_LAUNCH(typed_kernel<int>, dim3(3, 1, 5), dim3(32), 0, p.s, p.x);
    told(t, "typed_kernel (grid 3 x 1 x 5, block 32, 0 bytes of shared memory): invalid argument "
            "(CUDA error 1)");
}

CUDA_CASE(launch_failed_on_the_device)
{
    Planned p("first_kernel:error");
    DEV_LAUNCH(first_kernel, dim3(1), dim3(32), 0, p.s, p.x);
    if (sgt_cuda_check(nullptr) < 0) check_fail(t, "known before anybody waited");
    host::finish(p.s);
    check_at(t, "what is launched next is not accused alone");
    DEV_LAUNCH(typed_kernel<int>, dim3(1), dim3(32), 0, p.s, p.x);
    told(t, "typed_kernel (grid 1, block 32, 0 bytes of shared memory), or an earlier kernel: an "
            "illegal memory access was encountered (CUDA error 700; --sync-kernels finds which)");
}
