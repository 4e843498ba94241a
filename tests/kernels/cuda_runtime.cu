/* cuda_runtime.cu: tests cuda/runtime.h on any device: the order that events give, and graphs
 * with branches. Numbers are small integers in float32, so every result is
 * exact. Tests that only the host run can do are in host/runtime_cases.cpp. */
#include "kernels/cuda/runtime.h"
#include "tests/kernels/host/check-cuda.h"

using namespace dev;

static constexpr int N = 1000;

static __global__ void add_kernel(float *x, float v, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) x[i] += v;
}

static __global__ void times_kernel(float *x, float v, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) x[i] *= v;
}

static void add(sgt_cuda_stream s, float *x, float v)
{
    DEV_LAUNCH(add_kernel, dim3((N + 255) / 256), dim3(256), 0, (cudaStream_t)s, x, v, N);
}

static void times(sgt_cuda_stream s, float *x, float v)
{
    DEV_LAUNCH(times_kernel, dim3((N + 255) / 256), dim3(256), 0, (cudaStream_t)s, x, v, N);
}

/* Resources of a test case, which its end releases. */
struct Bench {
    check *t;
    sgt_cuda_device device;
    sgt_cuda_stream a = nullptr, b = nullptr;
    sgt_cuda_event e[3] = {};
    /* arrays of N numbers: x and y in device memory, in and out in pinned memory */
    float *x = nullptr, *y = nullptr, *in = nullptr, *out = nullptr;

    explicit Bench(check *t_) : t(t_)
    {
        ok(sgt_cuda_device_open(&device, 0, &err));
        ok(sgt_cuda_stream_new(&a, &err));
        ok(sgt_cuda_stream_new(&b, &err));
        for (sgt_cuda_event &each : e) ok(sgt_cuda_event_new(&each, 1, &err));
        ok(sgt_cuda_malloc((void **)&x, N * sizeof *x, &err));
        ok(sgt_cuda_malloc((void **)&y, N * sizeof *y, &err));
        ok(sgt_cuda_host_alloc((void **)&in, N * sizeof *in, &err));
        ok(sgt_cuda_host_alloc((void **)&out, N * sizeof *out, &err));
        for (int i = 0; i < N; i++) in[i] = (float)i;
    }
    ~Bench()
    {
        sgt_cuda_stream_free(a);
        sgt_cuda_stream_free(b);
        for (sgt_cuda_event each : e) sgt_cuda_event_free(each);
        sgt_cuda_free(x);
        sgt_cuda_free(y);
        sgt_cuda_host_free(in);
        sgt_cuda_host_free(out);
    }

    void ok(int rc)
    {
        if (rc < 0) check_fail(t, "%s", err.text);
    }
    void copy(sgt_cuda_stream s, float *to, const float *from)
    {
        sgt_cuda_copy(s, to, from, N * sizeof *to);
    }
    /* Check that out[i] is i*by + plus. */
    void expect(const char *name, float by, float plus)
    {
        for (int i = 0; i < N; i++)
            if (out[i] != (float)i * by + plus) {
                check_fail(t, "%s: element %d is %g, not %g", name, i, (double)out[i],
                           (double)((float)i * by + plus));
                return;
            }
    }

    sgt_error err;
};

CUDA_CASE(runtime_streams)
{
    Bench q(t);
    check_at(t, "there and back");
    q.copy(q.a, q.x, q.in);
    add(q.a, q.x, 5);
    q.copy(q.a, q.out, q.x);
    q.ok(sgt_cuda_finish(q.a, &q.err));
    q.expect("one stream", 1, 5);

    check_at(t, "three parts in two streams, 20 times");
    for (int k = 0; k < 20; k++) {
        sgt_cuda_wait(q.a, q.e[1]); /* this event was never recorded, so the wait returns at once */
        q.copy(q.a, q.y, q.in);
        sgt_cuda_record(q.e[0], q.a);
        sgt_cuda_wait(q.b, q.e[0]);
        times(q.b, q.y, 3);
        sgt_cuda_record(q.e[1], q.b);
        sgt_cuda_wait(q.a, q.e[1]);
        add(q.a, q.y, (float)k);
        q.copy(q.a, q.out, q.y);
        sgt_cuda_record(q.e[2], q.a);
        q.ok(sgt_cuda_event_finish(q.e[2], &q.err));
        q.expect("two streams", 3, (float)k);
    }
    check_at(t, "zeros");
    sgt_cuda_zero(q.a, q.x, N * sizeof *q.x);
    q.copy(q.a, q.out, q.x);
    q.ok(sgt_cuda_finish(q.a, &q.err));
    q.expect("zeros", 0, 0);
}

