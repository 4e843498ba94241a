// muon.cu: Muon's update (kernels/muon.h) without its matrix products: the momentum, the division
// by the norm before Newton-Schulz, and the update of the parameters after Newton-Schulz. Every
// layer has a matrix of each shape, and the matrices of one shape are equally far apart in memory,
// so one launch processes those of all layers.
#include "kernels/cuda/elements.cuh"
#include "kernels/muon.h"

using namespace sgt;

// PARTS: number of partial sums into which the sum of the squares of a matrix is divided
enum { THREADS = 256, WARPS = THREADS / 32, PARTS = 64 };

// For V elements from index i on, update the momentum m and replace the gradients g with the steps
// that are defined at sgt_cuda_muon_momentum. `scale` is mean_scale.
template <int V> DEV void momentum_at(float *m, float *g, size_t i, float scale)
{
    const float kept = (float)SGT_MUON_MOMENTUM, rest = (float)(1 - SGT_MUON_MOMENTUM);
    float moment[V], grad[V];
    load_floats(moment, m + i);
    load_floats(grad, g + i);
    DEV_UNROLL_FOR (int j = 0; j < V; j++) {
        float part = rest * (grad[j] * scale);
        moment[j] = kept * moment[j] + part;
        grad[j] = part + kept * moment[j];
    }
    store_floats(m + i, moment);
    store_floats(g + i, grad);
}

__global__ void __launch_bounds__(THREADS)
    muon_momentum_kernel(float *m, float *g, size_t n, const sgt_cuda_control *c)
{
    dev::after_previous();
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x, whole = n / 4,
           rest = whole * 4 + (at - whole);
    if (c->found_inf || c->spike) return;
    if (at < whole) momentum_at<4>(m, g, at * 4, c->mean_scale);
    else if (rest < n) momentum_at<1>(m, g, rest, c->mean_scale);
}

void sgt_cuda_muon_momentum(sgt_cuda_stream s, float *m, float *g, size_t n,
                            const sgt_cuda_control *c)
{
    if (n == 0) return;
    DEV_LAUNCH(muon_momentum_kernel, dim3(blocks_for(n / 4 + n % 4, THREADS)), dim3(THREADS), 0, s,
               m, g, n, c);
}

template <int V, class T> DEV void scale_at(T *x, const float *u, float by)
{
    float numbers[V];
    load_floats(numbers, u);
    DEV_UNROLL_FOR (int j = 0; j < V; j++) numbers[j] *= by;
    store(x, numbers);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    muon_normalize_kernel(T *x, const float *u, const double *partial, sgt_cuda_matrices l)
{
    dev::after_previous();
    constexpr int V = PER16<T>;
    DEV_SHARED(double, shared, WARPS);
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x, whole = l.n / V,
           rest = whole * V + (at - whole);
    double part = threadIdx.x < PARTS ? partial[blockIdx.y * PARTS + threadIdx.x] : 0,
           squares = block_sum<WARPS>(part, shared);
    float by = (float)(1 / fmax(sqrt(squares), SGT_MUON_EPS));
    x += blockIdx.y * l.stride_x;
    u += blockIdx.y * l.stride;
    if (at < whole) scale_at<V>(x + at * V, u + at * V, by);
    else if (rest < l.n) scale_at<1>(x + rest, u + rest, by);
}

// Return a grid whose y index is the index of a matrix, and whose x dimension has enough threads
// for the n elements of a matrix: n / V threads process V elements each, and n % V further threads
// process one each.
static dim3 grid_of(const sgt_cuda_matrices *l, size_t V)
{
    return dim3(blocks_for(l->n / V + l->n % V, THREADS), (unsigned)l->matrices);
}

size_t sgt_cuda_muon_scratch(size_t matrices) { return matrices * PARTS * sizeof(double); }

void sgt_cuda_muon_normalize(sgt_cuda_stream s, sgt_cuda_type type, void *x, const float *u,
                             const sgt_cuda_matrices *l, void *scratch)
{
    double *partial = (double *)scratch;
    sum_squares(s, partial, u, l->n, l->stride, PARTS, l->matrices);
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        DEV_LAUNCH((muon_normalize_kernel<T>), grid_of(l, PER16<T>), dim3(THREADS), 0, s, (T *)x, u,
                   (const double *)partial, *l);
    });
}

template <class T> struct MuonStep {
    T *copy;
    float *p, *g;
    const T *x;
    sgt_cuda_matrices l;
    float decay, reach;
    int keep; // 1: do not zero the gradients
    const sgt_cuda_control *control;
};

// Update V parameters with the steps in x. The parameters begin at index i of p, g and `copy`, and
// their steps at index `from` of x.
template <int V, class T> DEV void step_at(const MuonStep<T> &u, size_t i, size_t from)
{
    float p[V], x[V], zero[V] = {};
    if (!u.keep) store_floats(u.g + i, zero);
    if (u.control->found_inf || u.control->spike) return;
    double lr = u.control->lr;
    float kept = (float)(1 - lr * u.decay), step = (float)(lr * u.reach);
    load_floats(p, u.p + i);
    load(x, u.x + from);
    DEV_UNROLL_FOR (int j = 0; j < V; j++) p[j] = kept * p[j] - step * x[j];
    store_floats(u.p + i, p);
    if (u.copy) store(u.copy + i, p);
}

template <class T> __global__ void __launch_bounds__(THREADS) muon_update_kernel(MuonStep<T> u)
{
    dev::after_previous();
    constexpr int V = PER16<T>;
    size_t at = (size_t)blockIdx.x * THREADS + threadIdx.x, whole = u.l.n / V,
           rest = whole * V + (at - whole), i = at < whole ? at * V : rest;
    size_t flat = blockIdx.y * u.l.stride + i, from = blockIdx.y * u.l.stride_x + i;
    if (at < whole) step_at<V>(u, flat, from);
    else if (rest < u.l.n) step_at<1>(u, flat, from);
}

void sgt_cuda_muon_update(sgt_cuda_stream s, sgt_cuda_type type, void *copy, float *p, float *g,
                          const void *x, const sgt_cuda_matrices *l, float decay, float reach,
                          int keep, const sgt_cuda_control *c)
{
    if (l->n == 0) return;
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        const MuonStep<T> u = {(T *)copy, p, g, (const T *)x, *l, decay, reach, keep, c};
        DEV_LAUNCH((muon_update_kernel<T>), grid_of(l, PER16<T>), dim3(THREADS), 0, s, u);
    });
}
