/* layernorm.c: tests layer normalization, forward and backward, by itself and fused with the
 * residual addition. */
#include "tests/kernels/bounds.h"

static const size_t rows[] = {0, 1, 2, 7, 8, 9, 17};
static const size_t widths[] = {1,  2,  3,  4,  5,  7,  8,  9,   15,  16,
                                17, 31, 32, 33, 47, 64, 65, 133, 768, 1600};

/* Return the number of additions in the longest chain of a sum of C floats. Such a sum has at least
 * four lanes, which are added in double. */
static double chain(size_t C) { return (double)C / 4 + 2; }

typedef struct sample {
    float *x, *y, *w, *b, *mean[2], *rstd[2], *out[2], *sum[2]; /* [0] wanted, [1] got */
} sample;

static sample draw(check *t, size_t n, size_t C)
{
    sample s = {check_random(t, n * C, 3),
                check_random(t, n * C, 2),
                check_random(t, C, 2),
                check_random(t, C, 1),
                {0},
                {0},
                {0},
                {0}};
    /* The mean is much larger than the deviation, so a variance computed in one pass would suffer
     * from cancellation. */
    float offset = check_number(t, 3) ? 0 : 30;
    for (size_t i = 0; i < n * C; i++) s.x[i] += offset;
    for (int i = 0; i < 2; i++) {
        s.mean[i] = check_output(t, n), s.rstd[i] = check_output(t, n);
        s.out[i] = check_output(t, n * C), s.sum[i] = check_output(t, n * C);
    }
    check_at(t, "n %zu, C %zu, x about %g", n, C, (double)offset);
    return s;
}

static void compare(check *t, const sample *s, const float *x, size_t n, size_t C)
{
    double *out = check_doubles(t, n * C), *mean = check_doubles(t, n), *rstd = check_doubles(t, n);
    for (size_t i = 0; i < n; i++)
        row_bounds(out + i * C, mean + i, rstd + i, x + i * C, s->w, s->b, C, chain(C), 0);
    check_close(t, "mean", s->mean[1], s->mean[0], mean, n);
    check_close(t, "rstd", s->rstd[1], s->rstd[0], rstd, n);
    check_close(t, "out", s->out[1], s->out[0], out, n * C);
    check_same_bits(t, "out", s->out[1], n * C);
}

static void each_shape(check *t, void (*one)(check *t, size_t n, size_t C))
{
    for (size_t a = 0; a < sizeof rows / sizeof *rows; a++)
        for (size_t b = 0; b < sizeof widths / sizeof *widths; b++) one(t, rows[a], widths[b]);
}

static void layernorm_at(check *t, size_t n, size_t C)
{
    sample s = draw(t, n, C);
    t->ref->layernorm(s.out[0], s.mean[0], s.rstd[0], s.x, s.w, s.b, n, C, EPS);
    t->k->layernorm(s.out[1], s.mean[1], s.rstd[1], s.x, s.w, s.b, n, C, EPS);
    compare(t, &s, s.x, n, C);
}

static void layernorm_against_ref(check *t) { each_shape(t, layernorm_at); }

static void residual(const sgt_kernels *k, const sample *s, float *sum, int which, size_t n,
                     size_t C)
{
    k->residual_layernorm(sum, s->out[which], s->mean[which], s->rstd[which], s->x, s->y, s->w,
                          s->b, n, C, EPS);
}

static void residual_at(check *t, size_t n, size_t C)
{
    sample s = draw(t, n, C);
    residual(t->ref, &s, s.sum[0], 0, n, C);
    residual(t->k, &s, s.sum[1], 1, n, C);
    check_equal(t, "sum", s.sum[1], s.sum[0], n * C);
    compare(t, &s, s.sum[0], n, C);
    residual(t->k, &s, s.x, 0, n, C);
    check_equal(t, "sum in x's place", s.x, s.sum[1], n * C);
    check_equal(t, "out, sum in x's place", s.out[0], s.out[1], n * C);
}

static void residual_against_ref(check *t) { each_shape(t, residual_at); }

static void backward_at(check *t, size_t n, size_t C)
{
    sample s = draw(t, n, C);
    t->ref->layernorm(s.out[0], s.mean[0], s.rstd[0], s.x, s.w, s.b, n, C, EPS);
    const float *dout = check_random(t, n * C, 1);
    float *dx = check_random(t, n * C, 1), *dw = check_random(t, C, 1), *db = check_random(t, C, 1);
    float *got_dx = check_copy(t, dx, n * C), *got_dw = check_copy(t, dw, C),
          *got_db = check_copy(t, db, C);
    double *bound_dx = check_doubles(t, n * C), *bound_dw = check_doubles(t, C),
           *bound_db = check_doubles(t, C);
    t->ref->layernorm_backward(dx, dw, db, dout, s.x, s.mean[0], s.rstd[0], s.w, n, C);
    t->k->layernorm_backward(got_dx, got_dw, got_db, dout, s.x, s.mean[0], s.rstd[0], s.w, n, C);
    gradient_bounds(bound_dx, bound_dw, bound_db,
                    &(gradients){n, C, s.x, s.w, dout, s.mean[0], s.rstd[0], dx, dw, db}, chain(C),
                    0);
    check_close(t, "dx", got_dx, dx, bound_dx, n * C);
    check_close(t, "dw", got_dw, dw, bound_dw, C);
    check_close(t, "db", got_db, db, bound_db, C);
    check_same_bits(t, "dx", got_dx, n * C);
    check_same_bits(t, "dw", got_dw, C);
}

