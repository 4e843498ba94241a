// columns.cuh: the second half of every sum over rows. Blocks have written partial sums of columns;
// fold_columns adds them to gradients.
#pragma once

#include "kernels/cuda/elements.cuh"

namespace sgt
{

// The gradients, arrays of C floats each, to which one call of fold_columns adds.
struct ColumnSums {
    float *out[3];
};

// For p < wanted, add to to.out[p][c] the sum over blocks of partial[block][p][c], in a fixed
// order.
//   partial (blocks, parts, C)
void fold_columns(sgt_cuda_stream s, const ColumnSums &to, int wanted, int parts,
                  const float *partial, unsigned blocks, size_t C);

} // namespace sgt
