/* gemm.c: matrix products. */
#include "tests/kernels/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/kernels/amx.h"

typedef struct shape {
    size_t m, n, k;
} shape;

/* Shapes of matrix products: one tile; edges in both directions; blocks of rows (m >= 1024) with a
 * remainder; a large k; all panels of one block and some of the next block, with k cut in two. */
static const shape shapes[] = {{1, 1, 1},      {1, 17, 5},     {13, 1, 9},     {15, 16, 17},
                               {63, 64, 65},   {64, 257, 31},  {130, 70, 3},   {257, 129, 97},
                               {512, 300, 24}, {1024, 48, 24}, {1031, 33, 16}, {2053, 20, 8},
                               {4103, 8, 5},   {24, 40, 3001}, {7, 523, 401}};

typedef struct product {
    sgt_gemm_shape s;
    const float *a, *b, *bias;
    /* a and b in the format that the kernel reads: bfloat16, or float32 (then a and b
     * themselves) */
    const void *in[2];
    float *c;
    size_t size_c;
} product;

static size_t span(size_t rows, size_t ld, size_t width) { return (rows - 1) * ld + width; }

enum { BIAS = 1, ADDED = 2, GAPS = 4, BF16 = 8 };

static product draw(check *t, const shape *x, int trans_a, int trans_b, int options)
{
    size_t rows_a = trans_a ? x->k : x->m, cols_a = trans_a ? x->m : x->k;
    size_t rows_b = trans_b ? x->n : x->k, cols_b = trans_b ? x->k : x->n;
    size_t gap = options & GAPS ? 3 : 0;
    product p = {.s = {x->m, x->n, x->k, trans_a, trans_b, cols_a + gap, cols_b + gap * 2,
                       x->n + gap, options & BIAS, (options & ADDED) != 0, (options & BF16) != 0,
                       NULL, 1}};
    p.size_c = span(x->m, p.s.ldc, x->n);
    size_t size_a = span(rows_a, p.s.lda, cols_a), size_b = span(rows_b, p.s.ldb, cols_b);
    float *a = check_random(t, size_a, 1), *b = check_random(t, size_b, 1);
    p.a = a, p.b = b;
    p.in[0] = p.s.bf16 ? check_as_bf16(t, a, size_a) : a;
    p.in[1] = p.s.bf16 ? check_as_bf16(t, b, size_b) : b;
    p.bias = p.s.bias ? check_random(t, x->n, 1) : NULL;
    p.c = p.s.accumulate ? check_random(t, p.size_c, 1) : check_output(t, p.size_c);
    check_at(t, "%zu x %zu x %zu%s%s%s%s%s%s", x->m, x->n, x->k, trans_a ? ", A transposed" : "",
             trans_b ? ", B transposed" : "", p.s.bias ? ", bias" : "",
             p.s.accumulate ? ", added" : "", gap ? ", gaps" : "", p.s.bf16 ? ", bf16" : "");
    return p;
}

/* Error bound of a sum of k products, the bias and the old value, in any order of addition. */
static void bounds(double *bound, const product *p)
{
    const sgt_gemm_shape *s = &p->s;
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < s->n; j++) {
            double terms =
                (s->bias ? fabs(p->bias[j]) : 0) + (s->accumulate ? fabs(p->c[i * s->ldc + j]) : 0);
            for (size_t x = 0; x < s->k; x++)
                terms += fabs((double)p->a[s->trans_a ? x * s->lda + i : i * s->lda + x] *
                              p->b[s->trans_b ? j * s->ldb + x : x * s->ldb + j]);
            bound[i * s->ldc + j] = (double)(s->k + 3) * UNIT * terms;
        }
}

enum { SHARES = 40 };

static void count_share(void *of, size_t i)
{
    __atomic_fetch_add((int *)of + i, 1, __ATOMIC_RELAXED);
}

/* Test other work that threads do during a matrix product (sgt_beside). Each share that has begun
 * must be done exactly once. With one thread, no share may begin. sgt_beside_finish does the
 * remaining shares. */
