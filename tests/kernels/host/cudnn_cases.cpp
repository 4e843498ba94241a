/* cudnn_cases.cpp: tests of attention_cudnn.c on the fake of cuDNN: its arrays,
 * the choice of a plan, refusals. */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/attention_cudnn.h"
#include "kernels/cuda/runtime.h"
#include "tests/kernels/attention_head.h"
#include "tests/kernels/cuda_types.h"
#include "tests/kernels/host/cudnn.h"

using host::cudnn;

/* Resets the fake to have no faults. At the end of the scope, all its handles and descriptors must
 * be destroyed. */
struct Fake {
    check *t;
    explicit Fake(check *t_) : t(t_)
    {
        cudnn = {};
        cudnn.there = true;
    }
    ~Fake()
    {
        if (cudnn.alive) check_fail(t, "%d of the library's objects are left", cudnn.alive);
        cudnn = {};
    }
    Fake(const Fake &) = delete;
    Fake &operator=(const Fake &) = delete;

    /* Opening must fail with this message. */
    void refused(const sgt_cudnn_attention_options &o, int code, const char *want)
    {
        sgt_cudnn_attention *a;
        sgt_error err = {};
        check_at(t, "%s", want);
        if (sgt_cudnn_attention_open(&a, &o, &err) != code || !strstr(err.text, want))
            check_fail(t, "error %d: %s", err.code, err.text);
    }
};

static sgt_cudnn_attention_options options_of(sgt_cuda_type type, size_t B, size_t T, size_t H,
                                              size_t D)
{
    sgt_cudnn_attention_options o = {};
    o.type = type, o.B = B, o.T = T, o.H = H, o.D = D;
    o.scale = (float)(1 / sqrt((double)D));
    return o;
}

/* ---- both passes ---- */

/* Compute both passes head by head, from the arrays on the device. */
template <class T>
static void reference(check *t, const sgt_cudnn_attention_options &o, float *want, float *want_d,
                      float *want_lse, const float *qkv, const float *dout)
{
    const size_t C = o.H * o.D;
    head h = {};
    h.T = o.T, h.D = o.D, h.ld = 3 * C, h.ld_out = h.part = C, h.scale = o.scale;
    h.scratch[0] = check_scratch(t, t->ref->attention_scratch(o.T, o.D));
    for (size_t i = 0; i < o.B * o.H; i++) {
        size_t at = i / o.H * o.T * C + i % o.H * o.D, in = i / o.H * o.T * 3 * C + i % o.H * o.D;
        h.q = qkv + in, h.k = h.q + C, h.v = h.k + C, h.dout = dout + at;
        h.out[0] = want + at, h.lse[0] = want_lse + i * o.T, h.grads[0] = want_d + in;
        forward(t->ref, &h, 0);
        /* the backward pass reads the output in its stored form */
        for (size_t k = 0; k < o.T * o.D; k++) {
            float &x = h.out[0][k / o.D * C + k % o.D];
            x = to_float(dev::from_float<T>(x));
        }
        backward(t->ref, &h, 0);
    }
    for (size_t i = 0; i < 3 * o.B * o.T * C; i++)
        want_d[i] = to_float(dev::from_float<T>(want_d[i]));
}

/* Run both passes with NaN in all memory that they write, and compare. */
template <class T> static void passes(check *t, const sgt_cudnn_attention_options &o)
{
    size_t rows = o.B * o.H * o.T, n = rows * o.D;
    T *qkv = cuda_random<T>(t, 3 * n, 1), *dout = cuda_random<T>(t, n, 1);
    T *out = cuda_output<T>(t, n), *dqkv = cuda_output<T>(t, 3 * n);
    float *lse = cuda_output<float>(t, rows), *want = check_output(t, n),
          *want_d = check_output(t, 3 * n), *want_lse = check_output(t, rows);
    sgt_cudnn_attention *a;
    sgt_cuda_stream stream;
    sgt_error err = {};
    void *space = nullptr;
    check_at(t, "B %zu, T %zu, H %zu, D %zu%s", o.B, o.T, o.H, o.D,
             o.deterministic ? ", deterministic" : "");
    if (sgt_cudnn_attention_open(&a, &o, &err) < 0 || sgt_cuda_stream_new(&stream, &err) < 0 ||
        sgt_cuda_malloc(&space, sgt_cudnn_attention_workspace(a), &err) < 0) {
        check_fail(t, "%s", err.text);
        printf("graph: %s\n", cudnn.graph.c_str());
        return;
    }
    sgt_cudnn_attention_forward(a, stream, out, lse, qkv, space);
    if (cudnn.sums == host::SUMS_ADDED) sgt_cudnn_attention_clear(a, stream, space);
    sgt_cudnn_attention_backward(a, stream, dqkv, dout, out, lse, qkv, space);
    if (sgt_cuda_finish(stream, &err) < 0) check_fail(t, "%s", err.text);
    sgt_cuda_free(space);
    sgt_cuda_stream_free(stream);
    sgt_cudnn_attention_close(a);
    reference<T>(t, o, want, want_d, want_lse, cuda_floats(t, qkv, 3 * n), cuda_floats(t, dout, n));
    check_equal(t, "lse", lse, want_lse, rows);
    check_equal(t, "out", cuda_floats(t, out, n), want, n);
    check_equal(t, "dqkv", cuda_floats(t, dqkv, 3 * n), want_d, 3 * n);
}

