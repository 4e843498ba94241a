// data.cu: copies a batch's inputs and targets, finds the start and end of each document, and has a
// separate kernel for dropout.
#include "kernels/cuda/dropout.cuh"

using namespace sgt;

enum { THREADS = 256 };

__global__ void __launch_bounds__(THREADS)
    take_kernel(int32_t *inputs, int32_t *targets, const int32_t *batch, size_t n, int32_t ignore)
{
    dev::after_previous();
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    int32_t target = batch[n + i];
    inputs[i] = batch[i];
    targets[i] = target == ignore ? -1 : target;
}

void sgt_cuda_take_batch(sgt_cuda_stream s, int32_t *inputs, int32_t *targets, const int32_t *batch,
                         size_t n, int32_t ignore)
{
    if (n == 0) return;
    DEV_LAUNCH(take_kernel, dim3(blocks_for(n, THREADS)), dim3(THREADS), 0, s, inputs, targets,
               batch, n, ignore);
}

// Return the maximum of `at` over all positions from the row's start to this lane's position. A
// warp calls this for 32 positions of a row at a time, in order. `before` is the maximum over all
// earlier groups of 32 positions. The call updates `before` for the next group.
DEV int largest_so_far(int at, int &before)
{
    int lane = threadIdx.x % 32;
    for (int d = 1; d < 32; d *= 2) {
        int left = dev::shfl(at, lane < d ? lane : lane - d);
        at = left > at ? left : at;
    }
    at = at > before ? at : before;
    before = dev::shfl(at, 31);
    return at;
}

__global__ void __launch_bounds__(32)
    documents_kernel(sgt_cuda_documents to, const int32_t *starts, int T)
{
    dev::after_previous();
    size_t row = (size_t)blockIdx.x * T;
    // The end of a position's document is the nearest document start after that position, or T. To
    // find this end, go through the row from its last position to its first, and keep the smallest
    // document start so far. The starts are negated, because largest_so_far computes maxima, not
    // minima.
    int ended = -T;
    for (int from = 0; from < T; from += 32) {
        int t = from + threadIdx.x, back = T - 1 - t;
        // 1 if a document begins at position `back` + 1, else 0
        int begins = back >= 0 && back < T - 1 && starts[row + back + 1] == back + 1;
        int end = -largest_so_far(begins ? -(back + 1) : -T, ended);
        if (t >= T) continue; // positions past the end of the row
        to.start[row + t] = starts[row + t];
        to.end[row + back] = end;
    }
}

void sgt_cuda_place_documents(sgt_cuda_stream s, const sgt_cuda_documents *documents,
                              const int32_t *starts, size_t B, size_t T)
{
    if (B * T == 0) return;
    DEV_LAUNCH(documents_kernel, dim3((unsigned)B), dim3(32), 0, s, *documents, starts, (int)T);
}

template <class T, int V>
__global__ void __launch_bounds__(THREADS)
    dropout_kernel(T *out, const T *x, size_t n, sgt_cuda_dropout drop)
{
    dev::after_previous();
    size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * V;
    if (i >= n) return;
    float a[V], factor[V];
    load(a, x + i);
    dropout_factors(factor, drop, i);
    DEV_UNROLL_FOR (int j = 0; j < V; j++) a[j] *= factor[j];
    store(out + i, a);
}

void sgt_cuda_dropout_apply(sgt_cuda_stream s, sgt_cuda_type type, void *out, const void *x,
                            size_t n, const sgt_cuda_dropout *drop)
{
    if (n == 0) return;
    by_type_and_width(type, n | drop->row_elements, [&](auto zero, auto width) {
        using T = decltype(zero);
        DEV_LAUNCH((dropout_kernel<T, width>), dim3(blocks_for(n, THREADS * width)), dim3(THREADS),
                   0, s, (T *)out, (const T *)x, n, *drop);
    });
}
