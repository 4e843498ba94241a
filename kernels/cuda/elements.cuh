// elements.cuh: loads and stores of bf16, f16 and float32 elements as float32, 16 bytes at a time;
// sums over a block; and the choice of a kernel by type and width. A kernel template takes the type
// T, and the width V: the number of elements that a lane handles at once. If rows are multiples of
// 16 bytes, V elements fill 16 bytes. Otherwise V is 1.
#pragma once

#include <type_traits>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"

namespace sgt
{

using dev::PER16;

// Number of bytes of shared memory that a block may use on every architecture from sm_80 on. This
// is the limit of sm_86 and sm_89, which is the lowest of all.
enum { MOST_SHARED = 99 * 1024 };

// Load V elements from p and convert them to float. Unless V is 1, p must be 16-byte aligned.
template <int V, class T> DEV void load(float (&x)[V], const T *p)
{
    if constexpr (V == 1) x[0] = dev::to_float(*p);
    else dev::load16(x, p);
}

template <int V, class T> DEV void store(T *p, const float (&x)[V])
{
    if constexpr (V == 1) *p = dev::from_float<T>(x[0]);
    else dev::store16(p, x);
}

// Load V floats from global or shared memory. Unless V is 1, p must be 16-byte aligned. If NOW is
// true, p must be in global memory, and dev::ld16_now loads the floats.
template <bool NOW = false, int V> DEV void load_floats(float (&x)[V], const float *p)
{
    if constexpr (V == 1) {
        x[0] = *p;
    } else {
        DEV_UNROLL_FOR (int i = 0; i < V; i += 4) {
            dev::Vec16 raw = NOW ? dev::ld16_now(p + i) : dev::ld16(p + i);
            DEV_UNROLL_FOR (int j = 0; j < 4; j++) x[i + j] = dev::bits_float(raw.w[j]);
        }
    }
}

template <int V> DEV void store_floats(float *p, const float (&x)[V])
{
    if constexpr (V == 1) {
        *p = x[0];
    } else {
        DEV_UNROLL_FOR (int i = 0; i < V; i += 4) {
            dev::Vec16 raw;
            DEV_UNROLL_FOR (int j = 0; j < 4; j++) raw.w[j] = dev::float_bits(x[i + j]);
            dev::st16(p + i, raw);
        }
    }
}

// Return x rounded to T and converted back. A kernel that stores x as T and also computes with x
// must use this value, so that it computes with the same value as later kernels, which read the
// stored x.
template <class T> DEV float rounded(float x) { return dev::to_float(dev::from_float<T>(x)); }

// Return, in every thread, the sum of x over a block of WARPS warps. `shared` must have room for
// WARPS elements.
template <int WARPS, class N> DEV N block_sum(N x, N *shared)
{
    x = dev::warp_sum(x);
    dev::block_sync(); // wait until every thread has read the sum of the previous call
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    dev::block_sync(); // every warp has stored its sum
    N sum = 0;
    for (int w = 0; w < WARPS; w++) sum += shared[w];
    return sum;
}

// ---- on the host: choose which instance of a template to launch ----

template <class F> void by_type(sgt_cuda_type type, F f)
{
    if (type == SGT_BF16) f(dev::bf16());
    else if (type == SGT_F16) f(dev::f16());
    else f(float());
}

// Call f(T(), width) with the widest vectors that rows of C elements allow: `width` is the number
// of elements in 16 bytes if the rows are multiples of 16 bytes, else 1.
template <class F> void by_type_and_width(sgt_cuda_type type, size_t C, F f)
{
    by_type(type, [&](auto zero) {
        using T = decltype(zero);
        if (C % PER16<T> == 0) f(zero, std::integral_constant<int, PER16<T>>());
        else f(zero, std::integral_constant<int, 1>());
    });
}

inline unsigned blocks_for(size_t n, size_t each) { return (unsigned)((n + each - 1) / each); }

// Add up squares in double, in a fixed order, for `arrays` arrays of n elements each that begin
// `apart` elements apart in x. Each array is divided into `parts` parts. Set partial[array * parts
// + part] to the sum over one part of one array. The caller adds up the sums of the parts. The
// function is defined in optim.cu.
void sum_squares(sgt_cuda_stream s, double *partial, const float *x, size_t n, size_t apart,
                 unsigned parts, size_t arrays);

} // namespace sgt
