/* head.c: tests the output head with its softmax and loss. The shapes exceed the kernel's blocks: a
 * part of the columns (at most 512), six rows, and a step of k in rows and in C. Logits are as
 * large as 400, so the parts of a row differ by many orders of magnitude. Some targets are ignored,
 * and one target is in a part whose probability is negligible. */
#include "tests/kernels/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/kernels/amx.h"

typedef struct head_shape {
    size_t n, V, C;
    float size; /* largest absolute weight; logits are at most size * C */
} head_shape;

static const head_shape shapes[] = {
    {1, 1, 2, 1},      {1, 5, 4, 1},      {7, 64, 6, 1},    {13, 511, 8, 1},     {12, 513, 10, 30},
    {5, 1031, 16, 25}, {21, 1537, 34, 1}, {3, 700, 520, 1}, {33, 257, 770, .1f}, {801, 70, 18, 1}};

typedef struct drawn {
    head_shape at;
    float *x, *w;
    const void *in[2];
    int32_t *targets;
    float *loss, *dx, *dw, *old;
    double *want_dx, *want_dw;
    uint8_t *greedy;
    double lead; /* largest logit of row 1, which is its target's, minus the second largest */
} drawn;

/* Make all weights small except those of columns 512 .. 1023, and set the first row's target to the
 * last column. */
static void shrink(drawn *d)
{
    for (size_t i = 0; i < d->at.V * d->at.C; i++)
        if (i < 512 * d->at.C || i >= 1024 * d->at.C) d->w[i] *= 0x1p-10f;
    d->targets[0] = (int32_t)d->at.V - 1;
}

static double logit(const drawn *d, size_t row, size_t j)
{
    double l = 0;
    for (size_t c = 0; c < d->at.C; c++)
        l += (double)d->x[row * d->at.C + c] * d->w[j * d->at.C + c];
    return l;
}

/* Set the target of row 1 to its largest logit, and set d->lead. */
static void draw_largest(drawn *d)
{
    double largest = -INFINITY, second = -INFINITY;
    for (size_t j = 0; j < d->at.V; j++) {
        double l = logit(d, 1, j);
        if (l > largest) second = largest, largest = l, d->targets[1] = (int32_t)j;
        else if (l > second) second = l;
    }
    d->lead = largest - second;
}

/* Draw the inputs for a shape. The first row's target has the lowest logit, or is in a last part of
 * small weights, whose logits are far below the largest. */
static drawn draw(check *t, const head_shape *s, int bf16)
{
    drawn d = {
        .at = *s, .x = check_random(t, s->n * s->C, 1), .w = check_random(t, s->V * s->C, s->size)};
    int negligible = s->V > 1024 && s->size > 20;
    d.targets = check_ids(t, s->n, (int32_t)s->V);
    if (negligible) shrink(&d);
    d.in[0] = bf16 ? check_as_bf16(t, d.x, s->n * s->C) : d.x;
    d.in[1] = bf16 ? check_as_bf16(t, d.w, s->V * s->C) : d.w;
    if (s->n > 3) d.targets[3] = -1;
    double lowest = INFINITY;
    for (size_t j = 0; j < s->V && !negligible; j++) {
        double l = logit(&d, 0, j);
        if (l < lowest) lowest = l, d.targets[0] = (int32_t)j;
    }
    if (s->n > 1) draw_largest(&d);
    d.greedy = check_bytes(t, s->n);
    d.loss = check_output(t, s->n), d.dx = check_output(t, s->n * s->C);
    d.old = check_random(t, s->V * s->C, 1);
    d.want_dx = check_doubles(t, s->n * s->C), d.want_dw = check_doubles(t, s->V * s->C);
    check_at(t, "n %zu, V %zu, C %zu, weights up to %g%s", s->n, s->V, s->C, s->size,
             bf16 ? ", bf16" : "");
    return d;
}

