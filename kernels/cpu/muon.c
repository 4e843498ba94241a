/* muon.c: Muon's update (kernels/muon.h), computed with our own matrix products. These take nearly
 * all of the time: 10 n rows columns + 5 n^3 multiply-adds, where n is the smaller of rows and
 * columns. All other work is done in loops over the elements. Threads process PIECE elements at a
 * time, whatever the number of threads, so that sums always have the same bits. */
#include <math.h>
#include <stdlib.h>

#include "loader/base/memory.h"
#include "kernels/muon.h"

enum { PIECE = 16384 }; /* number of elements that a thread processes at a time */

struct sgt_muon {
    sgt_muon_shape s;
    int threads;
    /* n: the smaller of rows and columns; count: number of elements of the matrix */
    size_t n, count;
    /* Matrix products, named after their results:
     *   gram     A = X X', or X'X if X has more rows than columns, so that A is small
     *   square   A A
     *   product  B X, or X B if X has more rows than columns */
    sgt_gemm *gram, *square, *product;
    float *x, *y; /* (rows, columns) */
    float *a, *b; /* (n, n) */
    /* bfloat16 copies for matrix products: x16 is the copy of x, a16 the copy of a or b */
    uint16_t *x16, *a16;
    double *squares; /* sums of the squares of x, one sum for every PIECE successive elements */
};

static size_t pieces_of(size_t n) { return (n + PIECE - 1) / PIECE; }

static void lay_out(sgt_muon *u, sgt_arena *a)
{
    u->n = u->s.rows < u->s.columns ? u->s.rows : u->s.columns;
    u->count = u->s.rows * u->s.columns;
    u->x = sgt_arena_take(a, u->count, sizeof *u->x);
    u->y = sgt_arena_take(a, u->count, sizeof *u->y);
    u->a = sgt_arena_take(a, u->n * u->n, sizeof *u->a);
    u->b = sgt_arena_take(a, u->n * u->n, sizeof *u->b);
    u->squares = sgt_arena_take(a, pieces_of(u->count), sizeof *u->squares);
    if (!u->s.bf16) return;
    u->x16 = sgt_arena_take(a, u->count, sizeof *u->x16);
    u->a16 = sgt_arena_take(a, u->n * u->n, sizeof *u->a16);
}

size_t sgt_muon_memory(const sgt_muon_shape *s)
{
    sgt_arena measured = {0};
    sgt_muon u = {.s = *s};
    lay_out(&u, &measured);
    return measured.used;
}

static int plan_product(sgt_gemm **out, const sgt_muon *u, sgt_gemm_shape s, sgt_error *err)
{
    s.bf16 = u->s.bf16;
    s.scratch = u->s.scratch;
    return sgt_gemm_plan(out, &s, u->threads, err);
}

static int plan_products(sgt_muon *u, sgt_error *err)
{
    size_t n = u->n, rows = u->s.rows, columns = u->s.columns;
    int tall = rows > columns, rc;
    sgt_gemm_shape gram = {.m = n,
                           .n = n,
                           .k = tall ? rows : columns,
                           .trans_a = tall,
                           .trans_b = !tall,
                           .lda = columns,
                           .ldb = columns,
                           .ldc = n};
    sgt_gemm_shape square = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    sgt_gemm_shape product = {.m = rows,
                              .n = columns,
                              .k = n,
                              .lda = tall ? columns : n,
                              .ldb = tall ? n : columns,
                              .ldc = columns};
    if ((rc = plan_product(&u->gram, u, gram, err)) < 0 ||
        (rc = plan_product(&u->square, u, square, err)) < 0)
        return rc;
    return plan_product(&u->product, u, product, err);
}

int sgt_muon_plan(sgt_muon **out, const sgt_muon_shape *s, int threads, sgt_error *err)
{
    sgt_arena a = {.base = s->memory, .size = sgt_muon_memory(s)};
    sgt_muon *u = calloc(1, sizeof *u);
    if (!u) return sgt_fail_memory(err, "Muon");
    u->s = *s;
    u->threads = threads < 1 ? 1 : threads;
    lay_out(u, &a);
    int rc = plan_products(u, err);
    if (rc < 0) sgt_muon_free(u);
    else *out = u;
    return rc;
}

