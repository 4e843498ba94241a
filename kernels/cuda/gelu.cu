// gelu.cu: GELU (the Gaussian error linear unit), in its tanh or erf form, and its derivative. A
// thread processes 16 bytes.
#include "kernels/cuda/elements.cuh"

using namespace sgt;

enum { THREADS = 256 };

// Return log2(exp(-2u)), where u = sqrt(2/pi) (x + 0.044715 x^3) is the argument of tanh in GELU.
// The kernels compute 0.5 (1 + tanh u) as 1/(1 + e), with e = exp(-2u). This formula takes only one
// exponential. It is also accurate for large negative u, where 1 + tanh u would lose all digits.
DEV float minus_2u(float x)
{
    // -2 sqrt(2/pi) / ln 2
    const float by = -2 * 0.79788456080286535588f * 1.44269504088896340736f;
    return by * x * (1 + 0.044715f * x * x);
}

struct Tanh {
    static DEV float value(float x) { return x / (1 + dev::exp2_fast(minus_2u(x))); }

    // Return the derivative of GELU(x) = x s, where s = 1/(1 + e) and e = exp(-2u). The derivative
    // is s + x s', where s' = 2 u' e s^2. x is limited to +-16, because u' would become too large
    // for larger |x|. This does not change the result, because the derivative is 0 or 1 well before
    // |x| = 16. e is limited to 2^120: with e infinite and s = 0, s^2 e would be NaN, but with this
    // limit it is about 2^-120.
    static DEV float slope(float x)
    {
        x = x > 16 ? 16 : x < -16 ? -16 : x;
        float e = dev::exp2_fast(fminf(minus_2u(x), 120)), s = 1 / (1 + e);
        float du = 0.79788456080286535588f * (1 + 3 * 0.044715f * x * x);
        return s + 2 * x * du * (e * s) * s;
    }
};

struct Erf {
    static DEV float value(float x) { return 0.5f * x * erfcf(-x * 0.70710678118654752440f); }

    static DEV float slope(float x)
    {
        // exp(-x^2/2)
        float density = 0.39894228040143267794f * dev::exp2_fast(-0.72134752044448170368f * x * x);
        return 0.5f * erfcf(-x * 0.70710678118654752440f) + x * density;
    }
};

// Process V elements from index i on. If dout is NULL, set out = f(x). Otherwise, set out = dout *
// f'(x).
template <class T, class F, int V> DEV void gelu_at(T *out, const T *dout, const T *x, size_t i)
{
    float a[V], d[V];
    load(a, x + i);
    if (dout) {
        load(d, dout + i);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) a[j] = d[j] * F::slope(a[j]);
    } else {
        DEV_UNROLL_FOR (int j = 0; j < V; j++) a[j] = F::value(a[j]);
    }
    store(out + i, a);
}

template <class T, class F>
__global__ void __launch_bounds__(THREADS) gelu_kernel(T *out, const T *dout, const T *x, size_t n)
{
    dev::after_previous();
    constexpr int V = PER16<T>;
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, whole = n / V;
    if (i < whole) gelu_at<T, F, V>(out, dout, x, i * V);
    else if (whole * V + (i - whole) < n) gelu_at<T, F, 1>(out, dout, x, whole * V + (i - whole));
}

static void gelu(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *dout, const void *x,
                 size_t n, sgt_gelu_kind kind)
{
    if (n == 0) return;
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        dim3 grid(blocks_for(n / PER16<T> + n % PER16<T>, THREADS)), block(THREADS);
        if (kind == SGT_GELU_TANH)
            DEV_LAUNCH((gelu_kernel<T, Tanh>), grid, block, 0, s, (T *)out, (const T *)dout,
                       (const T *)x, n);
        else
            DEV_LAUNCH((gelu_kernel<T, Erf>), grid, block, 0, s, (T *)out, (const T *)dout,
                       (const T *)x, n);
    });
}

void sgt_cuda_gelu(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x, size_t n,
                   sgt_gelu_kind kind)
{
    gelu(s, type, out, NULL, x, n, kind);
}

void sgt_cuda_gelu_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, const void *dout,
                            const void *x, size_t n, sgt_gelu_kind kind)
{
    gelu(s, type, dx, dout, x, n, kind);
}
