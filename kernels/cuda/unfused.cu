// unfused.cu: the operations of the fused kernels, each as its own kernel, as a framework without a
// compiler runs them (--no-fuse). Also the conversion of parameters to the type of the working
// copies.
#include "kernels/cuda/softmax.cuh"

using namespace sgt;

enum { THREADS = 256, WARPS = THREADS / 32 };

// ---- elementwise: `at` processes V numbers at a time, and the last few one at a time ----

template <class Op> __global__ void __launch_bounds__(THREADS) each_kernel(Op op, size_t n)
{
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

// ---- cross entropy in four steps, one row per block ----

template <class T, int V>
__global__ void __launch_bounds__(THREADS)
    logsumexp_kernel(float *lse, const T *logits, int columns, int ld)
{
    DEV_SHARED(float, shared, 2 * WARPS);
    const T *row = logits + (size_t)blockIdx.x * ld;
    int whole = columns / V * V;
    Sum s = {LOWEST, 0};
    for (int c = threadIdx.x * V; c < whole; c += THREADS * V) {
        float x[V];
        load(x, row + c);
        add_exps(s, x);
    }
    if (whole + (int)threadIdx.x < columns) { // the last columns, less than a vector of V
        float x[1];
        load(x, row + whole + threadIdx.x);
        add_exps(s, x);
    }
    s = block_combine<WARPS>(s, shared);
    if (threadIdx.x == 0) lse[blockIdx.x] = s.max + logf(s.total);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    loss_kernel(float *loss, const float *lse, const T *logits, const int32_t *targets, size_t n,
                size_t ld)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    int target = targets[i];
    loss[i] = target < 0 ? 0 : lse[i] - dev::to_float(logits[i * ld + target]);
}

template <class T, int V>
__global__ void __launch_bounds__(THREADS)
    softmax_kernel(T *logits, const float *lse, int columns, int ld)
{
    T *row = logits + (size_t)blockIdx.x * ld;
    float by = lse[blockIdx.x];
    for (int c = threadIdx.x * V; c < ld; c += THREADS * V) {
        float x[V];
        load(x, row + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) x[i] = c + i < columns ? exp_fast(x[i] - by) : 0;
        store(row + c, x);
    }
}

template <class T, int V>
__global__ void __launch_bounds__(THREADS)
    dlogits_kernel(T *probs, const int32_t *targets, int ld, const float *scale)
{
    T *row = probs + (size_t)blockIdx.x * ld;
    int target = targets[blockIdx.x];
    float by = target < 0 ? 0 : *scale;
    for (int c = threadIdx.x * V; c < ld; c += THREADS * V) {
        float x[V];
        load(x, row + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++)
            x[i] = target < 0 ? 0 : (x[i] - (c + i == target)) * by;
        store(row + c, x);
    }
}

void sgt_cuda_logsumexp(sgt_cuda_stream s, sgt_cuda_type type, float *lse, const void *logits,
                        size_t n, size_t V, size_t ld)
{
    if (n == 0) return;
    by_type_and_width(type, ld, [&](auto zero, auto width) {
        using T = decltype(zero);
        DEV_LAUNCH((logsumexp_kernel<T, width>), dim3((unsigned)n), dim3(THREADS), 0, s, lse,
                   (const T *)logits, (int)V, (int)ld);
    });
}

void sgt_cuda_target_loss(sgt_cuda_stream s, sgt_cuda_type type, float *loss, const float *lse,
                          const void *logits, const int32_t *targets, size_t n, size_t ld)
{
    if (n == 0) return;
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        DEV_LAUNCH(loss_kernel<T>, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, s, loss, lse,
                   (const T *)logits, targets, n, ld);
    });
}

void sgt_cuda_softmax(sgt_cuda_stream s, sgt_cuda_type type, void *logits, const float *lse,
                      size_t n, size_t V, size_t ld)
{
    if (n == 0) return;
    by_type_and_width(type, ld, [&](auto zero, auto width) {
        using T = decltype(zero);
        DEV_LAUNCH((softmax_kernel<T, width>), dim3((unsigned)n), dim3(THREADS), 0, s, (T *)logits,
                   lse, (int)V, (int)ld);
    });
}

void sgt_cuda_dlogits(sgt_cuda_stream s, sgt_cuda_type type, void *probs, const int32_t *targets,
                      size_t n, size_t ld, const float *scale)
{
    if (n == 0) return;
    by_type_and_width(type, ld, [&](auto zero, auto width) {
        using T = decltype(zero);
        DEV_LAUNCH((dlogits_kernel<T, width>), dim3((unsigned)n), dim3(THREADS), 0, s, (T *)probs,
                   targets, (int)ld, scale);
    });
}
