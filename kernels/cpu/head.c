/* head.c: the head (logits = x w'), its softmax and its loss, computed with our own matrix
 * products. A thread never has more than 6 x 512 logits in memory, which fit in the L1 cache. The
 * columns of the logits are divided into parts, ranges of up to 512 columns. For each row of a
 * part, e = exp(logit - m) is stored, where m is the largest logit of the row in that part. e is
 * stored as float32 or bfloat16, because it is an operand of the matrix products for the gradients.
 * The gradient of the logits is e times a factor that depends only on row and part. The matrix
 * products for dx and dw apply this factor, so the gradient itself is never stored. On CPUs with
 * AMX, head_bf16_amx.c computes the head in bfloat16 instead.
 *
 * After Milakov & Gimelshein, "Online normalizer calculation for softmax" (2018). */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "loader/base/memory.h"
#include "loader/base/cpu.h"
#include "kernels/kernels.h"
#include "kernels/cpu/levels.h"
#include "kernels/cpu/product.h"

/* Number of floats stored for each row in each part of the logits: the largest logit, the sum of e,
 * and the factor that turns e into the gradient. Each of these three is stored in an array (parts,
 * n) in sgt_head.memory. */
enum { PER_ROW = 3 };

/* Return the number of columns in a part of the logits. Two limits apply:
 *   - The rows of w that belong to a part, with C channels each, must fit in the scratch memory as
 *     packed panels.
 *   - The product for dx must sum over a part in a single section, of at most SGT_PRODUCT_GROUPS
 *     groups (4 bytes each), because a part's factor applies to an entire section. */
static size_t part_of(const sgt_head *h)
{
    size_t per_group = h->bf16 ? 2 : 1, groups = (h->C + per_group - 1) / per_group;
    size_t panels = (size_t)SGT_PRODUCT_GROUPS * SGT_PRODUCT_PANELS / groups;
    size_t most = SGT_PRODUCT_GROUPS * per_group / SGT_PRODUCT_COLUMNS;
    if (panels > most) panels = most;
    return (panels < SGT_PRODUCT_PANELS ? panels : SGT_PRODUCT_PANELS) * SGT_PRODUCT_COLUMNS;
}

/* Return whether the head is computed in AMX tiles. */
static int tiled(const sgt_head *h) { return h->bf16 && sgt_cpu_amx(); }

int sgt_head_possible(const sgt_head *h)
{
    return tiled(h) || (sgt_own_product(h->bf16) && part_of(h) > 0 && !(h->bf16 && h->C % 2));
}

/* Return the row stride in elements of e, the array of exponentials. The stride is an odd number of
 * cache lines, so that successive rows do not compete for the same cache sets. */
static size_t line_of(const sgt_head *h)
{
    size_t lde = (h->V + 63) / 64 * 64; /* an even number of cache lines */
    return lde + (h->bf16 ? 32 : 16);
}

static size_t parts_of(const sgt_head *h) { return (h->V + part_of(h) - 1) / part_of(h); }

/* Return the number of ranges into which weight_gradient divides the C columns of dw. Each of its
 * tasks computes one of these ranges, in the rows of dw that belong to one part of the logits. */
static size_t across_of(const sgt_head *h)
{
    return (h->C + SGT_SOFTMAX_COLUMNS - 1) / SGT_SOFTMAX_COLUMNS;
}

size_t sgt_head_memory(const sgt_head *h)
{
#if defined(__x86_64__)
    if (tiled(h)) return sgt_head_bf16_amx_memory(h);
#endif
    size_t e = h->n * line_of(h) * (h->bf16 ? 2 : 4);
    return (e + 63) / 64 * 64 + parts_of(h) * across_of(h) * sizeof(double) +
           (parts_of(h) * PER_ROW + 1) * h->n * sizeof(float);
}

static void put(const sgt_softmax *s, int bf16, size_t at, float x)
{
    if (bf16) sgt_kernels_cpu()->to_bf16((uint16_t *)s->e + at, &x, 1);
    else ((float *)s->e)[at] = x;
}

