/* runtime_cases.cpp: tests that the host's streams find a missing wait. */
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/streams.h"

static constexpr size_t BYTES = 4096;

struct Two {
    sgt_cuda_stream a, b;
    sgt_cuda_event e;
    unsigned char *device, *in, *out;

    Two()
    {
        sgt_cuda_stream_new(&a, nullptr);
        sgt_cuda_stream_new(&b, nullptr);
        sgt_cuda_event_new(&e, 0, nullptr);
        sgt_cuda_malloc((void **)&device, BYTES, nullptr);
        sgt_cuda_host_alloc((void **)&in, BYTES, nullptr);
        sgt_cuda_host_alloc((void **)&out, BYTES, nullptr);
        memset(in, 1, BYTES);
    }
    ~Two()
    {
        sgt_cuda_stream_free(a);
        sgt_cuda_stream_free(b);
        sgt_cuda_event_free(e);
        sgt_cuda_free(device);
        sgt_cuda_host_free(in);
        sgt_cuda_host_free(out);
    }
};

/* Let stream a write a 1 to the device, in an order that `schedule` chooses among what events allow.
 * Then stream b reads it; or if `after`, a reads it and b zeroes it. Return the number that was
 * read. waits: b waits for a's event first. */
static unsigned there_and_back(unsigned schedule, bool after, bool waits)
{
    unsigned before = host::options.seed;
    host::schedule(schedule);
    Two q;
    sgt_cuda_copy(q.a, q.device, q.in, BYTES);
    if (after) sgt_cuda_copy(q.a, q.out, q.device, BYTES);
    sgt_cuda_record(q.e, q.a);
    if (waits) sgt_cuda_wait(q.b, q.e);
    if (after) sgt_cuda_zero(q.b, q.device, BYTES);
    else sgt_cuda_copy(q.b, q.out, q.device, BYTES);
    sgt_cuda_finish(q.b, nullptr);
    sgt_cuda_finish(q.a, nullptr);
    host::schedule(before);
    return q.out[17];
}

CUDA_CASE(host_missing_wait)
{
    for (bool after : {false, true}) {
        unsigned wrong = 0;
        for (unsigned schedule = 0; schedule < 8; schedule++) {
            check_at(t, "schedule %u, after %d", schedule, after);
            if (there_and_back(schedule, after, true) != 1) check_fail(t, "a wait does not hold");
            wrong += there_and_back(schedule, after, false) != 1;
        }
        if (!wrong) check_fail(t, "no schedule shows that the wait is missing");
    }
    check_at(t, "schedule 0");
    if (there_and_back(0, false, false) != 0xff)
        check_fail(t, "without a wait what was not there yet was read");
}
