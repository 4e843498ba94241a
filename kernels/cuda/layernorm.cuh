// layernorm.cuh: the arguments of LayerNorm's kernels, and the residual addition before LayerNorm.
#pragma once

#include "kernels/cuda/dropout.cuh"
#include "kernels/cuda/elements.cuh"

namespace sgt
{

template <class T> struct NormForward {
    T *sum, *out;
    float *mean, *rstd;
    // If y is NULL, there is no residual addition, and sum is not written.
    const T *x, *y;
    const T *bias; // added to y; NULL: no bias
    const float *w, *b;
    size_t n;
    int C;
    float eps;
    sgt_cuda_dropout drop;
};

template <class T> struct NormBackward {
    T *dx;
    // (blocks, parts, C): each block's sums over its rows, for dw, for db, and in layernorm_rows.cu
    // also for dx
    float *partial;
    const T *dout, *x;
    const float *mean, *rstd, *w;
    size_t n;
    int C, first; // first: 1: overwrite dx; 0: add to it
};

// For V numbers of a row, from column c on: replace y by dropout(y + bias), then x by x + y,
// rounded to T. Store x in a.sum.
template <class T, int V>
DEV void add_branch(float (&x)[V], float (&y)[V], const NormForward<T> &a, size_t row, int c)
{
    size_t at = row * a.C + c;
    if (a.bias) {
        float bias[V];
        load(bias, a.bias + c);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) y[j] += bias[j];
    }
    if (a.drop.rate > 0) {
        float factor[V];
        dropout_factors(factor, a.drop, at);
        DEV_UNROLL_FOR (int j = 0; j < V; j++) y[j] *= factor[j];
    }
    DEV_UNROLL_FOR (int j = 0; j < V; j++) x[j] = rounded<T>(x[j] + y[j]);
    store(a.sum + at, x);
}

} // namespace sgt
