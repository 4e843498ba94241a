// columns.cuh: the second half of every sum over rows: blocks write partial sums of columns, and
// fold_columns adds them to gradients.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace sgt
{

// The arrays of C floats that are summed at once.
struct ColumnSums {
    float *out[3];
};

// to.out[p][c] += the sum of partial[block][p][c] over blocks, in one order, for p < wanted
//   partial (blocks, parts, C)
void fold_columns(sgt_cuda_stream s, const ColumnSums &to, int wanted, int parts,
                  const float *partial, unsigned blocks, size_t C);

} // namespace sgt
