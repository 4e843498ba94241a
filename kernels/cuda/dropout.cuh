// dropout.cuh: computes the dropout factors of kernels/dropout.h inside a kernel. A kernel counts
// rows and elements from the start of its micro-step, but kernels/dropout.h counts them from the
// start of the step. The functions here convert a kernel's numbers to those of kernels/dropout.h.
#pragma once

#include "kernels/dropout.h"
#include "kernels/cuda/elements.cuh"

namespace sgt
{

// Return the index in the step of row b of this micro-step.
DEV uint64_t step_row(const sgt_cuda_place &place, uint64_t b)
{
    return place.row + b * (place.ranks > 1 ? place.ranks : 1);
}

// Compute the dropout factors of V elements, from `element` on. `element` is counted from the start
// of this micro-step. Unless V is 1, `element` and row_elements must be multiples of 4.
template <int V>
DEV void dropout_factors(float (&factor)[V], const sgt_cuda_dropout &d, uint64_t element)
{
    const sgt_cuda_place &place = *d.place;
    uint64_t at = place.row * d.row_elements + element,
             draw = sgt_dropout_draw(place.step, d.layer, d.site);
    // with several ranks, the rows of the other ranks count, too; with one rank, skip this slow
    // division
    if (place.ranks > 1) at += element / d.row_elements * (place.ranks - 1) * d.row_elements;
    if constexpr (V == 1) {
        factor[0] = sgt_dropout_factor(place.seed, draw, at, d.rate);
    } else {
        DEV_UNROLL_FOR (int i = 0; i < V; i += 4)
            sgt_dropout_four(factor + i, place.seed, draw, at + i, d.rate);
    }
}

} // namespace sgt
