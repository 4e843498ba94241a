// cross_entropy.cu: computes the classifier's loss and the gradient of its logits, one row per
// block. A row that fits in shared memory is read from global memory only once. (A row of 50,304
// 16-bit elements takes 100 KB.) A thread reads from shared memory only elements that it stored
// there itself, so no barrier is needed. Shared memory holds the partial sums of the warps first,
// and then the row.
#include "kernels/cuda/softmax.cuh"

using namespace sgt;

enum {
    THREADS = 512,
    WARPS = THREADS / 32,
    SUMS = 2 * WARPS * (int)sizeof(float) /* bytes */
};

template <class T, int V, bool KEEP>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_kernel(T *dlogits, const T *logits, float *loss, const int32_t *targets, int V_,
                         int ld, const float *scale)
{
    dev::after_previous();
    float *shared = (float *)dev::dyn_smem();
    size_t row = blockIdx.x;
    const T *global = logits + row * ld;
    T *out = dlogits + row * ld, *kept = (T *)(dev::dyn_smem() + SUMS);
    int target = targets[row], whole = V_ / V * V;
    Sum s = {LOWEST, 0};
    for (int c = threadIdx.x * V; c < whole; c += THREADS * V) {
        float x[V];
        load(x, global + c);
        if (KEEP) store(kept + c, x);
        add_exps(s, x);
    }
    // process the columns after the last full vector of V elements, one per thread
    if (whole + (int)threadIdx.x < V_) {
        float x[1];
        load(x, global + whole + threadIdx.x);
        add_exps(s, x);
    }
    // Read the target's logit now, because after the barrier in block_combine, other threads can
    // already overwrite logits with gradients.
    float wanted = target < 0 ? 0 : dev::to_float(global[target]);
    s = block_combine<WARPS>(s, shared);
    if (threadIdx.x == 0) loss[row] = target < 0 ? 0 : s.max + logf(s.total) - wanted;
    if (!scale) return;
    float by = target < 0 ? 0 : *scale, share = by / s.total;
    for (int c = threadIdx.x * V; c < whole; c += THREADS * V) {
        float x[V];
        load(x, KEEP ? kept + c : global + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) {
            x[i] = target < 0 ? 0 : exp_fast(x[i] - s.max) * share - (c + i == target ? by : 0);
        }
        store(out + c, x);
    }
    for (int c = whole + threadIdx.x; c < ld; c += THREADS) {
        float p = 0;
        if (c < V_ && target >= 0)
            p = exp_fast(dev::to_float(global[c]) - s.max) * share - (c == target ? by : 0);
        out[c] = dev::from_float<T>(p);
    }
}

template <class T, int V>
static void launch(sgt_cuda_stream s, T *dlogits, const T *logits, float *loss,
                   const int32_t *targets, size_t n, size_t width, size_t ld, const float *scale)
{
    dim3 grid((unsigned)n), block(THREADS);
    size_t bytes = SUMS + (width * sizeof(T) + 15) / 16 * 16;
    if (scale && bytes <= MOST_SHARED)
        DEV_LAUNCH((cross_entropy_kernel<T, V, true>), grid, block, bytes, s, dlogits, logits, loss,
                   targets, (int)width, (int)ld, scale);
    else
        DEV_LAUNCH((cross_entropy_kernel<T, V, false>), grid, block, SUMS, s, dlogits, logits, loss,
                   targets, (int)width, (int)ld, scale);
}

void sgt_cuda_cross_entropy(sgt_cuda_stream s, sgt_cuda_type type, void *dlogits,
                            const void *logits, float *loss, const int32_t *targets, size_t n,
                            size_t V, size_t ld, const float *scale)
{
    if (n == 0) return;
    by_type_and_width(type, ld, [&](auto zero, auto width) {
        using T = decltype(zero);
        launch<T, width>(s, (T *)dlogits, (const T *)logits, loss, targets, n, V, ld, scale);
    });
}

// Number of threads that add up the losses. All of them are in one block, and they add in double
// and in a fixed order. A thread adds about a thousand losses at most.
enum { SUM_THREADS = 512 };

__global__ void __launch_bounds__(SUM_THREADS)
    loss_sum_kernel(sgt_cuda_control *c, const float *loss, const int32_t *targets, size_t n)
{
    dev::after_previous();
    DEV_SHARED(double, shared, SUM_THREADS / 32);
    double total = 0, count = 0;
    for (size_t i = threadIdx.x; i < n; i += SUM_THREADS) {
        total += loss[i];
        count += targets[i] >= 0;
    }
    total = block_sum<SUM_THREADS / 32>(total, shared);
    count = block_sum<SUM_THREADS / 32>(count, shared);
    if (threadIdx.x > 0) return;
    c->loss += total;
    c->targets += count;
}

void sgt_cuda_loss_sum(sgt_cuda_stream s, sgt_cuda_control *c, const float *loss,
                       const int32_t *targets, size_t n)
{
    DEV_LAUNCH(loss_sum_kernel, dim3(1), dim3(SUM_THREADS), 0, s, c, loss, targets, n);
}