/* Capture a graph with two branches. One branch computes out = 2*in + 1. The other computes x = in
 * + 7 by way of y. `in` is pinned memory, which each run of the graph reads again. */
static sgt_cuda_graph two_ways(Bench &q)
{
    sgt_cuda_graph g = nullptr;
    q.ok(sgt_cuda_capture(q.a, &q.err));
    q.copy(q.a, q.x, q.in);
    sgt_cuda_record(q.e[0], q.a);
    sgt_cuda_wait(q.b, q.e[0]);
    q.copy(q.b, q.y, q.x); /* the present x, before the other branch changes it */
    sgt_cuda_record(q.e[1], q.b);
    add(q.b, q.y, 7);
    sgt_cuda_wait(q.a, q.e[1]);
    times(q.a, q.x, 2);
    add(q.a, q.x, 1);
    sgt_cuda_record(q.e[2], q.b);
    sgt_cuda_wait(q.a, q.e[2]);
    q.copy(q.a, q.out, q.x);
    q.copy(q.a, q.x, q.y);
    q.ok(sgt_cuda_capture_end(q.a, &g, &q.err));
    return g;
}

CUDA_CASE(runtime_graph)
{
    Bench q(t);
    check_at(t, "captured, not done");
    for (int i = 0; i < N; i++) q.out[i] = -1;
    uint64_t launches = sgt_cuda_count().launches, runs = sgt_cuda_count().graph_runs;
    sgt_cuda_graph g = two_ways(q);
    if (!g) return;
    q.ok(sgt_cuda_finish(q.a, &q.err));
    if (q.out[3] != -1) check_fail(t, "a captured copy was done");
    for (int k = 0; k < 5; k++) {
        check_at(t, "run %d", k);
        for (int i = 0; i < N; i++) q.in[i] = (float)(i * k);
        sgt_cuda_graph_run(g, q.a);
        q.ok(sgt_cuda_finish(q.a, &q.err));
        q.expect("one way", (float)(2 * k), 1);
        q.copy(q.b, q.out, q.x); /* the host has waited, so another stream may continue */
        q.ok(sgt_cuda_finish(q.b, &q.err));
        q.expect("the other", (float)k, 7);
    }
    if (sgt_cuda_count().launches - launches != 3 || sgt_cuda_count().graph_runs - runs != 5)
        check_fail(t, "%llu launches, %llu runs of graphs; not 3, 5",
                   (unsigned long long)(sgt_cuda_count().launches - launches),
                   (unsigned long long)(sgt_cuda_count().graph_runs - runs));
    sgt_cuda_graph_free(g);
}

CUDA_CASE(runtime_failures)
{
    Bench q(t);
    sgt_error err;
    void *p = &err;
    check_at(t, "more memory than there is");
    int rc = sgt_cuda_malloc(&p, (size_t)1 << 50, &err);
    if (rc != SGT_ENOMEM || p) check_fail(t, "code %d, pointer %p", rc, p);
    else if (strcmp(err.text, "out of GPU memory: 1073741824.0 MiB could not be allocated"))
        check_fail(t, "%s", err.text);
    check_at(t, "which leaves nothing behind");
    q.ok(sgt_cuda_check(&q.err));
    check_at(t, "what others noted, the first of it, once");
    sgt_cuda_note_failure("cublasLtMatmul", 7);
    sgt_cuda_note_failure("cublasLtMatmul", 8);
    if (sgt_cuda_check(&err) >= 0 || strcmp(err.text, "cublasLtMatmul: error 7"))
        check_fail(t, "not told");
    q.ok(sgt_cuda_check(&q.err));
    sgt_cuda_note_failure("cublasLtMatmul", 9);
    if (sgt_cuda_finish(q.a, &err) >= 0) check_fail(t, "not told by finish");
    check_at(t, "nothing is freed");
    sgt_cuda_free(nullptr);
    sgt_cuda_host_free(nullptr);
    sgt_cuda_stream_free(nullptr);
    sgt_cuda_event_free(nullptr);
    sgt_cuda_graph_free(nullptr);
}
