/* attention_head.h: one head of causal attention, its results by a table of kernels, and the error
 * bounds of these results, on a CPU and on the device. */
#ifndef SGT_ATTENTION_HEAD_H
#define SGT_ATTENTION_HEAD_H

#include <math.h>
#include <stdlib.h>

#include "kernels/dropout.h"
#include "tests/kernels/harness.h"

typedef struct head {
    size_t T, D, ld, ld_out;
    size_t part; /* floats from dq to dk, and from dk to dv */
    float scale;
    /* pointers into one (T, ld) buffer, as in the trainer, or to separate buffers */
    const float *q, *k, *v;
    const float *dout;
    float *out[2], *lse[2], *grads[2]; /* [0] expected, [1] computed; grads: (T, ld) of dq dk dv */
    float *scratch[2];
    const sgt_dropout *drop; /* NULL: none */
    const int32_t *start;    /* NULL: one document */
} head;

/* What the bounds depend on besides the head's numbers. */
typedef struct head_errors {
    int device;
    double operand; /* relative error by which operands of products are rounded */
    /* errors by which probabilities and gradients of scores are rounded before they are multiplied:
     * relative, and absolute if subnormal */
    double unit, tiny;
} head_errors;

static inline void forward(const sgt_kernels *k, const head *h, int which)
{
    k->attention(h->out[which], h->ld_out, h->lse[which], h->q, h->k, h->v, h->ld, h->T, h->D,
                 h->scale, h->drop, h->start, h->scratch[which]);
}

static inline void backward(const sgt_kernels *k, const head *h, int which)
{
    float *g = h->grads[which];
    k->attention_backward(g, g + h->part, g + 2 * h->part, h->ld, h->dout, h->out[0], h->ld_out,
                          h->lse[0], h->q, h->k, h->v, h->ld, h->T, h->D, h->scale, h->drop,
                          h->start, h->scratch[which]);
}

/* Return the number of floats from the first row's start to the last row's end. */
static inline size_t span(size_t T, size_t ld, size_t width)
{
    return T ? (T - 1) * ld + width : 0;
}

static inline size_t first_key(const head *h, size_t i)
{
    return h->start ? (size_t)h->start[i] : 0;
}

/* Return the dropout factor of the probability with which query i attends to key j. */
static inline double factor(const head *h, size_t i, size_t j)
{
    const sgt_dropout *d = h->drop;
    if (!d) return 1;
    return (double)sgt_dropout_factor(
        d->seed, d->draw, d->first + sgt_dropout_attention_element(0, 0, i, j, 1, h->T), d->rate);
}

static inline double dot(const float *a, const float *b, size_t D, double *absolute)
{
    double sum = 0;
    *absolute = 0;
    for (size_t d = 0; d < D; d++)
        sum += (double)a[d] * b[d], *absolute += fabs((double)a[d] * b[d]);
    return sum;
}

/* Error bounds of the forward pass. A product of two operands that are rounded by r is off by 2r +
 * r^2 more.
 *   score: a scaled float sum of D products, (D + 3) u |terms|
 *   E: the relative error of p = exp(s - max): the largest error of a score in the row, 4u for exp,
 *     and the rounding of s - max. On the device, where exp is exp2, 3u of the range of scores; and
 *     the same once more for each rescale, of which there is one per tile of 32 keys or more
 *   sum of p over the keys: in lanes and block by block, with the running rescales, (T/4 + 3T/64 +
 *     8) u; on the device T additions
 *   out, relative to the sum of f p |v|, where f is the dropout factor: the errors of p and of its
 *     sum; T u for the sum over v; 2u for f and its product; 4u for other roundings; f p is rounded
 *     once as an operand
 *   lse: E, the error of the sum, and its own rounding; on the device, also 2u for the logarithm
 * On the device, float32 makes three products instead of one, whose sum rounds three times as often,
 * but it must meet the same bounds. The largest error that was seen is a sixth of its bound. */
