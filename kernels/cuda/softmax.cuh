// softmax.cuh: a running softmax, which reads the scores only once. Each thread keeps the maximum
// of the scores that it has read so far and the sum of exp(x - maximum), and rescales the sum when
// the maximum grows. At the end, the maxima and sums of all threads are combined over a warp or a
// block.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace sgt
{

// A running softmax: the maximum so far, and `total`, the sum of exp(x - max). max starts at
// LOWEST, a very low but finite number: with -infinity, max - max would be NaN.
struct Sum {
    float max, total;
};

static constexpr float LOG2_E = 1.44269504088896340736f, LOWEST = -3e38f;

DEV float exp_fast(float x) { return dev::exp2_fast(x * LOG2_E); }

template <int V> DEV void add_exps(Sum &s, const float (&x)[V])
{
    float max = s.max;
    // fmaxf ignores a NaN in x, so max never becomes NaN, but exp(NaN - max) below makes the sum
    // NaN
    DEV_UNROLL_FOR (int i = 0; i < V; i++) max = fmaxf(max, x[i]);
    s.total *= exp_fast(s.max - max);
    DEV_UNROLL_FOR (int i = 0; i < V; i++) s.total += exp_fast(x[i] - max);
    s.max = max;
}

// Combine the running softmaxes of a warp's lanes. Every lane gets the result.
DEV Sum warp_combine(Sum s)
{
    float max = dev::warp_max(s.max);
    return {max, dev::warp_sum(s.total * exp_fast(s.max - max))};
}

// Combine the running softmaxes of a block's threads. Every thread gets the result. `shared` must
// have room for 2 * WARPS floats.
template <int WARPS> DEV Sum block_combine(Sum s, float *shared)
{
    int warp = threadIdx.x / 32;
    s = warp_combine(s);
    if (threadIdx.x % 32 == 0) {
        shared[warp] = s.max;
        shared[WARPS + warp] = s.total;
    }
    dev::block_sync(); // every warp has stored its sums
    Sum all = {LOWEST, 0};
    for (int w = 0; w < WARPS; w++) all.max = fmaxf(all.max, shared[w]);
    for (int w = 0; w < WARPS; w++) all.total += shared[WARPS + w] * exp_fast(shared[w] - all.max);
    return all;
}

} // namespace sgt
