// columns.cuh: the second step of every sum over rows. In the first step, blocks write partial sums
// of columns. In the second step, fold_columns adds the partial sums to the gradients.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace sgt
{

// The gradients to which one call of fold_columns adds: up to three arrays of C floats.
struct ColumnSums {
    float *out[3];
};

// For each p < wanted, add the sum of partial[block][p][c] over all blocks to to.out[p][c], in a
// fixed order.
//   partial (blocks, parts, C)
void fold_columns(sgt_cuda_stream s, const ColumnSums &to, int wanted, int parts,
                  const float *partial, unsigned blocks, size_t C);

} // namespace sgt