/* Return whether no logit of row i is larger than the logit of the row's target. All parts of the
 * logits must have been computed. */
static int is_greedy(const sgt_softmax *s, size_t i)
{
    float max = -INFINITY;
    for (size_t p = 0; p * s->part < s->V; p++)
        max = s->max[p * s->n + i] > max ? s->max[p * s->n + i] : max;
    return s->at_target[i] >= max;
}

/* Complete row i when all parts of its logits have been computed, and return its loss. Set the
 * row's factor in each part, so that factor times e is the gradient of the logits. For the target,
 * subtract 1 from its probability in e.
 *
 * Exception: if the largest logit of the target's part is more than 60 below the largest logit of
 * the row, the part's probabilities are negligible (below e^-60). The part's entries of e then
 * become 0, except the target's, which becomes -1. */
static float finish_row(const sgt_softmax *s, int bf16, size_t i, float *factor, double scale)
{
    size_t parts = (s->V + s->part - 1) / s->part, n = s->n;
    double sum = 0;
    float max = -INFINITY;
    for (size_t p = 0; p < parts; p++) max = s->max[p * n + i] > max ? s->max[p * n + i] : max;
    for (size_t p = 0; p < parts; p++)
        sum += (double)s->sum[p * n + i] * exp((double)s->max[p * n + i] - (double)max);
    int ignored = s->targets[i] < 0;
    double weight = ignored ? 0 : scale / sum;
    for (size_t p = 0; p < parts; p++)
        factor[p * n + i] = (float)(weight * exp((double)s->max[p * n + i] - (double)max));
    if (ignored) return 0;
    size_t target = (size_t)s->targets[i], own = target / s->part, begin = own * s->part;
    double below = (double)s->max[own * n + i] - (double)max, logit = (double)s->at_target[i];
    if (below < -60) {
        size_t count = s->lde - begin < s->part ? s->lde - begin : s->part;
        memset((char *)s->e + (i * s->lde + begin) * (bf16 ? 2 : 4), 0, count * (bf16 ? 2 : 4));
        put(s, bf16, i * s->lde + target, -1);
        factor[own * n + i] = (float)scale;
    } else {
        put(s, bf16, i * s->lde + target, (float)((exp(logit - (double)max) - sum) * exp(-below)));
    }
    return (float)((double)max + log(sum) - logit);
}

static char *scratch_of(const sgt_head *h)
{
    return (char *)h->scratch + (size_t)omp_get_thread_num() * sgt_gemm_scratch(1);
}

/* Compute dx (n, C): dx_i = sum_j f e_ij w_j, where the factor f depends on row i and on the part
 * of column j. Each task computes a range of columns of dx. If this gives fewer tasks than threads,
 * dx is also divided into ranges of rows, although the same columns of w are then packed once for
 * each range of rows. */
static void input_gradient(const sgt_head *h, const sgt_softmax *s, const float *factor, float *dx)
{
    const sgt_gemm_shape g = {
        .m = s->n, .n = s->C, .k = s->V, .lda = s->lde, .ldb = s->C, .ldc = s->C};
    const sgt_factors f = {.of = factor, .part = s->part, .ld = s->n};
    size_t across = (s->C + SGT_SOFTMAX_COLUMNS - 1) / SGT_SOFTMAX_COLUMNS, down = 1;
    size_t columns = ((s->C + across - 1) / across + 63) / 64 * 64;
    across = (s->C + columns - 1) / columns;
    while (down * across % (size_t)h->threads) down++;
    size_t rows =
        ((s->n + down - 1) / down + SGT_PRODUCT_ROWS - 1) / SGT_PRODUCT_ROWS * SGT_PRODUCT_ROWS;
    down = (s->n + rows - 1) / rows;
#pragma omp parallel for num_threads(h->threads) schedule(dynamic, 1)
    for (size_t t = 0; t < down * across; t++) {
        size_t i = t / across * rows, j = t % across * columns;
        sgt_own_product(h->bf16)->run(
            &g, s->e, s->w, NULL, dx, i, s->n - i < rows ? s->n - i : rows, j,
            s->C - j < columns ? s->C - j : columns, &f, NULL, 0, scratch_of(h));
    }
}

