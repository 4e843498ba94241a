// layernorm.cu: LayerNorm, including the residual addition before it, and its backward pass. One
// warp processes each row, so no row waits for another row. A lane reads from shared memory only
// elements that it stored there itself, so no barrier is needed.
#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/layernorm.cuh"

using namespace sgt;

enum { WARPS = 4, MOST_BLOCKS = 264 /* at most two blocks per multiprocessor of an H200 */ };

// Add the residual branch to a row, and store the rounded sum in global memory and in `kept`, this
// warp's row in shared memory. If a.y is NULL, there is no branch, and x is stored only in `kept`.
// Return the sum of this lane's numbers.
template <class T, int V> DEV float add_residual(const NormForward<T> &a, size_t row, T *kept)
{
    float total = 0;
    for (int c = threadIdx.x % 32 * V; c < a.C; c += 32 * V) {
        float x[V], y[V];
        load(x, a.x + row * a.C + c);
        if (a.y) {
            load(y, a.y + row * a.C + c);
            add_branch(x, y, a, row, c);
        }
        store(kept + c, x);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) total += x[i];
    }
    return total;
}

template <class T, int V>
__global__ void __launch_bounds__(WARPS * 32) norm_kernel(NormForward<T> a)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    size_t row = (size_t)blockIdx.x * warps + warp;
    if (row >= a.n) return;
    T *kept = (T *)dev::dyn_smem() + (size_t)warp * a.C;
    float mean = dev::warp_sum(add_residual<T, V>(a, row, kept)) / (float)a.C, squares = 0;
    for (int c = lane * V; c < a.C; c += 32 * V) {
        float x[V];
        load(x, kept + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) squares += (x[i] - mean) * (x[i] - mean);
    }
    float rstd = 1 / sqrtf(dev::warp_sum(squares) / (float)a.C + a.eps);
    for (int c = lane * V; c < a.C; c += 32 * V) {
        float x[V], w[V], b[V];
        load(x, kept + c);
        load_floats(w, a.w + c);
        load_floats(b, a.b + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) x[i] = (x[i] - mean) * rstd * w[i] + b[i];
        store(a.out + row * a.C + c, x);
    }
    if (lane == 0) {
        a.mean[row] = mean;
        a.rstd[row] = rstd;
    }
}

// Return the number of warps per block: WARPS, or fewer if shared memory does not have room for one
// row of `bytes` bytes per warp.
static int warps_for(size_t bytes)
{
    int warps = WARPS;
    while (warps > 1 && warps * bytes > MOST_SHARED) warps /= 2;
    return warps;
}

void sgt_cuda_residual_layernorm(sgt_cuda_stream s, sgt_cuda_type type, void *sum, void *out,
                                 float *mean, float *rstd, const void *x, const void *y,
                                 const void *bias, const float *w, const float *b, size_t n,
                                 size_t C, float eps, const sgt_cuda_dropout *drop)
{
    if (n == 0) return;
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using T = decltype(zero);
        int warps = warps_for(C * sizeof(T));
        NormForward<T> a = {(T *)sum,
                            (T *)out,
                            mean,
                            rstd,
                            (const T *)x,
                            (const T *)y,
                            (const T *)bias,
                            w,
                            b,
                            n,
                            (int)C,
                            eps,
                            drop ? *drop : sgt_cuda_dropout()};
        DEV_LAUNCH((norm_kernel<T, width>), dim3(blocks_for(n, warps)), dim3(warps * 32),
                   warps * C * sizeof(T), s, a);
    });
}

// ---- backward ----

template <int V> struct Chunk {
    float g[V], xhat[V], dout[V]; // g = dout * w
};

template <class T, int V>
DEV void load_chunk(Chunk<V> &k, const NormBackward<T> &a, size_t row, int c)
{
    float w[V], mean = a.mean[row], rstd = a.rstd[row];
    load(k.dout, a.dout + row * a.C + c);
    load(k.xhat, a.x + row * a.C + c);
    load_floats(w, a.w + c);
    DEV_UNROLL_FOR (int i = 0; i < V; i++) {
        k.g[i] = k.dout[i] * w[i];
        k.xhat[i] = (k.xhat[i] - mean) * rstd;
    }
}

