// columns.cuh: fold_columns, the second step of every sum over rows. In the first step, a kernel
// divides the rows among its blocks, and each block writes the sum of its rows for each column. In
// the second step, fold_columns adds these partial sums to the gradients.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace sgt
{

// The arrays to which fold_columns adds the column sums: up to three arrays of C floats, for
// example the gradients of a weight and of a bias.
struct ColumnSums {
    float *out[3];
};

// Add to to.out[p][c] the sum of partial[block][p][c] over all blocks, in a fixed order. Each block
// has written `parts` arrays, of which only the first `wanted` are added.
//   partial (blocks, parts, C)
void fold_columns(sgt_cuda_stream s, const ColumnSums &to, int wanted, int parts,
                  const float *partial, unsigned blocks, size_t C);

} // namespace sgt