static void run_beside(check *t, const sgt_gemm *g, const product *p, float *c, int threads)
{
    int done[SHARES] = {0};
    sgt_beside w = {.share = count_share, .of = done, .count = SHARES};
    sgt_gemm_run_beside(g, p->in[0], p->in[1], p->bias, c, &w);
    if (threads == 1 && w.next) check_fail(t, "%zu shares begun by one thread", w.next);
    for (size_t i = 0; i < SHARES; i++)
        if (done[i] != (i < w.next))
            check_fail(t, "share %zu of %zu begun done %d times", i, w.next, done[i]);
    sgt_beside_finish(&w, SHARES / 2, threads);
    if (w.next < SHARES / 2) check_fail(t, "%zu shares finished, not %d", w.next, SHARES / 2);
    sgt_beside_finish(&w, SIZE_MAX, threads);
    for (size_t i = 0; i < SHARES; i++)
        if (done[i] != 1) check_fail(t, "share %zu done %d times in all", i, done[i]);
}

/* Compare the sum of squares that the kernel returns with the squares of C. A lane adds 24 squares
 * in float before the lanes are added. */
static void check_squares(check *t, const sgt_gemm *g, const product *p, const float *c,
                          double *squares)
{
    double sum = 0;
    for (size_t i = 0; i < p->s.m; i++)
        for (size_t j = 0; j < p->s.n; j++)
            sum += (double)c[i * p->s.ldc + j] * (double)c[i * p->s.ldc + j];
    *squares = sgt_gemm_squares(g);
    if (!(fabs(*squares - sum) <= 25 * UNIT * sum))
        check_fail(t, "squares sum to %.9g, not %.9g", *squares, sum);
}

static int run(check *t, const product *p, float *c, double *squares, int threads)
{
    sgt_gemm *g;
    sgt_error err;
    sgt_gemm_shape s = p->s;
    s.scratch = check_scratch(t, sgt_gemm_scratch(threads) / sizeof(float));
    int rc = sgt_gemm_plan(&g, &s, threads, &err);
    if (rc < 0) check_fail(t, "no plan: %s", err.text);
    if (rc < 0) return rc;
    memcpy(c, p->c, p->size_c * sizeof *c);
    run_beside(t, g, p, c, threads);
    check_squares(t, g, p, c, squares);
    sgt_gemm_free(g);
    return SGT_OK;
}

/* Check the result of one thread, in buffers between guard pages. Two, three and four threads must
 * then give the same bits. */
static void one(check *t, const shape *x, int trans_a, int trans_b, int options)
{
    product p = draw(t, x, trans_a, trans_b, options);
    float *want = check_copy(t, p.c, p.size_c), *got = check_copy(t, p.c, p.size_c),
          *again = check_copy(t, p.c, p.size_c);
    double *bound = check_doubles(t, p.size_c), squares, squares_again;
    sgt_gemm_ref(&p.s, p.in[0], p.in[1], p.bias, want);
    bounds(bound, &p);
    if (run(t, &p, got, &squares, 1) < 0) return;
    check_close(t, "C", got, want, bound, p.size_c);
    check_same_bits(t, "C", got, p.size_c);
    for (int threads = 2; threads <= 4; threads++) {
        if (run(t, &p, again, &squares_again, threads) < 0) return;
        check_equal(t,
                    threads == 2   ? "C on 2 threads"
                    : threads == 3 ? "C on 3 threads"
                                   : "C on 4 threads",
                    again, got, p.size_c);
        if (squares_again != squares)
            check_fail(t, "squares %.17g on %d threads, %.17g on one", squares_again, threads,
                       squares);
    }
}

static void all_shapes(check *t, int type)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !t->skipped; i++)
        /* kind 0: forward; 1: gradient of the input; 2: gradient of the weight */
        for (int kind = 0; kind < 3 && !t->skipped; kind++)
            for (int options = (int)i % 2; options < 8 && !t->skipped; options += 1 + (i > 4))
                one(t, &shapes[i], kind == 2, kind == 1, options | type);
}

