/* moments.h: defines how AdamW's moments are rounded to bfloat16: up or down at random, with
 * probabilities that make the expected value exact (stochastic rounding; Gupta et al., "Deep
 * learning with limited numerical precision", ICML 2015). Rounding to nearest would not work: if
 * each step changes a moment by less than half of the distance to the next bfloat16 number, the
 * moment would be rounded back each time and never change.
 *
 *     uint32_t key = sgt_moments_key(seed, sgt_moments_draw(step), element);
 *     uint32_t random = sgt_moments_random(key, element);
 *     m[element] = sgt_moment_rounded(bits of m's float, random & 0xffff);
 *     v[element] = sgt_moment_rounded(bits of v's float, random >> 16);
 *
 * `element` is the index of a parameter in the model's flat layout, which contains all tensors. The
 * result is a pure function of (seed, step, element): it does not depend on threads or ranks. */
#ifndef SGT_MOMENTS_H
#define SGT_MOMENTS_H

#include "loader/base/philox.h"
#include "kernels/dropout.h"

/* The random numbers come from Philox, which computes them from a 128-bit counter. Return the half
 * of the counter that is the same for all elements of an update. In dropout's counters, this half
 * contains a site: the place in the model where dropout is applied. The counter here contains a
 * site that dropout never uses, so that the random numbers are independent of dropout's. */
SGT_EVERYWHERE uint64_t sgt_moments_draw(uint64_t step)
{
    return sgt_dropout_draw(step, 0, SGT_DROP_FCPROJ + 1);
}

/* Return the key for sgt_moments_random, which hashes the key and an element's number to random
 * bits. All elements whose numbers have the same upper 32 bits have the same key. So one call to
 * Philox serves 2^32 successive elements. */
SGT_EVERYWHERE uint32_t sgt_moments_key(uint64_t seed, uint64_t draw, uint64_t element)
{
    return sgt_philox(seed, element >> 32, draw).x[0];
}

/* Return 32 random bits for an element: a hash of the element's number and the key. A hash is used
 * because a call to Philox for each element would take longer than the update itself. The constants
 * are those of Wellons' "lowbias32" (2018), in which every output bit depends on all input bits
 * with almost no bias. */
SGT_EVERYWHERE uint32_t sgt_moments_random(uint32_t key, uint64_t element)
{
    uint32_t x = (uint32_t)element ^ key;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Round a float, given as its bits, to bfloat16. A bfloat16 has the upper 16 bits of a float. If
 * `random` is uniform in 0 .. 65535, the float is rounded away from 0 with probability p / 2^16,
 * where p is the number in its lower 16 bits, and otherwise towards 0. Infinity stays infinity. A
 * NaN stays a NaN if at least one of its upper 7 fraction bits is set; otherwise it becomes
 * infinity. */
SGT_EVERYWHERE uint16_t sgt_moment_rounded(uint32_t bits, uint32_t random)
{
    uint32_t finite = (bits & 0x7f800000) != 0x7f800000;
    return (uint16_t)((bits + (finite ? random : 0)) >> 16);
}

#endif