static inline void forward_bounds(double *out, double *lse, const head *h, const head_errors *e)
{
    size_t T = h->T, D = h->D;
    double *p = (double *)calloc(T + 1, sizeof *p), absolute;
    double product = e->operand * (2 + e->operand);
    double sums = (e->device ? (double)(T + 8) : (double)T / 4 + 3.0 * (double)T / 64 + 8) * UNIT;
    double over_v = e->device ? sums : (double)(T + 6) * UNIT;
    for (size_t i = 0; i < T && p; i++) {
        double worst = 0, max = -INFINITY, total = 0, range = 0;
        for (size_t j = first_key(h, i); j <= i; j++) {
            p[j] = (double)h->scale * dot(h->q + i * h->ld, h->k + j * h->ld, D, &absolute);
            worst = fmax(worst, ((double)(D + 3) * UNIT + product) * h->scale * absolute);
            max = fmax(max, p[j]);
        }
        for (size_t j = first_key(h, i); j <= i; j++)
            range = fmax(range, max - p[j]), total += p[j] = exp(p[j] - max);
        range = fmin(range, 90);
        double E = e->device
                       ? 2 * worst + (4 + 3 * (range + fabs(max))) * UNIT * (1 + (double)T / 32)
                       : worst + (4 + range) * UNIT;
        lse[i] = E + sums +
                 UNIT * (e->device ? 4 * (fabs(max) + log(total) + 1) : 2 * fabs(max + log(total)));
        for (size_t d = 0; d < D; d++) {
            double terms = 0, lost = 1e-37;
            for (size_t j = first_key(h, i); j <= i; j++) {
                double weight = factor(h, i, j) / total * fabs((double)h->v[j * h->ld + d]);
                terms += p[j] * weight;
                lost += e->tiny * weight;
            }
            out[i * h->ld_out + d] = terms * (2 * E + sums + over_v + e->unit + product) + lost;
        }
    }
    free(p);
}

/* Error bounds of the backward pass, where p = exp(s - lse) and ds = p (f dP - delta).
 *   e_p, the relative error of p: the score's error; u (|s| + |lse|) for the difference, on the
 *     device 3u of it, in log2; and 4u for exp. With large operand errors it is not small, so it
 *     goes through exp.
 *   dP, delta: sums of D products
 *   dq, dk, dv: sums of at most T products, (T + 4) u; f p and ds are rounded once as operands */
static inline void backward_bounds(double *grads, const head *h, const head_errors *e)
{
    size_t T = h->T, D = h->D, ld = h->ld;
    double product = e->operand * (2 + e->operand), terms;
    double unit = e->unit + (double)(T + 4) * UNIT + product;
    for (size_t i = 0; i < T; i++) {
        const float *q = h->q + i * ld, *dout = h->dout + i * h->ld_out;
        double delta = dot(dout, h->out[0] + i * h->ld_out, D, &terms), lse = (double)h->lse[0][i],
               e_delta = (double)(D + 2) * UNIT * terms;
        for (size_t j = first_key(h, i); j <= i; j++) {
            const float *k = h->k + j * ld, *v = h->v + j * ld;
            double s = (double)h->scale * dot(q, k, D, &terms), p = exp(s - lse);
            double e_s = ((double)(D + 3) * UNIT + product) * h->scale * terms;
            double e_p = expm1(e_s + (e->device ? 3 : 1) * UNIT * (fabs(s) + fabs(lse)) + 4 * UNIT);
            double f = factor(h, i, j), dp = f * dot(dout, v, D, &terms), ds = p * (dp - delta);
            double e_ds = fabs(ds) * (e_p + 4 * UNIT + unit) + e->tiny +
                          p * (f * ((double)(D + 2) * UNIT + product) * terms + e_delta +
                               2 * UNIT * fabs(dp));
            /* ref sets ds to 0 here. The device's kernels do so only where dq or dk must be 0; in
             * other sums ds is the error of rounding out to T. */
            if (e->device && first_key(h, i) == i) e_ds += fabs(ds);
            for (size_t d = 0; d < D; d++) {
                grads[i * ld + d] += h->scale * e_ds * fabs((double)k[d]);
                grads[j * ld + h->part + d] += h->scale * e_ds * fabs((double)q[d]);
                grads[j * ld + 2 * h->part + d] +=
                    f * (p * (e_p + unit) + e->tiny) * fabs((double)dout[d]);
            }
        }
    }
}

/* Check dq and dk where the result is exactly 0, not a rounding error. A query that sees only its
 * own key has probability 1, whatever its score is, so its dq is 0. If no other query sees the key,
 * dk is 0 too. */
static inline void check_lone_queries(check *t, const head *h, const float *grads)
{
    for (size_t i = 0; i < h->T; i++) {
        int ends = i + 1 == h->T || first_key(h, i + 1) == i + 1;
        const float *dq = grads + i * h->ld, *dk = dq + h->part;
        if (first_key(h, i) != i) continue;
        for (size_t d = 0; d < h->D; d++) {
            check_near(t, "dq of a lone query", (double)dq[d], 0, 0);
            if (ends) check_near(t, "dk of a lone key", (double)dk[d], 0, 0);
        }
    }
}

#endif