/* Compute dw (V, C): dw_j = sum_i f e_ij x_i, with the same factor f as for dx, or add this sum to
 * dw if `add` is set. Each task computes up to 512 columns of dw, in the rows that belong to one
 * part of the logits. Return the sum of squares of the new dw. */
static double weight_gradient(const sgt_head *h, const sgt_softmax *s, const float *factor,
                              const float *x, float *dw, int add, double *squares)
{
    const sgt_gemm_shape g = {.m = s->V,
                              .n = s->C,
                              .k = s->n,
                              .trans_a = 1,
                              .lda = s->lde,
                              .ldb = s->C,
                              .ldc = s->C,
                              .accumulate = add};
    const sgt_factors f = {.of = factor, .part = s->part, .ld = s->n, .right = x};
    size_t across = across_of(h), tasks = parts_of(h) * across;
#pragma omp parallel for num_threads(h->threads) schedule(dynamic, 1)
    for (size_t t = 0; t < tasks; t++) {
        double tile[(SGT_SOFTMAX_COLUMNS / SGT_PRODUCT_ROWS + 1) * SGT_PRODUCT_PANELS];
        size_t i = t / across * s->part, j = t % across * SGT_SOFTMAX_COLUMNS;
        size_t rows = s->V - i < s->part ? s->V - i : s->part;
        size_t columns = s->C - j < SGT_SOFTMAX_COLUMNS ? s->C - j : SGT_SOFTMAX_COLUMNS;
        size_t down = (rows + SGT_PRODUCT_ROWS - 1) / SGT_PRODUCT_ROWS;
        size_t panels = (columns + SGT_PRODUCT_COLUMNS - 1) / SGT_PRODUCT_COLUMNS;
        sgt_own_product(h->bf16)->run(&g, s->e, NULL, NULL, dw, i, rows, j, columns, &f, tile,
                                      panels, scratch_of(h));
        squares[t] = 0;
        for (size_t k = 0; k < down * panels; k++) squares[t] += tile[k];
    }
    double sum = 0;
    for (size_t t = 0; t < tasks; t++) sum += squares[t];
    return sum;
}

double sgt_head_run(const sgt_head *h, size_t n, const void *x, const float *x32, const void *w,
                    const int32_t *targets, double scale, float *loss, float *dx, float *dw,
                    int add)
{
#if defined(__x86_64__)
    if (tiled(h)) return sgt_head_bf16_amx(h, n, x, x32, w, targets, scale, loss, dx, dw, add);
#endif
    sgt_softmax s = {.n = n,
                     .V = h->V,
                     .C = h->C,
                     .part = part_of(h),
                     .lde = line_of(h),
                     .x = x,
                     .w = w,
                     .targets = targets,
                     .e = h->memory};
    size_t e = (n * s.lde * (h->bf16 ? 2 : 4) + 63) / 64 * 64, each = parts_of(h) * n;
    double *squares = (double *)(void *)((char *)h->memory + e);
    s.max = (float *)(void *)((char *)h->memory + e + parts_of(h) * across_of(h) * sizeof *squares);
    s.sum = s.max + each;
    float *factor = s.sum + each;
    s.at_target = factor + each;
#pragma omp parallel for num_threads(h->threads) schedule(dynamic, 1)
    for (size_t j = 0; j < s.V; j += s.part)
        sgt_own_product(h->bf16)->softmax(&s, j, scratch_of(h));
#pragma omp parallel for num_threads(h->threads) schedule(static)
    for (size_t i = 0; i < n; i++) {
        if (h->greedy && targets[i] >= 0) h->greedy[i] = (uint8_t)is_greedy(&s, i);
        loss[i] = finish_row(&s, h->bf16, i, factor, scale);
    }
    if (!(scale > 0)) return 0;
    input_gradient(h, &s, factor, dx);
    return weight_gradient(h, &s, factor, x32, dw, add, squares);
}