static void against_ref(check *t) { all_shapes(t, 0); }

static int has_bf16(check *t)
{
    if (!sgt_gemm_has_bf16()) check_skip(t, "this CPU multiplies no bfloat16");
    return !t->skipped;
}

static void bf16_against_ref(check *t)
{
    if (has_bf16(t)) all_shapes(t, BF16);
}

static void amx_against_ref(check *t)
{
    if (amx_begin(t)) all_shapes(t, BF16);
}

static void define(check *t, int bf16)
{
    const sgt_gemm_shape s = {2, 2, 3, 0, 0, 3, 2, 2, 1, 1, bf16, NULL, 0},
                         transposed = {2, 2, 3, 1, 1, 2, 3, 2, 0, 0, bf16, NULL, 0};
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12}, bias[] = {100, 200};
    float a_t[] = {1, 4, 2, 5, 3, 6}, b_t[] = {7, 9, 11, 8, 10, 12};
    float c[] = {1000, 2000, 3000, 4000}, *wide[] = {a, b, a_t, b_t};
    const void *in[4];
    for (int i = 0; i < 4; i++) in[i] = bf16 ? check_as_bf16(t, wide[i], 6) : wide[i];
    check_at(t, "2 x 2 x 3%s", bf16 ? ", bf16" : "");
    sgt_gemm_ref(&s, in[0], in[1], bias, c);
    check_equal(t, "C", c, (const float[]){1158, 2264, 3239, 4354}, 4);
    sgt_gemm_ref(&transposed, in[2], in[3], NULL, c);
    check_equal(t, "C from transposed", c, (const float[]){58, 64, 139, 154}, 4);
}

static void definition(check *t) { define(t, 0); }
static void bf16_definition(check *t) { define(t, 1); }

static void bench_at(check *t, const char *name, size_t m, size_t n, size_t k, int trans_a,
                     int trans_b, int type)
{
    product p = draw(t, &(shape){m, n, k}, trans_a, trans_b, type);
    sgt_gemm *g;
    sgt_error err;
    char shape_name[64];
    p.s.scratch = check_scratch(t, sgt_gemm_scratch(1) / sizeof(float));
    if (sgt_gemm_plan(&g, &p.s, 1, &err) < 0) {
        check_skip(t, err.text);
        return;
    }
    snprintf(shape_name, sizeof shape_name, "%s %zux%zux%zu", name, m, n, k);
    for (bench_start(t); bench_next(t);) sgt_gemm_run(g, p.in[0], p.in[1], p.bias, p.c);
    bench_report(t, shape_name, 0, 2.0 * (double)m * (double)n * (double)k);
    sgt_gemm_free(g);
}

static void bench_all(check *t, int type)
{
    bench_at(t, "y=xW", 4096, 768, 768, 0, 0, type);
    bench_at(t, "dx=dyW'", 4096, 768, 768, 0, 1, type);
    bench_at(t, "dW=x'dy", 768, 3072, 4096, 1, 0, type);
    bench_at(t, "logits", 512, 50304, 256, 0, 1, type);
    bench_at(t, "dx=dlW", 512, 256, 50304, 0, 0, type);
    bench_at(t, "dW=dl'x", 50304, 256, 512, 1, 0, type);
    bench_at(t, "y=xW", 256, 768, 768, 0, 0, type);
}

static void bench(check *t)
{
    if (strcmp(t->level, "ref") != 0) bench_all(t, 0); /* Skip ref: it takes minutes. */
}

static void bf16_bench(check *t)
{
    if (strcmp(t->level, "ref") != 0 && has_bf16(t)) bench_all(t, BF16);
}

const kernel_case cases_gemm[] = {
    {"gemm", definition, against_ref, bench, "fast"},
    {"gemm", definition, against_ref, bench, "avx2"},
    {"gemm", definition, against_ref, bench, "plain"},
    {"gemm_bf16", bf16_definition, bf16_against_ref, bf16_bench, "fast"},
    {"gemm_bf16", bf16_definition, amx_against_ref, NULL, "amx"},
    {0}};
