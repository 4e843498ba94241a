/* gelu.c: tests GELU and its gradient, in both forms (tanh and erf). */
#include "tests/kernels/harness.h"

#include <math.h>

static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 133, 1021};
static const float special[] = {0,     -0.0f,  1e-38f, -1e-38f, 1e-6f, 5.5f, -5.5f,
                                13.4f, -13.4f, 13.6f,  -13.6f,  40,    -40,  1e4f,
                                -1e4f, 1e18f,  -1e18f, 1e30f,   -1e30f};

/* Draw arguments. Most are where GELU is curved, some are far out, and some are special values. */
static float *arguments(check *t, size_t n)
{
    float *x = check_random(t, n, 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = check_number(t, 8);
        if (kind == 0) x[i] = special[check_number(t, sizeof special / sizeof *special)];
        else x[i] *= kind < 6 ? 4 : 15;
    }
    return x;
}

/* Error bounds, relative to |x|.
 *   tanh: GELU is x s with s = 1/(1 + exp a). exp has an error of 4u, and a has an error of 3u |a|.
 *     An error of exp or of a changes s by s (1 - s) times that error. Since s (1 - s) <= 1/4 and
 *     |a| s (1 - s) < 0.23, the change is below 2u. Sum and quotient add 2u, and ref's rounding u.
 *   erf: Phi(-t) = e R <= 1/2, where e is the exponential. Its argument has an error of t^2/2 u,
 *     where t^2/2 Phi(-t) < 0.17. With 4u for exp and 3u for R, the error is below 4u. ref's
 *     rounding adds u. */
static void gelu_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++)
        for (int kind = SGT_GELU_TANH; kind <= SGT_GELU_ERF; kind++) {
            size_t n = sizes[a];
            float *x = arguments(t, n), *want = check_output(t, n), *got = check_output(t, n);
            double *bound = check_doubles(t, n);
            check_at(t, "n %zu, %s", n, kind == SGT_GELU_TANH ? "tanh" : "erf");
            for (size_t i = 0; i < n; i++) bound[i] = 5 * UNIT * fabs(x[i]) + 1e-37;
            t->ref->gelu(want, x, n, (sgt_gelu_kind)kind);
            t->k->gelu(got, x, n, (sgt_gelu_kind)kind);
            check_close(t, "out", got, want, bound, n);
            check_same_bits(t, "out", got, n);
            /* In place and starting at a different element, the result must have the same bits. */
            if (n > 3) {
                t->k->gelu(x, x, 3, (sgt_gelu_kind)kind);
                t->k->gelu(x + 3, x + 3, n - 3, (sgt_gelu_kind)kind);
                check_equal(t, "out in place, in two parts", x, got, n);
            }
        }
}

/* Error bounds, relative to dout.
 *   tanh: 4u for s, as in gelu_against_ref. x s (1 - s) 2u', where u' is the derivative of tanh's
 *     argument, is at most 0.64 and has a relative error of (3|a| + 10) u. Multiplied by |a|, the
 *     term stays below 2.3. The bound is 18u in total.
 *   erf: 5u for Phi. x phi is at most 0.25, with a relative error of (x^2 + 6) u, and |x|^3 phi <
 *     0.47, which adds 2u. ref adds u. */
static void backward_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++)
        for (int kind = SGT_GELU_TANH; kind <= SGT_GELU_ERF; kind++) {
            size_t n = sizes[a];
            const float *x = arguments(t, n);
            float *dout = check_random(t, n, 1), *want = check_output(t, n),
                  *got = check_output(t, n);
            double *bound = check_doubles(t, n);
            check_at(t, "n %zu, %s", n, kind == SGT_GELU_TANH ? "tanh" : "erf");
            for (size_t i = 0; i < n; i++)
                bound[i] = (kind == SGT_GELU_TANH ? 18 : 8) * UNIT * fabs(dout[i]) + 1e-37;
            t->ref->gelu_backward(want, dout, x, n, (sgt_gelu_kind)kind);
            t->k->gelu_backward(got, dout, x, n, (sgt_gelu_kind)kind);
            check_close(t, "dx", got, want, bound, n);
            check_same_bits(t, "dx", got, n);
            t->k->gelu_backward(dout, dout, x, n, (sgt_gelu_kind)kind);
            check_equal(t, "dx in dout's place", dout, got, n);
        }
}

/* Known values of both forms, tanh and erf, and of their derivatives. They were computed by other
 * software, with 30 digits. */
static void definition(check *t)
{
    static const struct {
        float x;
        double value[2], slope[2];
    } known[] = {
        {0, {0, 0}, {0.5, 0.5}},
        {1, {0.8411919906082768, 0.8413447460685429}, {1.0829640838457826, 1.0833154705876863}},
        {-1,
         {-0.15880800939172324, -0.15865525393145705},
         {-0.0829640838457826, -0.0833154705876863}},
        {2, {1.954597694087775, 1.9544997361036416}, {1.0860992566236184, 1.0852318010781970}},
        {-30, {0, 0}, {0, 0}},
    };
    const float two = 2;
    float out, dx;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int kind = SGT_GELU_TANH; kind <= SGT_GELU_ERF; kind++) {
            double value = known[i].value[kind], slope = 2 * known[i].slope[kind];
            check_at(t, "x %g, %s", (double)known[i].x, kind == SGT_GELU_TANH ? "tanh" : "erf");
            t->ref->gelu(&out, &known[i].x, 1, (sgt_gelu_kind)kind);
            check_near(t, "gelu", out, value, UNIT * fabs(value) + 1e-37);
            t->ref->gelu_backward(&dx, &two, &known[i].x, 1, (sgt_gelu_kind)kind);
            check_near(t, "dx", dx, slope, UNIT * fabs(slope) + 1e-37);
        }
}

static void gelu_bench(check *t)
{
    size_t n = 64 * 3072;
    float *x = check_random(t, n, 4), *out = check_output(t, n);
    for (bench_start(t); bench_next(t);) t->k->gelu(out, x, n, SGT_GELU_TANH);
    bench_report(t, "64 x 3072, tanh", 8.0 * (double)n, 0);
    for (bench_start(t); bench_next(t);) t->k->gelu(out, x, n, SGT_GELU_ERF);
    bench_report(t, "64 x 3072, erf", 8.0 * (double)n, 0);
}

static void backward_bench(check *t)
{
    size_t n = 64 * 3072;
    float *x = check_random(t, n, 4), *dout = check_random(t, n, 1), *dx = check_output(t, n);
    for (bench_start(t); bench_next(t);) t->k->gelu_backward(dx, dout, x, n, SGT_GELU_TANH);
    bench_report(t, "64 x 3072, tanh", 12.0 * (double)n, 0);
    for (bench_start(t); bench_next(t);) t->k->gelu_backward(dx, dout, x, n, SGT_GELU_ERF);
    bench_report(t, "64 x 3072, erf", 12.0 * (double)n, 0);
}

const kernel_case cases_gelu[] = {
    {"gelu", definition, gelu_against_ref, gelu_bench, NULL},
    {"gelu_backward", definition, backward_against_ref, backward_bench, NULL},
    {0},
};