static void run(check *t, const drawn *d, int bf16, double scale, int threads, float *dw, int add)
{
    sgt_head h = {.n = d->at.n, .V = d->at.V, .C = d->at.C, .bf16 = bf16, .threads = threads};
    if (!(scale > 0)) h.greedy = d->greedy;
    h.memory = check_scratch(t, sgt_head_memory(&h) / sizeof(float) + 16);
    h.scratch = check_scratch(t, sgt_gemm_scratch(threads) / sizeof(float));
    double sum = 0;
    double got = sgt_head_run(&h, d->at.n, d->in[0], d->x, d->in[1], d->targets, scale, d->loss,
                              d->dx, dw, add);
    for (size_t i = 0; i < d->at.V * d->at.C && scale > 0; i++)
        sum += (double)dw[i] * (double)dw[i];
    if (scale > 0 && isfinite(sum) && !(fabs(got - sum) <= 25 * UNIT * sum))
        check_fail(t, "dw's squares sum to %.9g, not %.9g", got, sum);
    if (!(scale > 0) && got != 0) check_fail(t, "squares of no dw: %g", got);
}

/* Error bounds, relative to the sizes of the numbers from which the results are computed.
 *   logit: `off`, (C + 2) u |terms|
 *   probability: `share`. exp and the factor 1/sum bring the logits' error, at most twice. A
 *     probability far below the largest one adds a few roundings for its power of 2. Each number of
 *     dlogits, and x times its factor, is rounded to the products' format.
 *   dx and dw: each number of dlogits is at most `scale`, and those of a row add up to at most 2
 *     scale in absolute value. If each has a relative error of `share`, so do the sums. */
static void compare(check *t, const drawn *d, int bf16, double scale, const float *dw, int add)
{
    size_t n = d->at.n, V = d->at.V, C = d->at.C;
    double size = d->at.size, off = (double)(C + 2) * UNIT * size * (double)C;
    double share = 2 * off + 0x1p-21 + (bf16 ? 0x1p-8 : 0) + (double)(V + n) * UNIT;
    double *bound = check_doubles(t, V * C > n * C ? V * C : n * C);
    float *want = check_output(t, n), *wide = check_output(t, V * C > n * C ? V * C : n * C);
    sgt_head_ref(n, V, C, d->x, d->w, d->targets, scale, want, d->want_dx, d->want_dw);
    for (size_t i = 0; i < n; i++)
        bound[i] = 2 * off + (fabs((double)want[i]) + 20 + size * (double)C) * 4 * UNIT;
    check_close(t, "loss", d->loss, want, bound, n);
    if (!(scale > 0)) return;
    for (size_t i = 0; i < n * C; i++)
        wide[i] = (float)d->want_dx[i], bound[i] = 2 * scale * size * share;
    check_close(t, "dx", d->dx, wide, bound, n * C);
    for (size_t i = 0; i < V * C; i++) {
        wide[i] = (float)(d->want_dw[i] + (add ? (double)d->old[i] : 0));
        bound[i] = (double)n * scale * share + 2 * UNIT;
    }
    check_close(t, "dw", dw, wide, bound, V * C);
}

static void one(check *t, const head_shape *s, int bf16)
{
    drawn d = draw(t, s, bf16);
    float *dw = check_output(t, s->V * s->C), *added = check_copy(t, d.old, s->V * s->C);
    run(t, &d, bf16, .5, 1, dw, 0);
    compare(t, &d, bf16, .5, dw, 0);
    check_same_bits(t, "dw", dw, s->V * s->C);
    check_same_bits(t, "dx", d.dx, s->n * s->C);
    const float *first = check_copy(t, d.dx, s->n * s->C), *loss = check_copy(t, d.loss, s->n);
    run(t, &d, bf16, .5, 3, added, 1);
    compare(t, &d, bf16, .5, added, 1);
    check_equal(t, "dx on 3 threads", d.dx, first, s->n * s->C);
    run(t, &d, bf16, 0, 2, NULL, 0); /* only the loss: dx is not written */
    check_equal(t, "loss alone", d.loss, loss, s->n);
    check_equal(t, "dx after the loss alone", d.dx, first, s->n * s->C);
    double off = (double)(s->C + 2) * UNIT * s->size * (double)s->C;
    if (s->n > 1 && d.lead > 2 * off && d.greedy[1] != 1)
        check_fail(t, "the largest logit is not said to be that");
    if (s->V > 700 && d.greedy[0] != 0) check_fail(t, "the lowest logit is said to be the largest");
}

