/* muon.c: tests Muon's update of a matrix. Shapes are wide, square and tall. The smallest has one
 * number. Some are so large that a pass over them is cut into several parts. */
#include "tests/kernels/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/muon.h"

typedef struct matrix_size {
    size_t rows, columns;
} matrix_size;

static const matrix_size sizes[] = {{1, 1},  {1, 7},    {7, 1},    {5, 5},   {4, 12},
                                    {12, 4}, {33, 110}, {110, 33}, {48, 400}};

static const sgt_muon_update update = {.lr = .25f, .decay = .125f, .grad_scale = .37f};

static size_t smaller(const sgt_muon_shape *s)
{
    return s->rows < s->columns ? s->rows : s->columns;
}
static size_t larger(const sgt_muon_shape *s)
{
    return s->rows < s->columns ? s->columns : s->rows;
}

/* Return the bound of X's error, relative to its norm. In float32, a step multiplies the error by
 * at most 3.4445, and five steps by 485. A step adds |A| + |B| + |C| = 10.25 roundings of sums of
 * rows and columns terms, whose squares add up. The bound is four times the standard deviation. In
 * 16 bits, numbers that differ by the errors of such sums may be rounded to different numbers. The
 * probability of this is the error's size in units of the last bit, and the results then differ by
 * a last bit. Their squares add up too. The singular values of matrices with three times as many
 * columns as rows differ by a factor below 4, so two steps multiply an error and the other steps do
 * not. */
static double error_of(const sgt_muon_shape *s)
{
    double sums = 10.25 * sqrt((double)(s->rows + s->columns)) * UNIT;
    double bit = s->format == SGT_FORMAT_FP16 ? 0x1p-11 : 0x1p-8;
    return s->rounding ? 4 * 12 * 10.25 * sqrt(2 * sums / bit) * bit : 4 * 485 * sums;
}

static void run(check *t, sgt_muon_shape s, float *p, float *m, const float *g, int threads)
{
    sgt_muon *u;
    sgt_error err;
    s.memory = check_scratch(t, sgt_muon_memory(&s) / sizeof(float));
    s.scratch = check_scratch(t, sgt_gemm_scratch(threads) / sizeof(float));
    if (sgt_muon_plan(&u, &s, threads, &err) < 0) {
        check_fail(t, "no plan: %s", err.text);
        return;
    }
    sgt_muon_run(u, p, m, g, &update);
    sgt_muon_free(u);
}

/* Check the norm of the difference between the two updates, because singular vectors mix all
 * numbers. */
static void compare(check *t, const sgt_muon_shape *s, const float *got, const float *want,
                    const float *old)
{
    double off = 0, moved = 0, squares = 0;
    for (size_t i = 0; i < s->rows * s->columns; i++) {
        double d = (double)got[i] - want[i], keep = 1 - (double)update.lr * update.decay,
               step = want[i] - keep * old[i];
        off += d * d, moved += step * step, squares += (double)old[i] * old[i];
    }
    double bound = error_of(s) * sqrt(moved) + 4 * UNIT * sqrt(squares + moved);
    if (!(sqrt(off) <= bound)) check_fail(t, "off by %g, bound %g", sqrt(off), bound);
}

