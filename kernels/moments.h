/* moments.h: defines how AdamW's moments are rounded to bfloat16: up or down at random, with
 * probabilities that make the expected value exact (stochastic rounding; Gupta et al., "Deep
 * learning with limited numerical precision", ICML 2015). With rounding to nearest, a moment would
 * never change if each step changed it by less than half a unit in its last place.
 *
 *     uint32_t key = sgt_moments_key(seed, sgt_moments_draw(step), element);
 *     uint32_t random = sgt_moments_random(key, element);
 *     m[element] = sgt_moment_rounded(bits of m's float, random & 0xffff);
 *     v[element] = sgt_moment_rounded(bits of v's float, random >> 16);
 *
 * `element` counts the numbers of all tensors, in the order of the model's flat layout. The result
 * is a pure function of (seed, step, element): it does not depend on threads or ranks. */
#ifndef SGT_MOMENTS_H
#define SGT_MOMENTS_H

#include "loader/base/philox.h"
#include "kernels/dropout.h"

/* Return the part of Philox's counter that all elements of an update share. It differs from every
 * counter of dropout, because it contains a site number that dropout does not use. */
SGT_EVERYWHERE uint64_t sgt_moments_draw(uint64_t step)
{
    return sgt_dropout_draw(step, 0, SGT_DROP_FCPROJ + 1);
}

/* Return the key for an element. Elements whose numbers have the same upper 32 bits share a key. */
SGT_EVERYWHERE uint32_t sgt_moments_key(uint64_t seed, uint64_t draw, uint64_t element)
{
    return sgt_philox(seed, element >> 32, draw).x[0];
}

/* Return 32 random bits for an element: a hash of its number and its key. A call of Philox for each
 * element would take longer than the update itself. The constants are those of Wellons' "lowbias32"
 * (2018), in which every output bit depends on all input bits with almost no bias. */
SGT_EVERYWHERE uint32_t sgt_moments_random(uint32_t key, uint64_t element)
{
    uint32_t x = (uint32_t)element ^ key;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Round a float, given as its bits, to bfloat16. If `random` is uniform in 0 .. 65535, the float is
 * rounded up (away from 0) with probability (its lower 16 bits) / 2^16. Infinity stays infinity. A
 * NaN stays a NaN if one of its upper 7 fraction bits is set. */
SGT_EVERYWHERE uint16_t sgt_moment_rounded(uint32_t bits, uint32_t random)
{
    uint32_t finite = (bits & 0x7f800000) != 0x7f800000;
    return (uint16_t)((bits + (finite ? random : 0)) >> 16);
}

#endif
