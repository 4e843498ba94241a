/* normals.c: tests the normally distributed numbers with which parameters are initialized. */
#include <math.h>

#include "tests/kernels/harness.h"

static const size_t sizes[] = {0,  1,  2,  3,  4,  5,  15,  16,  17,
                               31, 32, 33, 63, 64, 65, 127, 129, 1021};
static const uint64_t firsts[] = {0, 1, 2, 3, 4, 1003, UINT64_C(4) << 32, (UINT64_C(4) << 32) - 6};

/* Error bound: 6u of the radius sqrt(-2 ln x), where x is a uniform number that is the same here
 * and in ref. ln has a relative error of 2u, and the root has half of that and u. cos and sin have
 * an absolute error of 1.5u, for their polynomials and their angle. Two products follow. The radius
 * is computed from ref's two numbers of the pair, one with cos and one with sin. Every level must
 * have the bits of the level "plain". */
static void against_ref(check *t)
{
    const sgt_kernels *plain = sgt_kernels_level(0);
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++)
        for (size_t b = 0; b < sizeof firsts / sizeof *firsts; b++) {
            size_t n = sizes[a];
            sgt_normals d = {check_number(t, UINT64_MAX), check_number(t, UINT64_MAX), firsts[b],
                             0.02f},
                        pair = d;
            float *want = check_output(t, n), *got = check_output(t, n), *same = check_output(t, n);
            double *bound = check_doubles(t, n);
            check_at(t, "n %zu, first %llu", n, (unsigned long long)d.first);
            t->ref->normals(want, n, &d);
            t->k->normals(got, n, &d);
            plain->normals(same, n, &d);
            for (size_t i = 0; i < n; i++) {
                float z[2];
                pair.first = (d.first + i) / 2 * 2;
                t->ref->normals(z, 2, &pair);
                bound[i] = 6 * UNIT * hypot((double)z[0], (double)z[1]);
            }
            check_close(t, "out", got, want, bound, n);
            check_equal(t, "out of the plain level", got, same, n);
        }
}

/* Check 2^18 numbers. Their mean, variance, kurtosis and the correlation of neighbours must be
 * those of a normal distribution, within five standard deviations. A different seed, draw or first
 * number must give different numbers. */
static void definition(check *t)
{
    enum { N = 1 << 18 };
    static float z[N];
    sgt_normals d = {.seed = 5, .draw = 7, .sigma = 2};
    double sum[5] = {0}, next = 0;
    t->ref->normals(z, N, &d);
    for (size_t i = 0; i < N; i++) {
        double x = (double)z[i] / 2;
        sum[1] += x;
        sum[2] += x * x;
        sum[4] += x * x * x * x;
        if (i) next += x * (double)z[i - 1] / 2;
    }
    check_at(t, "sigma 2");
    check_near(t, "mean", sum[1] / N, 0, 5 / sqrt(N));
    check_near(t, "variance", sum[2] / N, 1, 5 * sqrt(2.0 / N));
    check_near(t, "fourth moment", sum[4] / N, 3, 5 * sqrt(96.0 / N));
    check_near(t, "of neighbours", next / N, 0, 5 / sqrt(N));
    sgt_normals other[] = {d, d, d, d};
    other[0].seed++, other[1].draw++, other[2].first = 4, other[3].first = 1;
    for (size_t k = 0; k < 4; k++) {
        float x[16];
        t->ref->normals(x, 16, &other[k]);
        check_at(t, "neighbour %zu", k);
        if (k < 2) check_near(t, "equal", x[0] == z[0] || x[1] == z[1], 0, 0);
        else check_equal(t, "shifted", x, z + other[k].first, 16);
    }
}

const kernel_case cases_normals[] = {{"normals", definition, against_ref, NULL, NULL}, {0}};
