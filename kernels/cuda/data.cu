// data.cu: the loader's 16-bit rows as the model's inputs and targets; dropout by itself.
#include "dropout.cuh"

using namespace sgt;

enum { THREADS = 256 };

__global__ void __launch_bounds__(THREADS) widen_kernel(int32_t *inputs, int32_t *targets, const uint16_t *rows,
                                                        const int32_t *given, size_t n, size_t T, int32_t ignore)
{
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    const uint16_t *at = rows + i / T * (T + 1) + i % T;
    int32_t target = given ? given[i] : at[1];
    inputs[i] = at[0];
    targets[i] = target == ignore ? -1 : target;
}

void sgt_cuda_widen_rows(sgt_cuda_stream s, int32_t *inputs, int32_t *targets, const uint16_t *rows,
                         const int32_t *given, size_t B, size_t T, int32_t ignore)
{
    if (B * T == 0) return;
    DEV_LAUNCH(widen_kernel, dim3(blocks_for(B * T, THREADS)), dim3(THREADS), 0, s, inputs, targets, rows, given, B * T,
               T, ignore);
}

template <class T, int V> __global__ void __launch_bounds__(THREADS)
dropout_kernel(T *out, const T *x, size_t n, sgt_cuda_dropout drop)
{
    size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * V;
    if (i >= n) return;
    float a[V], factor[V];
    load(a, x + i);
    if (drop.rate > 0) {
        dropout_factors(factor, drop, i);
        DEV_UNROLL for (int j = 0; j < V; j++) a[j] *= factor[j];
    }
    store(out + i, a);
}

void sgt_cuda_dropout_apply(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x, size_t n,
                            const sgt_cuda_dropout *drop)
{
    sgt_cuda_dropout d = drop ? *drop : sgt_cuda_dropout();
    if (n == 0 || (d.rate <= 0 && out == x)) return;
    by_type_and_width(type, n | d.row_elements, [&](auto zero, auto width) {
        using T = decltype(zero);
        DEV_LAUNCH((dropout_kernel<T, width>), dim3(blocks_for(n, THREADS * width)), dim3(THREADS), 0, s, (T *)out,
                   (const T *)x, n, d);
    });
}