static void backward_against_ref(check *t) { each_shape(t, backward_at); }

/* Check that every row of the result has mean 0 and variance 1. Also check the known result for the
 * row (1, 3). */
static void layernorm_definition(check *t)
{
    float *out = check_output(t, 2), *mean = check_output(t, 1), *rstd = check_output(t, 1);
    check_at(t, "the row 1 3");
    t->ref->layernorm(out, mean, rstd, (const float[]){1, 3}, (const float[]){2, 3},
                      (const float[]){10, 20}, 1, 2, 0);
    check_equal(t, "mean", mean, (const float[]){2}, 1);
    check_equal(t, "rstd", rstd, (const float[]){1}, 1);
    check_equal(t, "out", out, (const float[]){8, 23}, 2);
    t->ref->layernorm(out, mean, rstd, (const float[]){1, 3}, (const float[]){1, 1},
                      (const float[]){0, 0}, 1, 2, 3);
    check_equal(t, "rstd with eps 3", rstd, (const float[]){0.5f}, 1);
}

static void residual_definition(check *t)
{
    float *sum = check_output(t, 2), *out = check_output(t, 2), *mean = check_output(t, 1),
          *rstd = check_output(t, 1);
    check_at(t, "0 1 and 1 2");
    t->ref->residual_layernorm(sum, out, mean, rstd, (const float[]){0, 1}, (const float[]){1, 2},
                               (const float[]){2, 3}, (const float[]){10, 20}, 1, 2, 0);
    check_equal(t, "sum", sum, (const float[]){1, 3}, 2);
    check_equal(t, "out", out, (const float[]){8, 23}, 2);
}

/* Known result, which is added to the old values: the row 1 1 3 3 has mean 2 and variance 1. */
static void backward_definition(check *t)
{
    float dx[] = {10, 20, 30, 40}, dw[] = {1, 2, 3, 4}, db[] = {5, 6, 7, 8};
    check_at(t, "the row 1 1 3 3");
    t->ref->layernorm_backward(dx, dw, db, (const float[]){4, 0, 0, 0}, (const float[]){1, 1, 3, 3},
                               (const float[]){2}, (const float[]){1}, (const float[]){2, 1, 1, 1},
                               1, 4);
    /* g = 8 0 0 0, mean(g) = 2, xhat = -1 -1 1 1, mean(g*xhat) = -2 */
    check_equal(t, "dx", dx, (const float[]){10 + 4, 20 - 4, 30, 40}, 4);
    check_equal(t, "dw", dw, (const float[]){1 - 4, 2, 3, 4}, 4);
    check_equal(t, "db", db, (const float[]){5 + 4, 6, 7, 8}, 4);
}

static void layernorm_bench(check *t)
{
    size_t n = 64, C = 768;
    sample s = draw(t, n, C);
    for (bench_start(t); bench_next(t);)
        t->k->layernorm(s.out[1], s.mean[1], s.rstd[1], s.x, s.w, s.b, n, C, EPS);
    bench_report(t, "64 x 768", 8.0 * (double)(n * C), 0);
}

static void residual_bench(check *t)
{
    size_t n = 64, C = 768;
    sample s = draw(t, n, C);
    for (bench_start(t); bench_next(t);) residual(t->k, &s, s.sum[1], 1, n, C);
    bench_report(t, "64 x 768", 16.0 * (double)(n * C), 0);
}

static void backward_bench(check *t)
{
    size_t n = 64, C = 768;
    sample s = draw(t, n, C);
    float *dw = check_random(t, C, 1), *db = check_random(t, C, 1);
    t->k->layernorm(s.out[0], s.mean[0], s.rstd[0], s.x, s.w, s.b, n, C, EPS);
    for (bench_start(t); bench_next(t);)
        t->k->layernorm_backward(s.y, dw, db, s.out[0], s.x, s.mean[0], s.rstd[0], s.w, n, C);
    bench_report(t, "64 x 768", 16.0 * (double)(n * C), 0);
}

const kernel_case cases_layernorm[] = {
    {"layernorm", layernorm_definition, layernorm_against_ref, layernorm_bench, NULL},
    {"residual_layernorm", residual_definition, residual_against_ref, residual_bench, NULL},
    {"layernorm_backward", backward_definition, backward_against_ref, backward_bench, NULL},
    {0},
};
