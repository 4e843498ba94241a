/* decode.c: tests the kernels for text generation: matrix products of a few rows, and attention of
 * one query. */
#include <math.h>
#include <stdio.h>

#include "tests/kernels/harness.h"

static const size_t counts[] = {0, 1, 2, 3, 4, 5, 9}, widths[] = {0, 1, 3, 4, 5, 8, 9, 37},
                    depths[] = {0, 1, 3, 4, 5, 15, 16, 17, 31, 47, 64, 133, 1021};

/* Error bound of a product. Four or more lanes each add at most k/4 terms in float, with two
 * roundings per term. The lanes are added in double. */
static void bounds(double *bound, const float *x, const float *w, const float *bias, size_t n,
                   size_t m, size_t ld, size_t k)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) {
            double terms = bias ? fabs((double)bias[j]) : 0;
            for (size_t p = 0; p < k; p++)
                terms += fabs((double)x[i * k + p] * (double)w[j * k + p]);
            bound[i * ld + j] = (2 * (double)((k + 3) / 4) + 2) * UNIT * terms;
        }
}

static void one_shape(check *t, size_t n, size_t m, size_t k, int bf16)
{
    size_t ld = m + 3, size = n * ld;
    float *wide = check_random(t, m * k, 1);
    const char *w = bf16 ? check_as_bf16(t, wide, m * k) : (void *)wide;
    const float *x = check_random(t, n * k, 1), *bias = (n + m) % 2 ? check_random(t, m, 1) : NULL;
    float *want = check_output(t, size), *got = check_output(t, size),
          *again = check_output(t, size);
    double *bound = check_doubles(t, size);
    check_at(t, "%zu x %zu x %zu%s", n, m, k, bias ? ", bias" : "");
    t->ref->dots(want, ld, x, w, bias, n, m, k, bf16);
    t->k->dots(got, ld, x, w, bias, n, m, k, bf16);
    bounds(bound, x, wide, bias, n, m, ld, k);
    check_close(t, "out", got, want, bound, size);
    check_same_bits(t, "out", got, size);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++)
            t->k->dots(again + i * ld + j, ld, x + i * k, w + j * k * (bf16 ? 2 : 4),
                       bias ? bias + j : NULL, 1, 1, k, bf16);
    check_equal(t, "one number at a time", again, got, size);
}

static void all_shapes(check *t, int bf16)
{
    for (size_t a = 0; a < sizeof counts / sizeof *counts; a++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++)
            for (size_t c = 0; c < sizeof depths / sizeof *depths; c++)
                if (counts[a] * widths[b] * depths[c] < 20000)
                    one_shape(t, counts[a], widths[b], depths[c], bf16);
}

static void dots_against_ref(check *t) { all_shapes(t, 0); }
static void dots_bf16_against_ref(check *t) { all_shapes(t, 1); }

static void dots_definition(check *t)
{
    const float x[] = {1, 2, 3, -1, 0, 1}, w[] = {1, 10, 100, 2, 0, -1}, bias[] = {0.5f, 1000};
    /* the same six numbers in bfloat16 */
    const uint16_t half[] = {0x3f80, 0x4120, 0x42c8, 0x4000, 0, 0xbf80};
    const float want[] = {321.5f, 999, 99.5f, 997}, bare[] = {321, -1};
    float out[4];
    check_at(t, "two rows of three with two");
    t->ref->dots(out, 2, x, w, bias, 2, 2, 3, 0);
    check_equal(t, "out", out, want, 4);
    t->ref->dots(out, 2, x, half, bias, 2, 2, 3, 1);
    check_equal(t, "out of bfloat16", out, want, 4);
    t->ref->dots(out, 2, x, w, NULL, 1, 2, 3, 0);
    check_equal(t, "without bias", out, bare, 2);
}

static void dots_bench_of(check *t, int bf16)
{
    enum { M = 3072, K = 768 };
    float *wide = check_random(t, (size_t)M * K, 1);
    const void *w = bf16 ? check_as_bf16(t, wide, (size_t)M * K) : wide;
    for (size_t n = 1; n <= 16; n *= 4) {
        const float *x = check_random(t, n * K, 1);
        float *out = check_output(t, n * M);
        char shape[48];
        snprintf(shape, sizeof shape, "%zu x %d x %d", n, M, K);
        for (bench_start(t); bench_next(t);) t->k->dots(out, M, x, w, NULL, n, M, K, bf16);
        bench_report(t, shape, (bf16 ? 2.0 : 4.0) * M * K, 2.0 * (double)n * M * K);
    }
}

