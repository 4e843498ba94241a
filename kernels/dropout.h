/* dropout.h: what dropout is, on a CPU and on a GPU: which numbers of a training step are dropped,
 * and what the others are multiplied by. A pure function of (seed, step, layer, site, element): the
 * backward pass and recomputation draw the same factors again, and micro-steps and ranks draw the
 * same ones as one large batch.
 *
 *     uint64_t draw = sgt_dropout_draw(step, layer, SGT_DROP_PROJ);
 *     x[c] *= sgt_dropout_factor(seed, draw, sgt_dropout_element(row, t, c, T, C), 0.1f);
 *
 * `row` is the row of the step, over all its micro-steps and ranks: micro-step m of B rows over all
 * ranks holds rows m*B .. m*B + B-1, of which rank i of n has m*B + i, m*B + i + n, ... `step`
 * counts updates begun since the run began, with those left out for an overflow. The four sites:
 *   SGT_DROP_EMBED      wte + wpe, before block 0 (layer 0)                      out = factor * (wte + wpe)
 *   SGT_DROP_ATTENTION  probabilities after the softmax                          out_i = sum_j factor_ij p_ij v_j
 *   SGT_DROP_PROJ       attention's output projection with its bias, before it is added to the residual
 *   SGT_DROP_FCPROJ     the MLP's second projection with its bias, likewise      sum = x + factor * y
 * Nothing is dropped in evaluation. Needs no library. */
#ifndef SGT_DROPOUT_H
#define SGT_DROPOUT_H

#include "base/philox.h"

typedef enum sgt_dropout_site {
    SGT_DROP_EMBED,
    SGT_DROP_ATTENTION,
    SGT_DROP_PROJ,
    SGT_DROP_FCPROJ
} sgt_dropout_site;

/* Column c of place t of a row, of T places of C columns: embeddings and both projections. */
SGT_EVERYWHERE uint64_t sgt_dropout_element(uint64_t row, uint64_t t, uint64_t c, uint64_t T,
                                            uint64_t C)
{
    return (row * T + t) * C + c;
}

/* Probability of key j for query i in head h of H: rows of keys are counted as if they were a
 * multiple of 4 long, so that four keys from a multiple of 4 on are one draw whatever T is. */
SGT_EVERYWHERE uint64_t sgt_dropout_attention_element(uint64_t row, uint64_t h, uint64_t i,
                                                      uint64_t j, uint64_t H, uint64_t T)
{
    return ((row * H + h) * T + i) * ((T + 3) / 4 * 4) + j;
}

/* The part of Philox's counter that is one for a whole tensor. Layers to 4095, steps to 2^48. */
SGT_EVERYWHERE uint64_t sgt_dropout_draw(uint64_t step, uint32_t layer, uint32_t site)
{
    return step << 16 | (uint64_t)layer << 4 | site;
}

/* An element is kept where the upper 24 bits of its draw are at least this: 0 <= rate < 1 is met to
 * 2^-24. */
SGT_EVERYWHERE uint32_t sgt_dropout_limit(float rate)
{
    float exact = rate * 0x1p24f;
    uint32_t below = (uint32_t)exact;
    return below + ((float)below < exact);
}

/* Four elements from `element` on, a multiple of 4: bit i is whether element + i is kept. */
SGT_EVERYWHERE uint32_t sgt_dropout_kept(uint64_t seed, uint64_t draw, uint64_t element,
                                         uint32_t limit)
{
    sgt_philox4 r = sgt_philox(seed, element / 4, draw);
    uint32_t kept = 0;
    for (int i = 0; i < 4; i++) kept |= (uint32_t)(r.x[i] >> 8 >= limit) << i;
    return kept;
}

/* What the kept ones are multiplied by, in float32. */
SGT_EVERYWHERE float sgt_dropout_keep(float rate) { return 1 / (1 - rate); }

/* The factors of four elements from `element` on, a multiple of 4: 0, or 1/(1 - rate). */
SGT_EVERYWHERE void sgt_dropout_four(float factor[4], uint64_t seed, uint64_t draw,
                                     uint64_t element, float rate)
{
    uint32_t kept = sgt_dropout_kept(seed, draw, element, sgt_dropout_limit(rate));
    for (int i = 0; i < 4; i++) factor[i] = kept >> i & 1 ? sgt_dropout_keep(rate) : 0;
}

/* The factor of one element. */
SGT_EVERYWHERE float sgt_dropout_factor(uint64_t seed, uint64_t draw, uint64_t element, float rate)
{
    uint32_t kept = sgt_dropout_kept(seed, draw, element / 4 * 4, sgt_dropout_limit(rate));
    return kept >> element % 4 & 1 ? sgt_dropout_keep(rate) : 0;
}

#endif
