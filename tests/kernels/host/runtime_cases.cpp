/* runtime_cases.cpp: tests that the host's streams and memory find errors: a missing wait, a buffer
 * changed too early, and what CUDA refuses or leaves undefined. */
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "kernels/cuda/runtime.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/memory.h"
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

/* Return whether reading a byte ends in a segmentation fault. */
static bool crashes(const volatile unsigned char *p)
{
    struct sigaction mine = {}, before;
    mine.sa_handler = [](int) { siglongjmp(failed, 1); };
    mine.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &mine, &before);
    bool did = sigsetjmp(failed, 1);
    if (!did) (void)*p;
    sigaction(SIGSEGV, &before, nullptr);
    return did;
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
        {"a copy to unpinned memory",
         [](Two &q, unsigned char *p) { sgt_cuda_copy(q.a, p, q.device, 16); }},
        {"a copy within the host",
         [](Two &q, unsigned char *) { sgt_cuda_copy(q.a, q.in, q.out, 16); }},
        {"a copy past the end",
         [](Two &q, unsigned char *) { sgt_cuda_copy(q.a, q.device + 1, q.in, BYTES); }},
        {"zeros in pinned memory", [](Two &q, unsigned char *) { sgt_cuda_zero(q.a, q.in, 16); }},
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
        {"malloc in a capture",
         [](Two &q, unsigned char *) {
             void *p;
             sgt_cuda_capture(q.a, nullptr);
             sgt_cuda_malloc(&p, 16, nullptr);
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
        {"an event of a graph, outside it",
         [](Two &q, unsigned char *) {
             sgt_cuda_graph g;
             sgt_cuda_capture(q.a, nullptr);
             sgt_cuda_record(q.e, q.a);
             sgt_cuda_capture_end(q.a, &g, nullptr);
             sgt_cuda_graph_free(g);
             sgt_cuda_wait(q.b, q.e);
         }},
        {"the time of an event without one",
         [](Two &q, unsigned char *) {
             float ms;
             sgt_cuda_record(q.e, q.a);
             sgt_cuda_finish(q.a, nullptr);
             sgt_cuda_elapsed_ms(&ms, q.e, q.e, nullptr);
         }},
        {"freeing what is not an allocation",
         [](Two &q, unsigned char *) { sgt_cuda_free(q.device + 256); }},
        {"freeing pinned memory as the device's",
         [](Two &q, unsigned char *) { sgt_cuda_free(q.in); }},
    };
    for (const auto &c : cases) {
        Two q;
        check_at(t, "%s", c.what);
        if (!refused([&] { c.work(q, here); })) check_fail(t, "is taken");
    }
}

CUDA_CASE(host_memory)
{
    unsigned char *p;
    check_at(t, "a byte too far");
    sgt_cuda_malloc((void **)&p, 1000, nullptr);
    if ((uintptr_t)p % 256) check_fail(t, "not 256-byte aligned");
    host::memory_open();
    bool poisoned = p[0] == 0xff && p[999] == 0xff;
    /* after the allocation and before the end of its page, because 1000 is not a multiple of 256 */
    p[1000] = 0;
    host::memory_close_all(); /* close now: most closings are deferred */
    if (!poisoned) check_fail(t, "fresh memory is not all ones");
    if (!crashes(p)) check_fail(t, "the host may look into device memory");
    if (!refused([&] { sgt_cuda_free(p); })) check_fail(t, "is not noticed when it is freed");
    host::memory_open();
    p[1000] = 0xa5;
    host::memory_close();
    uint64_t used = host::memory_used();
    sgt_cuda_free(p);
    check_at(t, "what is used");
    if (used - host::memory_used() != 1000)
        check_fail(t, "%llu bytes less", (unsigned long long)(used - host::memory_used()));
    check_at(t, "after it was freed");
    host::memory_open();
    if (!crashes(p)) check_fail(t, "the device may touch it");
    host::memory_close();
    check_at(t, "freed twice");
    if (!refused([&] { sgt_cuda_free(p); })) check_fail(t, "is not noticed");
}
