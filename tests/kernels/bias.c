/* bias.c: sums over rows, with gaps between rows. */
#include "harness.h"

#include <float.h>
#include <math.h>

static const size_t rows[] = {0, 1, 2, 13, 600},
                    widths[] = {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 63, 64, 65, 133};

/* Sums run in double and are rounded once, here and in ref: n roundings of double, two of float. */
static void against_ref(check *t)
{
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) {
            size_t n = rows[a], C = widths[b], ld = C + (check_number(t, 2) ? 3 : 0);
            const float *dout = check_random(t, n ? (n - 1) * ld + C : 0, 1);
            float *want = check_random(t, C, 1), *got = check_copy(t, want, C);
            double *bound = check_doubles(t, C);
            check_at(t, "n %zu, C %zu, ld %zu", n, C, ld);
            t->ref->bias_backward(want, dout, n, C, ld);
            t->k->bias_backward(got, dout, n, C, ld);
            for (size_t c = 0; c < C; c++) bound[c] = 2 * UNIT * fabs(want[c]) + (double)(n * n) * DBL_EPSILON;
            check_close(t, "db", got, want, bound, C);
            check_same_bits(t, "db", got, C);
        }
}

static void definition(check *t)
{
    float *db = check_random(t, 2, 1);
    db[0] = 100, db[1] = 200;
    check_at(t, "3 rows of 2, ld 3");
    t->ref->bias_backward(db, (const float[]){1, 2, 99, 3, 4, 99, 5, 6}, 3, 2, 3);
    check_equal(t, "db", db, (const float[]){109, 212}, 2);
}

static void bench(check *t)
{
    size_t n = 512, C = 768;
    const float *dout = check_random(t, n * C, 1);
    float *db = check_random(t, C, 1);
    for (bench_start(t); bench_next(t);) t->k->bias_backward(db, dout, n, C, C);
    bench_report(t, "512 x 768", 4.0 * (double)(n * C), 0);
}

const kernel_case cases_bias[] = {{"bias_backward", definition, against_ref, bench, NULL}, {0}};
