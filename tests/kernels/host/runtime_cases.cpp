/* runtime_cases.cpp: tests that the host's streams find errors: a missing wait, a buffer changed too
 * early, and what CUDA refuses or leaves undefined. */
#include <setjmp.h>
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/streams.h"

static constexpr size_t BYTES = 4096;
static sigjmp_buf failed;

/* Return whether `work` fails (host::fail). All queued work is discarded. */
template <class F> static bool refused(F work)
{
    static host::Options before;
    before = host::options;
    host::options.silent = true;
    host::options.on_failure = [] { siglongjmp(failed, 1); };
    bool no = sigsetjmp(failed, 0);
    if (!no) work();
    host::options = before;
    host::abandon();
    return no;
}

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

CUDA_CASE(host_late_copy)
{
    Two q;
    sgt_cuda_copy(q.a, q.device, q.in, BYTES);
    q.in[17] = 2; /* the copy may not have read it yet */
    sgt_cuda_copy(q.a, q.out, q.device, BYTES);
    check_at(t, "before the stream got there");
    if (q.out[17] != 0xff) check_fail(t, "the copy back was done before anybody waited");
    sgt_cuda_finish(q.a, nullptr);
    check_at(t, "changed under the copy");
    if (q.out[17] != 2)
        check_fail(t, "the copy read what the buffer held when it was put on the stream");
}

CUDA_CASE(host_refuses)
{
    unsigned char here[16];
    const struct {
        const char *what;
        void (*work)(Two &q, unsigned char *here);
    } cases[] = {
        {"a copy from unpinned memory",
         [](Two &q, unsigned char *p) { sgt_cuda_copy(q.a, q.device, p, 16); }},
        {"a copy past the end",
         [](Two &q, unsigned char *) { sgt_cuda_copy(q.a, q.device + 1, q.in, BYTES); }},
        {"the default stream beside others",
         [](Two &q, unsigned char *) {
             sgt_cuda_zero(q.a, q.device, 16);
             sgt_cuda_zero(nullptr, q.device, 16);
         }},
        {"finish in a capture",
         [](Two &q, unsigned char *) {
             sgt_cuda_capture(q.a, nullptr);
             sgt_cuda_finish(q.b, nullptr);
         }},
        {"an event from outside a capture",
         [](Two &q, unsigned char *) {
             sgt_cuda_record(q.e, q.b);
             sgt_cuda_capture(q.a, nullptr);
             sgt_cuda_wait(q.a, q.e);
         }},
        {"a stream that has not joined again",
         [](Two &q, unsigned char *) {
             sgt_cuda_graph g;
             sgt_cuda_capture(q.a, nullptr);
             sgt_cuda_zero(q.a, q.device, 16);
             sgt_cuda_record(q.e, q.a);
             sgt_cuda_wait(q.b, q.e);
             sgt_cuda_zero(q.b, q.device, 16);
             sgt_cuda_capture_end(q.a, &g, nullptr);
         }},
    };
    for (const auto &c : cases) {
        Two q;
        check_at(t, "%s", c.what);
        if (!refused([&] { c.work(q, here); })) check_fail(t, "is taken");
    }
}
