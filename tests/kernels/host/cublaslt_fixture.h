/* cublaslt_fixture.h: an sgt_cuda_gemms that uses the host's stand-in for cuBLASLt, for the tests
 * of gemm.c. */
#ifndef SGT_HOST_CUBLASLT_FIXTURE_H
#define SGT_HOST_CUBLASLT_FIXTURE_H

#include <math.h>
#include <string.h>

#include <string>

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/runtime.h"
#include "tests/kernels/host/check-cuda.h"
#include "tests/kernels/host/cublaslt.h"
#include "tests/kernels/host/host.h"
#include "tests/kernels/host/streams.h"

using host::lt;

inline sgt_cuda_gemm_shape shape_of(size_t m, size_t n, size_t k, sgt_cuda_type type)
{
    sgt_cuda_gemm_shape s = {};
    s.m = m, s.n = n, s.k = k, s.lda = k, s.ldb = n, s.ldd = n, s.type = s.out = type;
    return s;
}

/* An sgt_cuda_gemms and its options. Each test case opens one. The stand-in is reset first, so that
 * it has no faults. */
struct Fixture {
    check *t;
    sgt_cuda_gemms_options o = {};
    sgt_cuda_gemms *g = nullptr;

    explicit Fixture(check *t_) : t(t_)
    {
        host::lt_reset();
        host::event_clock = 0;
        o.device = "host 1";
        o.flush = 4096;
    }
    ~Fixture()
    {
        close();
        if (lt.alive) check_fail(t, "%d of the library's objects are left", lt.alive);
        lt.alive = 0;
        host::lt_reset();
        host::event_clock = -1;
    }
    Fixture(const Fixture &) = delete;
    Fixture &operator=(const Fixture &) = delete;

    void close()
    {
        sgt_cuda_gemms_close(g);
        g = nullptr;
    }
    bool open()
    {
        sgt_error err;
        close();
        if (sgt_cuda_gemms_open(&g, &o, &err) == SGT_OK) return true;
        check_fail(t, "not opened: %s", err.text);
        return false;
    }
    const sgt_cuda_gemm *plan(const sgt_cuda_gemm_shape &s)
    {
        const sgt_cuda_gemm *p = nullptr;
        sgt_error err;
        if (sgt_cuda_gemm_plan(&p, g, &s, &err) < 0) check_fail(t, "no plan: %s", err.text);
        return p;
    }
    /* Return the algorithm that a plan runs. */
    int algo_of(const sgt_cuda_gemm *p, const sgt_cuda_gemm_shape &s)
    {
        size_t most = s.m * s.n + s.n * s.k + s.m * s.k;
        float *a = cuda_random<float>(t, most, 1), *b = cuda_random<float>(t, most, 1);
        float *d = cuda_output<float>(t, most);
        lt.last = -1;
        if (p) sgt_cuda_gemm_run(p, nullptr, d, a, b, b, a);
        return lt.last;
    }
    void expect(const char *what, long got, long want)
    {
        if (got != want) check_fail(t, "%s: %ld, not %ld", what, got, want);
    }
    void expect_text(const char *got, const char *want)
    {
        if (!strstr(got, want)) check_fail(t, "\"%s\" lacks \"%s\"", got, want);
    }
};

#endif