static void dots_bench(check *t) { dots_bench_of(t, 0); }
static void dots_bf16_bench(check *t) { dots_bench_of(t, 1); }

/* Return an error bound like that of forward_bounds in attention.c, for kernels that round a
 * product before they add it. A score has an error of E, which includes the rounding of the scaled
 * score. Probabilities have an error of 2E. Their sum and the product with v add (2T + 8) u. */
static double attend_bound(const float *q, const float *k, const float *v, size_t T, size_t D,
                           size_t d, double scale)
{
    double worst = 0, max = -INFINITY, least = INFINITY, largest = 0;
    for (size_t j = 0; j < T; j++) {
        double s = 0, terms = 0;
        for (size_t c = 0; c < D; c++) {
            double term = (double)q[c] * (double)k[j * D + c];
            s += term, terms += fabs(term);
        }
        worst = fmax(worst, (2 * (double)D + 5) * UNIT * scale * terms);
        max = fmax(max, scale * s), least = fmin(least, scale * s);
        largest = fmax(largest, fabs((double)v[j * D + d]));
    }
    double E = worst + (4 + fmin(max - least, 90)) * UNIT;
    return largest * (2 * E + (2 * (double)T + 8) * UNIT) + 1e-37;
}

static void attend_against_ref(check *t)
{
    static const size_t lengths[] = {1, 2, 3, 5, 15, 16, 17, 63, 130, 1021},
                        sizes[] = {1, 3, 8, 13, 16, 32, 64, 67, 80};
    for (size_t a = 0; a < sizeof lengths / sizeof *lengths; a++)
        for (size_t b = 0; b < sizeof sizes / sizeof *sizes; b++) {
            size_t T = lengths[a], D = sizes[b];
            if (T > 200 && D % 16) continue;
            float scale = 1 / sqrtf((float)D);
            const float *q = check_random(t, D, 4), *k = check_random(t, T * D, 4),
                        *v = check_random(t, T * D, 1);
            float *want = check_output(t, D), *got = check_output(t, D),
                  *scores = check_output(t, T);
            double *bound = check_doubles(t, D);
            check_at(t, "T %zu, D %zu", T, D);
            t->ref->attend(want, q, k, v, T, D, scale, scores);
            t->k->attend(got, q, k, v, T, D, scale, scores);
            for (size_t d = 0; d < D; d++) bound[d] = attend_bound(q, k, v, T, D, d, (double)scale);
            check_close(t, "out", got, want, bound, D);
            check_same_bits(t, "out", got, D);
        }
}

/* Known results: equal scores get equal weights, and a score far above the others gets all the
 * weight. */
static void attend_definition(check *t)
{
    const float zero[2] = {0}, k[] = {1, 0, 0, 1, 200, 0}, v[] = {1, 2, 3, 4, 8, 9}, q[] = {2, 0},
                mean[] = {4, 5};
    float out[2], scores[3];
    check_at(t, "three keys");
    t->ref->attend(out, zero, k, v, 3, 2, 1, scores);
    check_equal(t, "mean", out, mean, 2);
    t->ref->attend(out, q, k, v, 3, 2, 1, scores);
    check_equal(t, "the last", out, v + 4, 2);
}

static void attend_bench(check *t)
{
    enum { D = 64 };
    for (size_t T = 64; T <= 1024; T *= 4) {
        const float *q = check_random(t, D, 1), *k = check_random(t, T * D, 1),
                    *v = check_random(t, T * D, 1);
        float *out = check_output(t, D), *scores = check_output(t, T);
        char shape[48];
        snprintf(shape, sizeof shape, "%zu x %d", T, D);
        for (bench_start(t); bench_next(t);) t->k->attend(out, q, k, v, T, D, 0.125f, scores);
        bench_report(t, shape, 8.0 * (double)T * D, 4.0 * (double)T * D);
    }
}

const kernel_case cases_decode[] = {
    {"dots", dots_definition, dots_against_ref, dots_bench, NULL},
    {"dots_bf16", dots_definition, dots_bf16_against_ref, dots_bf16_bench, NULL},
    {"attend", attend_definition, attend_against_ref, attend_bench, NULL},
    {0}};