template <class T> static void shapes(check *t)
{
    Fake fake(t);
    static const size_t all[][4] = {{1, 2, 1, 8}, {2, 7, 3, 16}, {2, 33, 2, 64}, {1, 9, 1, 128}};
    for (const auto &s : all)
        for (int i = 0; i < 3; i++) {
            sgt_cudnn_attention_options o = options_of(Type<T>::id, s[0], s[1], s[2], s[3]);
            o.deterministic = i == 1;
            /* engines that do not clear dQ's sums give right results if we do */
            cudnn.sums = i == 2 ? host::SUMS_ADDED : host::SUMS_CLEARED;
            passes<T>(t, o);
        }
}

CUDA_CASE(cudnn_bf16) { shapes<dev::bf16>(t); }
CUDA_CASE(cudnn_f16) { shapes<dev::f16>(t); }

/* ---- what is refused ---- */

CUDA_CASE(cudnn_refusals)
{
    Fake fake(t);
    const sgt_cudnn_attention_options plain = options_of(SGT_BF16, 1, 8, 1, 8);
    auto spoiled = [&](void (*spoil)(sgt_cudnn_attention_options &)) {
        sgt_cudnn_attention_options o = plain;
        spoil(o);
        return o;
    };
    using O = sgt_cudnn_attention_options;
    fake.refused(spoiled([](O &o) { o.type = SGT_F32; }), SGT_EUNSUPPORTED, "not fp32");
    fake.refused(spoiled([](O &o) { o.D = 12; }), SGT_EUNSUPPORTED,
                 "multiple of 8, up to 128, not 12");
    fake.refused(spoiled([](O &o) { o.D = 136; }), SGT_EUNSUPPORTED,
                 "multiple of 8, up to 128, not 136");
    fake.refused(spoiled([](O &o) { o.T = 1; }), SGT_EUNSUPPORTED, "at least 2 tokens");
    cudnn.version = 91100;
    fake.refused(plain, SGT_EUNSUPPORTED,
                 "fused attention needs a multiple of 128 tokens in a row, not 8");
    cudnn.version = 91501;
    cudnn.no_device = true;
    fake.refused(plain, SGT_EUNSUPPORTED, "cuDNN: no handle: 5000");
    cudnn.there = false;
    fake.refused(plain, SGT_EUNSUPPORTED, "cuDNN: libcudnn.so.9 was not found");
}

CUDA_CASE(cudnn_plans)
{
    Fake fake(t);
    sgt_cudnn_attention_options o = options_of(SGT_BF16, 1, 8, 1, 8);
    sgt_cudnn_attention *a;
    sgt_error err = {};
    cudnn.configs = 0;
    fake.refused(o, SGT_EUNSUPPORTED,
                 "cuDNN: no execution plan for attention forward: bf16, head size 8, B 1, T 8, H 1 "
                 "(0 engine");
    cudnn.configs = cudnn.refused = 2;
    fake.refused(o, SGT_EUNSUPPORTED, "(2 engine configurations offered; cuDNN: execution plan: ");
    check_at(t, "the first engine cannot");
    cudnn.refused = 1;
    if (sgt_cudnn_attention_open(&a, &o, &err) < 0) check_fail(t, "%s", err.text);
    else sgt_cudnn_attention_close(a);
    cudnn.flagged = 2;
    o.deterministic = 1;
    fake.refused(o, SGT_EUNSUPPORTED, "T 8, H 1, deterministic (0 engine");
    cudnn.flagged = 1;
    cudnn.refused = 2;
    fake.refused(o, SGT_EUNSUPPORTED, "T 8, H 1, deterministic (1 engine");
}

/* A run that cuDNN refuses is reported once, and the next runs are left out. */
CUDA_CASE(cudnn_run_fails)
{
    Fake fake(t);
    const sgt_cudnn_attention_options o = options_of(SGT_BF16, 1, 8, 1, 8);
    sgt_cudnn_attention *a;
    sgt_error err = {};
    dev::bf16 *qkv = cuda_random<dev::bf16>(t, 3 * 64, 1), *out = cuda_output<dev::bf16>(t, 64);
    float *lse = cuda_output<float>(t, 8);
    if (sgt_cudnn_attention_open(&a, &o, &err) < 0) {
        check_fail(t, "%s", err.text);
        return;
    }
    void *space = check_bytes(t, sgt_cudnn_attention_workspace(a));
    cudnn.fails = true;
    sgt_cudnn_attention_forward(a, nullptr, out, lse, qkv, space);
    cudnn.fails = false;
    sgt_cudnn_attention_forward(a, nullptr, out, lse, qkv, space);
    if (sgt_cuda_check(&err) == SGT_OK || !strstr(err.text, "cuDNN: attention forward: 5000"))
        check_fail(t, "told: %s", err.text);
    if (sgt_cuda_check(&err) < 0) check_fail(t, "told twice: %s", err.text);
    if (!isnan(lse[0])) check_fail(t, "the next run was not left out");
    sgt_cudnn_attention_close(a);
}