static void nan_is_seen(check *t, int bf16)
{
    static const head_shape s = {7, 700, 8, 1};
    for (int bad = 0; bad < 2; bad++) {
        drawn d = draw(t, &s, bf16);
        float value = bad ? INFINITY : NAN;
        d.targets[1] = 5;
        if (bf16) t->ref->to_bf16((uint16_t *)(uintptr_t)d.in[1] + 600 * 8, &value, 1);
        else d.w[600 * 8] = value;
        run(t, &d, bf16, 0, 2, NULL, 0);
        for (size_t i = 0; i < s.n; i++)
            if (i != 3 && (bad == 0 || d.x[i * 8] > 0) && !isnan(d.loss[i]))
                check_fail(t, "row %zu of logits has a %g, its loss is %g", i, (double)value,
                           (double)d.loss[i]);
    }
}

static void all(check *t, int bf16)
{
    sgt_head h = {.n = 1, .V = 8, .C = 8, .bf16 = bf16, .threads = 1};
    if (strcmp(t->level, "amx") == 0 && !amx_begin(t)) return;
    if (!sgt_head_possible(&h)) {
        if (bf16) check_skip(t, "this CPU has neither vectors nor tiles of bfloat16");
        else check_fail(t, "no head of our own in float32");
        return;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) one(t, &shapes[i], bf16);
    nan_is_seen(t, bf16);
}

static void f32_against_ref(check *t) { all(t, 0); }
static void bf16_against_ref(check *t) { all(t, 1); }

/* Known result: the two logits 0 and log 3 have the probabilities 1/4 and 3/4. */
static void definition(check *t)
{
    const float x[] = {1}, w[] = {0, 1.09861229f};
    double dx[1], dw[2];
    float loss[1];
    check_at(t, "two logits");
    sgt_head_ref(1, 2, 1, x, w, (const int32_t[]){1}, 2, loss, dx, dw);
    check_near(t, "loss", loss[0], -log(.75), 4 * UNIT);
    check_near(t, "dw[0]", dw[0], .5, 4 * UNIT);
    check_near(t, "dw[1]", dw[1], -.5, 4 * UNIT);
    check_near(t, "dx", dx[0], -.5 * log(3), 4 * UNIT);
}

static void bench_at(check *t, int bf16, size_t n, size_t V, size_t C)
{
    if (strcmp(t->level, "ref") == 0) return;
    char shape[64];
    const head_shape s = {n, V, C, .02f};
    drawn d = {.at = s, .x = check_random(t, n * C, 1), .w = check_random(t, V * C, .02f)};
    d.in[0] = bf16 ? check_as_bf16(t, d.x, n * C) : d.x,
    d.in[1] = bf16 ? check_as_bf16(t, d.w, V * C) : d.w;
    d.targets = check_ids(t, n, (int32_t)V), d.loss = check_output(t, n),
    d.dx = check_output(t, n * C);
    float *dw = check_output(t, V * C);
    sgt_head h = {.n = n, .V = V, .C = C, .bf16 = bf16, .threads = 1};
    h.memory = check_scratch(t, sgt_head_memory(&h) / sizeof(float) + 16);
    h.scratch = check_scratch(t, sgt_gemm_scratch(1) / sizeof(float));
    for (bench_start(t); bench_next(t);)
        sgt_head_run(&h, n, d.in[0], d.x, d.in[1], d.targets, 1, d.loss, d.dx, dw, 0);
    snprintf(shape, sizeof shape, "%zu x %zu x %zu", n, V, C);
    bench_report(t, shape, 0, 6.0 * (double)n * (double)V * (double)C);
}

static void f32_bench(check *t)
{
    bench_at(t, 0, 256, 50257, 256), bench_at(t, 0, 256, 50257, 768);
}
static void bf16_bench(check *t)
{
    bench_at(t, 1, 512, 50257, 256), bench_at(t, 1, 256, 50257, 768);
}

const kernel_case cases_head[] = {{"head", definition, f32_against_ref, f32_bench, "fast"},
                                  {"head", definition, f32_against_ref, f32_bench, "avx2"},
                                  {"head", definition, f32_against_ref, f32_bench, "plain"},
                                  {"head_bf16", definition, bf16_against_ref, bf16_bench, "fast"},
                                  {"head_bf16", definition, bf16_against_ref, NULL, "amx"},
                                  {0}};