void sgt_muon_free(sgt_muon *u)
{
    if (!u) return;
    sgt_gemm_free(u->gram);
    sgt_gemm_free(u->square);
    sgt_gemm_free(u->product);
    free(u);
}

/* Round n newly computed elements of x to `format`, if `rounding` is set. If the matrix products
 * multiply bfloat16, also store the elements in `packed` as bfloat16. */
static void finish(const sgt_muon *u, float *x, uint16_t *packed, size_t n)
{
    const sgt_kernels *k = sgt_kernels_cpu();
    if (u->s.rounding) k->round_to(x, x, n, u->s.format);
    if (u->s.bf16) k->to_bf16(packed, x, n);
}

/* Compute out = f*x + h*y for arrays of n elements, and round the result with `finish`. `out` may
 * be the same array as x or y. */
static void mix(const sgt_muon *u, float *out, float f, const float *x, float h, const float *y,
                uint16_t *packed, size_t n)
{
#pragma omp parallel for num_threads(u->threads) schedule(static)
    for (size_t at = 0; at < n; at += PIECE) {
        size_t end = n - at < PIECE ? n : at + PIECE;
        for (size_t i = at; i < end; i++) out[i] = f * x[i] + h * y[i];
        finish(u, out + at, u->s.bf16 ? packed + at : NULL, end - at);
    }
}

/* Update the momentum m, and set u->x to the matrix with which Newton-Schulz begins: the step of
 * Nesterov momentum, divided by its norm. */
static void begin(const sgt_muon *u, float *m, const float *g, const sgt_muon_update *o)
{
    const float keep = (float)SGT_MUON_MOMENTUM, rest = (float)(1 - SGT_MUON_MOMENTUM);
    double sum = 0;
#pragma omp parallel for num_threads(u->threads) schedule(static)
    for (size_t at = 0; at < u->count; at += PIECE) {
        size_t end = u->count - at < PIECE ? u->count : at + PIECE;
        for (size_t i = at; i < end; i++) {
            float grad = rest * (g[i] * o->grad_scale);
            m[i] = keep * m[i] + grad;
            u->x[i] = grad + keep * m[i];
        }
        u->squares[at / PIECE] = sgt_kernels_cpu()->sum_squares(u->x + at, end - at);
    }
    for (size_t i = 0; i < pieces_of(u->count); i++) sum += u->squares[i];
    mix(u, u->x, (float)(1 / fmax(sqrt(sum), SGT_MUON_EPS)), u->x, 0, u->x, u->x16, u->count);
}

static void newton_schulz(const sgt_muon *u)
{
    const int bf16 = u->s.bf16;
    const void *x = bf16 ? (const void *)u->x16 : u->x, *a = bf16 ? (const void *)u->a16 : u->a,
               *b = bf16 ? (const void *)u->a16 : u->b;
    size_t nn = u->n * u->n;
    sgt_gemm_run(u->gram, x, x, NULL, u->a);
    if (u->s.rounding) mix(u, u->a, 1, u->a, 0, u->a, u->a16, nn);
    sgt_gemm_run(u->square, a, a, NULL, u->b);
    mix(u, u->b, (float)SGT_MUON_B, u->a, (float)SGT_MUON_C, u->b, u->a16, nn);
    int tall = u->s.rows > u->s.columns;
    sgt_gemm_run(u->product, tall ? x : b, tall ? b : x, NULL, u->y);
    mix(u, u->x, (float)SGT_MUON_A, u->x, 1, u->y, u->x16, u->count);
}

void sgt_muon_run(const sgt_muon *u, float *p, float *m, const float *g, const sgt_muon_update *o)
{
    size_t larger = u->s.rows > u->s.columns ? u->s.rows : u->s.columns;
    const float keep = (float)(1 - (double)o->lr * (double)o->decay),
                step = (float)((double)o->lr * .2 * sqrt((double)larger));
    begin(u, m, g, o);
    for (int i = 0; i < SGT_MUON_STEPS; i++) newton_schulz(u);
#pragma omp parallel for num_threads(u->threads) schedule(static)
    for (size_t at = 0; at < u->count; at += PIECE) {
        size_t end = u->count - at < PIECE ? u->count : at + PIECE;
        for (size_t i = at; i < end; i++) p[i] = keep * p[i] - step * u->x[i];
    }
}