static void one(check *t, const matrix_size *at, int rounding, sgt_rounding format, int bf16)
{
    const sgt_muon_shape s = {.rows = at->rows,
                              .columns = at->columns,
                              .rounding = rounding,
                              .format = format,
                              .bf16 = bf16};
    size_t n = s.rows * s.columns, less = smaller(&s);
    const float *g = check_random(t, n, 3), *p = check_random(t, n, 1),
                *m = check_random(t, n, .1f);
    float *want[2] = {check_copy(t, p, n), check_copy(t, m, n)},
          *got[2] = {check_copy(t, p, n), check_copy(t, m, n)},
          *again[2] = {check_copy(t, p, n), check_copy(t, m, n)};
    double *bound = check_doubles(t, n);
    check_at(t, "%zu x %zu%s%s", s.rows, s.columns,
             !rounding                   ? ""
             : format == SGT_FORMAT_BF16 ? ", rounded to bf16"
                                         : ", rounded to fp16",
             bf16 ? ", multiplied in bf16" : "");
    for (size_t i = 0; i < n; i++)
        bound[i] = 4 * UNIT * (fabs((double)m[i]) + fabs((double)g[i] * update.grad_scale));
    sgt_muon_ref(want[0], want[1], g, &s, &update, check_doubles(t, 2 * n + 2 * less * less));
    run(t, s, got[0], got[1], g, 1);
    check_close(t, "m", got[1], want[1], bound, n);
    compare(t, &s, got[0], want[0], p);
    check_same_bits(t, "p", got[0], n);
    run(t, s, again[0], again[1], g, 3);
    check_equal(t, "p on 3 threads", again[0], got[0], n);
    check_equal(t, "m on 3 threads", again[1], got[1], n);
}

static void against_ref(check *t)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        one(t, &sizes[i], 0, SGT_FORMAT_BF16, 0);
    sgt_muon_shape s = {.rows = 4, .columns = 8};
    float *p = check_random(t, 32, 1), *m = check_output(t, 32), *g = check_output(t, 32);
    const float *old = check_copy(t, p, 32);
    memset(m, 0, 32 * sizeof *m), memset(g, 0, 32 * sizeof *g);
    check_at(t, "no gradient yet");
    run(t, s, p, m, g, 1);
    for (size_t i = 0; i < 32; i++)
        check_near(t, "p", p[i], (1 - .25 * .125) * (double)old[i], 2 * UNIT);
}

static void in_16_bits(check *t)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const sgt_muon_shape s = {.rows = sizes[i].rows, .columns = sizes[i].columns};
        if (larger(&s) < 3 * smaller(&s)) continue;
        one(t, &sizes[i], 1, SGT_FORMAT_BF16, 0);
        one(t, &sizes[i], 1, SGT_FORMAT_FP16, 0);
        if (sgt_gemm_has_bf16()) one(t, &sizes[i], 1, SGT_FORMAT_BF16, 1);
    }
}

static void bench_at(check *t, size_t rows, size_t columns, int bf16)
{
    char shape[64];
    sgt_muon *u;
    sgt_muon_shape s = {.rows = rows, .columns = columns, .rounding = bf16, .bf16 = bf16};
    size_t n = rows * columns, less = smaller(&s);
    if (strcmp(t->level, "ref") == 0 || (bf16 && !sgt_gemm_has_bf16())) return;
    float *p = check_random(t, n, 1), *m = check_random(t, n, 1), *g = check_random(t, n, 1);
    s.memory = check_scratch(t, sgt_muon_memory(&s) / sizeof(float));
    s.scratch = check_scratch(t, sgt_gemm_scratch(1) / sizeof(float));
    if (sgt_muon_plan(&u, &s, 1, NULL) < 0) return;
    for (bench_start(t); bench_next(t);) sgt_muon_run(u, p, m, g, &update);
    sgt_muon_free(u);
    snprintf(shape, sizeof shape, "%zu x %zu%s", rows, columns, bf16 ? " bf16" : "");
    double products = 2 * (double)less * (double)n + pow((double)less, 3);
    bench_report(t, shape, 0, 2 * SGT_MUON_STEPS * products);
}

static void bench(check *t)
{
    for (int bf16 = 0; bf16 < 2; bf16++)
        bench_at(t, 384, 1152, bf16), bench_at(t, 768, 2304, bf16), bench_at(t, 3072, 768, bf16);
}

const kernel_case cases_muon[] = {{"muon", NULL, against_ref, bench, "fast"},
                                  {"muon", NULL, against_ref, bench, "avx2"},
                                  {"muon", NULL, against_ref, bench, "plain"},
                                  {"muon_16", NULL, in_16_bits, bench, "fast"},
                                  {0}};
