// unfused.cu: the kernels of --no-fuse. Each of them does one of the operations that the fused
// kernels combine, as in a framework without a compiler. This file also has the kernel that makes
// the working copies of the parameters, in the type of the matrix products. With fused kernels, the
// optimizer's update makes these copies.
#include "kernels/cuda/elements.cuh"

using namespace sgt;

enum { THREADS = 256 };

// ---- element-wise kernels: V elements at a time, the last n % V elements one by one ----

template <class Op> __global__ void __launch_bounds__(THREADS) each_kernel(Op op, size_t n)
{
    dev::after_previous();
    constexpr int V = Op::V;
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, whole = n / V,
           rest = whole * V + (i - whole);
    if (i < whole) op.template at<V>(i * V);
    else if (rest < n) op.template at<1>(rest);
}

template <class Op> static void launch_each(sgt_cuda_stream s, const Op &op, size_t n)
{
    if (n == 0) return;
    DEV_LAUNCH(each_kernel<Op>, dim3(blocks_for(n / Op::V + n % Op::V, THREADS)), dim3(THREADS), 0,
               s, op, n);
}

template <class T> struct Add {
    static constexpr int V = PER16<T>;
    T *out;
    const T *x, *y;

    template <int W> DEV void at(size_t i) const
    {
        float a[W], b[W];
        load(a, x + i);
        load(b, y + i);
        DEV_UNROLL_FOR (int j = 0; j < W; j++) a[j] += b[j];
        store(out + i, a);
    }
};

template <class T> struct Convert {
    static constexpr int V = PER16<T>;
    T *out;
    const float *x;

    template <int W> DEV void at(size_t i) const
    {
        float a[W];
        load_floats(a, x + i);
        store(out + i, a);
    }
};

struct Scale {
    static constexpr int V = 4;
    float *x;
    const sgt_cuda_control *control;

    template <int W> DEV void at(size_t i) const
    {
        float a[W], by = control->grad_scale;
        load_floats(a, x + i);
        DEV_UNROLL_FOR (int j = 0; j < W; j++) a[j] *= by;
        store_floats(x + i, a);
    }
};

void sgt_cuda_add(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x, const void *y,
                  size_t n)
{
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_each(s, Add<T>{(T *)out, (const T *)x, (const T *)y}, n);
    });
}

void sgt_cuda_convert(sgt_cuda_stream s, sgt_cuda_type type, void *out, const float *x, size_t n)
{
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        launch_each(s, Convert<T>{(T *)out, x}, n);
    });
}

__global__ void __launch_bounds__(32) scaled_kernel(sgt_cuda_control *c)
{
    dev::after_previous();
    if (threadIdx.x == 0) c->grad_scale = 1;
}

void sgt_cuda_scale(sgt_cuda_stream s, sgt_cuda_control *c, float *g, size_t n)
{
    launch_each(s, Scale{g, c}, n);
    DEV_LAUNCH(scaled_kernel, dim3(1), dim3(32), 0, s, c);
}

template <class T, int V>
__global__ void __launch_bounds__(THREADS) add_bias_kernel(T *x, const T *b, int C)
{
    dev::after_previous();
    T *row = x + (size_t)blockIdx.x * C;
    for (int c = threadIdx.x * V; c < C; c += THREADS * V) {
        float a[V], bias[V];
        load(a, row + c);
        load(bias, b + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) a[i] += bias[i];
        store(row + c, a);
    }
}

void sgt_cuda_add_bias(sgt_cuda_stream s, sgt_cuda_type type, void *x, const void *b, size_t n,
                       size_t C)
{
    if (n == 0) return;
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using T = decltype(zero);
        DEV_LAUNCH((add_bias_kernel<T, width>), dim3((unsigned)n), dim3(THREADS), 0, s, (T *)x,
                   (const T *)b, (int)C);
    });
}
