/* attention.c: causal attention of one head, Vaswani et al. 2017. Query i attends to keys start[i]
 * .. i, which are of its document; if start is NULL, to keys 0 .. i. */
#include <math.h>

#include "kernels/dropout.h"
#include "kernels/ref/ref.h"

static double dot(const float *a, const float *b, size_t D)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++) sum += (double)a[d] * b[d];
    return sum;
}

static double factor(const sgt_dropout *d, size_t T, size_t i, size_t j)
{
    return d ? sgt_dropout_factor(d->seed, d->draw, d->first + i * ((T + 3) / 4 * 4) + j, d->rate)
             : 1;
}

static size_t first_key(const int32_t *start, size_t i) { return start ? (size_t)start[i] : 0; }

/* Return the size of the scratch memory, which holds doubles, in floats. The forward pass needs p
 * (T) and a row of sums (D); the backward pass a row (D) and two arrays (T, D). */
size_t sgt_ref_attention_scratch(size_t T, size_t D)
{
    return sizeof(double) / sizeof(float) * (T + D + 2 * T * D);
}

void sgt_ref_attention(float *out, size_t ld_out, float *lse, const float *q, const float *k,
                       const float *v, size_t ld, size_t T, size_t D, float scale,
                       const sgt_dropout *drop, const int32_t *start, float *scratch)
{
    double *p = (double *)(void *)scratch, *sum = p + T; /* p (T), sum (D) */
    for (size_t i = 0; i < T; i++) {
        double max = -INFINITY, total = 0;
        size_t first = first_key(start, i);
        for (size_t j = first; j <= i; j++) {
            p[j] = scale * dot(q + i * ld, k + j * ld, D);
            if (p[j] > max) max = p[j];
        }
        for (size_t j = first; j <= i; j++) total += p[j] = exp(p[j] - max);
        for (size_t d = 0; d < D; d++) sum[d] = 0;
        for (size_t j = first; j <= i; j++) {
            double weight = factor(drop, T, i, j) * p[j] / total;
            for (size_t d = 0; d < D; d++) sum[d] += weight * v[j * ld + d];
        }
        for (size_t d = 0; d < D; d++) out[i * ld_out + d] = (float)sum[d];
        lse[i] = (float)(max + log(total));
    }
}

/* Compute the gradients, with p_ij = exp(scale q_i.k_j - lse_i), delta_i = dout_i.out_i, and
 * dropout's factors f_ij:
 *   dv_j = sum_i f_ij p_ij dout_i    ds_ij = scale p_ij (f_ij dout_i.v_j - delta_i)
 *   dq_i = sum_j ds_ij k_j           dk_j = sum_i ds_ij q_i
 * A query that attends only to itself has p = 1 for any score. Its ds is set to exactly 0, because
 * the formula would leave the rounding errors of lse and out. */
void sgt_ref_attention_backward(float *dq, float *dk, float *dv, size_t ld_d, const float *dout,
                                const float *out, size_t ld_out, const float *lse, const float *q,
                                const float *k, const float *v, size_t ld, size_t T, size_t D,
                                float scale, const sgt_dropout *drop, const int32_t *start,
                                float *scratch)
{
    /* sum_q (D), sum_k (T, D), sum_v (T, D) */
    double *sum_q = (double *)(void *)scratch, *sum_k = sum_q + D, *sum_v = sum_k + T * D;
    for (size_t x = 0; x < T * D; x++) sum_k[x] = sum_v[x] = 0;
    for (size_t i = 0; i < T; i++) {
        const float *qi = q + i * ld, *douti = dout + i * ld_out;
        double delta = dot(douti, out + i * ld_out, D);
        for (size_t d = 0; d < D; d++) sum_q[d] = 0;
        for (size_t j = first_key(start, i); j <= i; j++) {
            double p = exp(scale * dot(qi, k + j * ld, D) - lse[i]), f = factor(drop, T, i, j);
            double ds =
                first_key(start, i) == i ? 0 : scale * p * (f * dot(douti, v + j * ld, D) - delta);
            for (size_t d = 0; d < D; d++) {
                sum_q[d] += ds * k[j * ld + d];
                sum_k[j * D + d] += ds * qi[d];
                sum_v[j * D + d] += f * p * douti[d];
            }
        }
        for (size_t d = 0; d < D; d++) dq[i * ld_d + d] = (float)sum_q[d];
    }
    for (size_t j = 0; j < T; j++)
        for (size_t d = 0; d < D; d++) {
            dk[j * ld_d + d] = (float)sum_k[j * D + d];
            dv[j * ld_d + d] = (float)sum_v[j * D + d];
        }
}
