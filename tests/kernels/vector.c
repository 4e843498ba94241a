/* vector.c: tests vector addition, the sum of squares, and both in one kernel. */
#include "tests/kernels/harness.h"

#include <float.h>

static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 133, 1021};

static void add_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) {
        size_t n = sizes[a];
        const float *y = check_random(t, n, 1);
        float *want = check_random(t, n, 1), *got = check_copy(t, want, n);
        check_at(t, "n %zu", n);
        t->ref->add(want, y, n);
        t->k->add(got, y, n);
        check_equal(t, "x", got, want, n);
    }
}

/* All terms are positive, so the sum of squares has a relative error of n + 1 roundings of
 * double. */
static void squares_against_ref(check *t)
{
    for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) {
        size_t n = sizes[a];
        const float *x = check_random(t, n, 1);
        check_at(t, "n %zu", n);
        double want = t->ref->sum_squares(x, n), got = t->k->sum_squares(x, n);
        check_near(t, "sum", got, want, (double)(n + 1) * DBL_EPSILON * want);
    }
    float *x = check_random(t, 17, 1);
    check_at(t, "squares past float's range");
    for (int i = 0; i < 17; i++) x[i] = 1e30f;
    check_near(t, "sum", t->k->sum_squares(x, 17), t->ref->sum_squares(x, 17), 1e-14 * 17e60);
}

static void add_definition(check *t)
{
    float *x = check_random(t, 2, 1);
    x[0] = 1, x[1] = 2;
    check_at(t, "2 numbers");
    t->ref->add(x, (const float[]){10, 20}, 2);
    check_equal(t, "x", x, (const float[]){11, 22}, 2);
}

static void squares_definition(check *t)
{
    check_at(t, "3 4 12");
    check_near(t, "sum", t->ref->sum_squares((const float[]){3, 4, 12}, 3), 169, 0);
}

const kernel_case cases_vector[] = {
    {"add", add_definition, add_against_ref, NULL, NULL},
    {"sum_squares", squares_definition, squares_against_ref, NULL, NULL},
    {0},
};