// Compute dx (+)= rstd * (g - mean(g) - xhat * mean(g*xhat)) for one row, where "(+)" means adding
// unless a.first is set. Add the row's terms of dw and db to sums in shared memory, where every
// lane has columns of its own.
template <class T, int V>
DEV void backward_row(const NormBackward<T> &a, size_t row, float *dw, float *db)
{
    Chunk<V> k;
    int first = threadIdx.x % 32 * V;
    float sum_g = 0, sum_gx = 0;
    for (int c = first; c < a.C; c += 32 * V) {
        load_chunk(k, a, row, c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) {
            sum_g += k.g[i];
            sum_gx += k.g[i] * k.xhat[i];
        }
    }
    float mean_g = dev::warp_sum(sum_g) / (float)a.C, mean_gx = dev::warp_sum(sum_gx) / (float)a.C,
          rstd = a.rstd[row];
    for (int c = first; c < a.C; c += 32 * V) {
        float dx[V] = {}, w[V], b[V];
        load_chunk(k, a, row, c); // the second load of these numbers, from the caches
        if (!a.first) load(dx, a.dx + row * a.C + c);
        load_floats(w, dw + c);
        load_floats(b, db + c);
        DEV_UNROLL_FOR (int i = 0; i < V; i++) {
            dx[i] += rstd * (k.g[i] - mean_g - k.xhat[i] * mean_gx);
            w[i] += k.dout[i] * k.xhat[i];
            b[i] += k.dout[i];
        }
        store(a.dx + row * a.C + c, dx);
        store_floats(dw + c, w);
        store_floats(db + c, b);
    }
}

template <class T, int V>
__global__ void __launch_bounds__(WARPS * 32) norm_backward_kernel(NormBackward<T> a)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    float *sums = (float *)dev::dyn_smem(), *mine = sums + (size_t)warp * 2 * a.C, zero[V] = {};
    for (int c = lane * V; c < a.C; c += 32 * V) {
        store_floats(mine + c, zero);
        store_floats(mine + a.C + c, zero);
    }
    for (size_t row = (size_t)blockIdx.x * warps + warp; row < a.n;
         row += (size_t)gridDim.x * warps)
        backward_row<T, V>(a, row, mine, mine + a.C);
    dev::block_sync(); // every warp's sums are complete
    for (int c = threadIdx.x; c < 2 * a.C; c += blockDim.x) {
        float total = 0;
        for (int w = 0; w < warps; w++) total += sums[(size_t)w * 2 * a.C + c];
        a.partial[(size_t)blockIdx.x * 2 * a.C + c] = total;
    }
}

static int backward_warps(size_t C) { return warps_for(2 * C * sizeof(float)); }

static unsigned backward_blocks(size_t n, size_t C)
{
    unsigned blocks = blocks_for(n, (size_t)backward_warps(C));
    return blocks < MOST_BLOCKS ? blocks : (unsigned)MOST_BLOCKS;
}

size_t sgt_cuda_layernorm_backward_scratch(size_t n, size_t C)
{
    return backward_blocks(n, C) * 2 * C * sizeof(float);
}

void sgt_cuda_layernorm_backward(sgt_cuda_stream s, sgt_cuda_type type, void *dx, int first,
                                 float *dw, float *db, const void *dout, const void *x,
                                 const float *mean, const float *rstd, const float *w, size_t n,
                                 size_t C, void *scratch)
{
    if (n == 0) return;
    int warps = backward_warps(C);
    unsigned blocks = backward_blocks(n, C);
    by_type_and_width(type, C, [&](auto zero, auto width) {
        using T = decltype(zero);
        NormBackward<T> a = {
            (T *)dx, (float *)scratch, (const T *)dout, (const T *)x, mean, rstd, w, n, (int)C,
            first};
        DEV_LAUNCH((norm_backward_kernel<T, width>), dim3(blocks), dim3(warps * 32),
                   warps * 2 * C * sizeof(float), s, a);
    });
    fold_columns(s, {{dw, db}}, 2, 2, (const float *)scratch, blocks, C);
}
