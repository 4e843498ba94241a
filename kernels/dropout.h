/* dropout.h: defines dropout for CPU and GPU: which elements of which tensors are set to 0 in a
 * training step, and by which factor the other elements are multiplied. The factor is a pure
 * function of (seed, step, layer, site, element). So the backward pass and recomputation get the
 * same factors as the forward pass, and micro-steps and ranks get the same factors as one large
 * batch.
 *
 *     uint64_t draw = sgt_dropout_draw(step, layer, SGT_DROP_PROJ);
 *     x[c] *= sgt_dropout_factor(seed, draw, sgt_dropout_element(row, t, c, T, C), 0.1f);
 *
 * `row` is the index of a row among all rows of the step, over all of its micro-steps and ranks. If
 * a micro-step has B rows, divided among n ranks, micro-step m consists of rows m*B .. m*B + B-1,
 * of which rank i computes rows m*B + i, m*B + i + n, ... `step` counts the updates begun since the
 * run began, including those skipped because of an overflow. A site is a place in the model where
 * dropout is applied. There are four:
 *   SGT_DROP_EMBED      wte + wpe, before block 0 (layer 0)       out = factor * (wte + wpe)
 *   SGT_DROP_ATTENTION  probabilities after the softmax           out_i = sum_j factor_ij p_ij v_j
 *   SGT_DROP_PROJ       attention's output projection with its bias, before the residual addition
 *   SGT_DROP_FCPROJ     the MLP's second projection with its bias  sum = x + factor * y
 * Nothing is dropped in evaluation. This header needs no library. */
#ifndef SGT_DROPOUT_H
#define SGT_DROPOUT_H

#include "loader/base/philox.h"

typedef enum sgt_dropout_site {
    SGT_DROP_EMBED,
    SGT_DROP_ATTENTION,
    SGT_DROP_PROJ,
    SGT_DROP_FCPROJ
} sgt_dropout_site;

/* Return the element number of the activation in column c at position t of row `row`: its index in
 * an array (rows, T, C) of all rows of the step. The dropout factors of the embeddings and of both
 * projections are functions of this number. */
SGT_EVERYWHERE uint64_t sgt_dropout_element(uint64_t row, uint64_t t, uint64_t c, uint64_t T,
                                            uint64_t C)
{
    return (row * T + t) * C + c;
}

/* Return the element number of the attention probability of query i and key j in head h of row
 * `row`. It is the probability's index in an array (rows, H, T, T) of all rows of the step, whose
 * last dimension is padded to a multiple of 4, so that keys 4n .. 4n + 3 of a query share one
 * random draw. */
SGT_EVERYWHERE uint64_t sgt_dropout_attention_element(uint64_t row, uint64_t h, uint64_t i,
                                                      uint64_t j, uint64_t H, uint64_t T)
{
    return ((row * H + h) * T + i) * ((T + 3) / 4 * 4) + j;
}

/* Dropout's random numbers are those that Philox, a counter-based generator, computes from a
 * 128-bit counter. Return the half of the counter that is the same for all elements of a tensor in
 * a step. The other half is derived from the element number. `layer` must be at most 4095, and
 * `step` below 2^48. */
SGT_EVERYWHERE uint64_t sgt_dropout_draw(uint64_t step, uint32_t layer, uint32_t site)
{
    return step << 16 | (uint64_t)layer << 4 | site;
}

/* Return the threshold for dropping elements with probability `rate`, where 0 <= rate < 1. Each
 * element has a random 32-bit number, and is kept if the upper 24 bits of this number, as an
 * integer, are at least the threshold. So the actual probability of dropping differs from `rate` by
 * at most 2^-24. */
SGT_EVERYWHERE uint32_t sgt_dropout_limit(float rate)
{
    float exact = rate * 0x1p24f;
    uint32_t below = (uint32_t)exact;
    return below + ((float)below < exact);
}

/* Return a bit mask that tells which of the elements `element` .. `element` + 3 dropout keeps: bit
 * i is set if `element` + i is kept. `element` must be a multiple of 4. */
SGT_EVERYWHERE uint32_t sgt_dropout_kept(uint64_t seed, uint64_t draw, uint64_t element,
                                         uint32_t limit)
{
    sgt_philox4 r = sgt_philox(seed, element / 4, draw);
    uint32_t kept = 0;
    for (int i = 0; i < 4; i++) kept |= (uint32_t)(r.x[i] >> 8 >= limit) << i;
    return kept;
}

/* Return 1/(1 - rate) in float32, the factor by which dropout multiplies elements that it keeps. */
SGT_EVERYWHERE float sgt_dropout_keep(float rate) { return 1 / (1 - rate); }

/* For each i from 0 to 3, set factor[i] to the dropout factor, 0 or 1/(1 - rate), of element number
 * `element` + i. `element` must be a multiple of 4. */
SGT_EVERYWHERE void sgt_dropout_four(float factor[4], uint64_t seed, uint64_t draw,
                                     uint64_t element, float rate)
{
    uint32_t kept = sgt_dropout_kept(seed, draw, element, sgt_dropout_limit(rate));
    for (int i = 0; i < 4; i++) factor[i] = kept >> i & 1 ? sgt_dropout_keep(rate) : 0;
}

/* Return the dropout factor of the element with number `element`: 0 if the element is dropped, else
 * 1/(1 - rate). */
SGT_EVERYWHERE float sgt_dropout_factor(uint64_t seed, uint64_t draw, uint64_t element, float rate)
{
    uint32_t kept = sgt_dropout_kept(seed, draw, element / 4 * 4, sgt_dropout_limit(rate));
    return kept >> element % 4 & 1 ? sgt_dropout_keep(rate) : 0;
}

#endif
