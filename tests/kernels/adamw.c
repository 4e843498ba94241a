/* adamw.c: tests one AdamW update of parameters and moments. */
#include "kernels/moments.h"
#include "tests/kernels/bounds.h"

#include <string.h>

static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 133, 1021};

static void update(check *t, size_t n, const sgt_adamw *a)
{
    const float *g = check_random(t, n, 3);
    float *want[3], *got[3], *old[3];
    double *bound[3];
    for (int i = 0; i < 3; i++) {
        old[i] = check_random(t, n, 1);
        for (size_t j = 0; i == 2 && j < n; j++)
            old[2][j] = check_number(t, 5) ? fabsf(old[2][j]) : 0;
        want[i] = check_copy(t, old[i], n), got[i] = check_copy(t, old[i], n),
        bound[i] = check_doubles(t, n);
    }
    check_at(t, "n %zu, decay %g, gradient times %g", n, (double)a->decay, (double)a->grad_scale);
    uint16_t *copy = n ? check_bytes(t, (n + 1) * sizeof *copy) : NULL;
    uint16_t *rounded = check_bytes(t, (n + 1) * sizeof *copy);
    t->ref->adamw(want[0], want[1], want[2], g, n, a, NULL);
    /* If n is odd, the copy begins at an odd element. */
    t->k->adamw(got[0], got[1], got[2], g, n, a, copy ? copy + n % 2 : NULL);
    adamw_bounds(bound, (const float *const *)old, g, n, a, 0);
    check_close(t, "p", got[0], want[0], bound[0], n);
    check_close(t, "m", got[1], want[1], bound[1], n);
    check_close(t, "v", got[2], want[2], bound[2], n);
    check_same_bits(t, "p", got[0], n);
    t->ref->to_bf16(rounded, got[0], n);
    if (copy && memcmp(copy + n % 2, rounded, n * sizeof *copy) != 0)
        check_fail(t, "the copy is not p in bfloat16");
}

/* Test copies of parameters with arbitrary 32 bits: NaNs, subnormal numbers, numbers halfway
 * between two bfloat16 numbers. An update with learning rate 0 does not change the parameters, so
 * the copy must have their rounded values. */
static void copies(check *t, size_t n)
{
    const sgt_adamw still = {
        .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .grad_scale = 1, .c1 = 1, .c2 = 1};
    float *p = check_output(t, n), *m = check_random(t, n, 1), *v = check_random(t, n, 1),
          *g = check_random(t, n, 1);
    uint16_t *copy = check_bytes(t, n * sizeof *copy + 64), *at = copy,
             *rounded = check_bytes(t, n * sizeof *copy);
    while ((uintptr_t)at % 64) at++; /* begin at a cache line */
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)check_number(t, UINT64_C(1) << 32);
        if (i % 5 == 0) bits = (bits & 0xffff0000) | 0x8000;
        if (i % 7 == 0) bits &= 0x807fffff;
        if (i % 11 == 0) bits |= 0x7f800000;
        memcpy(p + i, &bits, sizeof bits);
        v[i] = fabsf(v[i]);
    }
    check_at(t, "%zu parameters of any bits", n);
    t->k->adamw(p, m, v, g, n, &still, at);
    t->ref->to_bf16(rounded, p, n);
    if (memcmp(at, rounded, n * sizeof *at) != 0) check_fail(t, "the copy is not p in bfloat16");
}

static const sgt_adamw settings[] = {
    {.lr = 3e-4f,
     .beta1 = 0.9f,
     .beta2 = 0.95f,
     .eps = 1e-8f,
     .decay = 0.1f,
     .grad_scale = 0.37f,
     .c1 = 1 - 0.9,
     .c2 = 1 - 0.95},
    {.lr = 1e-2f,
     .beta1 = 0.9f,
     .beta2 = 0.999f,
     .eps = 1e-8f,
     .decay = 0,
     .grad_scale = 1,
     .c1 = 0.995,
     .c2 = 0.9},
    {.lr = 0.5f,
     .beta1 = 0.5f,
     .beta2 = 0.5f,
     .eps = 1e-3f,
     .decay = 0.5f,
     .grad_scale = 1e-4f,
     .c1 = 0.75,
     .c2 = 0.75},
};

static void against_ref(check *t)
{
    copies(t, 4133);
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (size_t a = 0; a < sizeof sizes / sizeof *sizes; a++) update(t, sizes[a], &settings[s]);
}

/* Known result: the first update moves a parameter by lr against the sign of its gradient, whatever
 * the gradient's size, and weight decay moves the parameter towards 0. */
static void definition(check *t)
{
    float p[] = {1, 1, -1}, m[] = {0, 0, 0}, v[] = {0, 0, 0};
    const float g[] = {8, -0.25f, 1e-3f};
    const sgt_adamw a = {.lr = 0.125f,
                         .beta1 = 0.5f,
                         .beta2 = 0.75f,
                         .decay = 0.5f,
                         .grad_scale = 2,
                         .c1 = 0.5,
                         .c2 = 0.25};
    check_at(t, "first update");
    uint16_t copy[3];
    t->ref->adamw(p, m, v, g, 3, &a, copy);
    const double want[] = {1 - 0.125 - 0.0625, 1 + 0.125 - 0.0625, -1 - 0.125 + 0.0625};
    for (int i = 0; i < 3; i++) check_near(t, "p", p[i], want[i], 2 * UNIT);
    if (copy[0] != 0x3f50) check_fail(t, "0.8125 is %#x in bfloat16", copy[0]);
    check_near(t, "m", m[0], 8, 0);  /* half of 16 */
    check_near(t, "v", v[0], 64, 0); /* a quarter of 256 */
    const sgt_adamw second = {.lr = 0.125f,
                              .beta1 = 0.5f,
                              .beta2 = 0.75f,
                              .eps = 7,
                              .grad_scale = 1,
                              .c1 = 0.75,
                              .c2 = 0.4375};
    float q = 1, m1 = 8, v1 = 64, none = 0;
    check_at(t, "second update, gradient 0");
    t->ref->adamw(&q, &m1, &v1, &none, 1, &second, NULL);
    check_near(t, "m", m1, 4, 0);
    check_near(t, "v", v1, 48, 0);
    check_near(t, "p", q, 1 - 0.125 * (4 / 0.75) / (sqrt(48 / 0.4375) + 7), UNIT);
}

/* ---- moments in bfloat16 ---- */

static float widened(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Test adamw_bf16. Its update must have the bits of adamw's update of the moments widened to
 * float32. Moments must be stored as moments.h defines: a float between two bfloat16 numbers is
 * rounded to one of the two, at random. */
static void update_bf16(check *t, size_t n, uint64_t first)
{
    const sgt_adamw *a = &settings[1];
    const sgt_random r = {.seed = 7, .draw = sgt_moments_draw(5), .first = first};
    const float *g = check_random(t, n, 3), *start = check_random(t, n, 1);
    float *p = check_copy(t, start, n), *want = check_copy(t, start, n);
    float *wide[2] = {check_random(t, n, 1), check_random(t, n, 1)};
    uint16_t *kept[2];
    for (int i = 0; i < 2; i++) {
        kept[i] = check_bytes(t, n * sizeof **kept);
        for (size_t j = 0; j < n; j++) {
            if (i == 1) wide[1][j] = check_number(t, 5) ? fabsf(wide[1][j]) : 0;
            uint32_t bits;
            memcpy(&bits, &wide[i][j], sizeof bits);
            kept[i][j] = (uint16_t)(bits >> 16);
            wide[i][j] = widened(kept[i][j]);
        }
    }
    uint16_t *copy = check_bytes(t, n * sizeof *copy), *rounded = check_bytes(t, n * sizeof *copy);
    check_at(t, "n %zu, from element %llu", n, (unsigned long long)first);
    t->k->adamw(want, wide[0], wide[1], g, n, a, rounded);
    t->k->adamw_bf16(p, kept[0], kept[1], g, n, a, &r, copy);
    if (memcmp(p, want, n * sizeof *p) != 0) check_fail(t, "p is not adamw's");
    if (memcmp(copy, rounded, n * sizeof *copy) != 0) check_fail(t, "the copy is not adamw's");
    for (size_t j = 0; j < n; j++)
        for (int i = 0; i < 2; i++) {
            uint64_t e = first + j;
            uint32_t bits, key = sgt_moments_key(r.seed, r.draw, e),
                           random = sgt_moments_random(key, e) >> 16 * i & 0xffff;
            memcpy(&bits, &wide[i][j], sizeof bits);
            if (kept[i][j] != (uint16_t)((bits + random) >> 16))
                check_fail(t, "moment %d of element %zu is %#x", i + 1, j, kept[i][j]);
        }
}

static void bf16_against_ref(check *t)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t first = 0; first < 2; first++) update_bf16(t, sizes[i], first);
    update_bf16(t, 133, (UINT64_C(1) << 32) - 47); /* keys change within */
}

/* A first moment of 1 changes by 1/1024 per step, which is a quarter of bfloat16's spacing above
 * 1/2. If rounded to nearest, the moment would not change. If rounded at random, it changes by
 * 1/1024 on average. The mean of 4096 elements must be within five standard deviations of that, 5 *
 * unit/2 / sqrt(4096). Infinities and NaNs must not change. */
static void bf16_definition(check *t)
{
    enum { N = 4096 };
    float p[N] = {0}, g[N] = {0};
    uint16_t m[N], v[N] = {0};
    const double unit = 1.0 / 256;
    const sgt_adamw a = {
        .beta1 = 1 - 1.0f / 1024, .beta2 = 0.5f, .eps = 1, .grad_scale = 1, .c1 = 1, .c2 = 1};
    const sgt_random r = {.seed = 1, .draw = sgt_moments_draw(0)};
    check_at(t, "a moment that shrinks by a 1024th");
    for (size_t i = 0; i < N; i++) m[i] = 0x3f80;
    t->ref->adamw_bf16(p, m, v, g, N, &a, &r, NULL);
    double sum = 0;
    for (size_t i = 0; i < N; i++) sum += (double)widened(m[i]);
    check_near(t, "the mean", sum / N, 1 - 1.0 / 1024, 5 * unit / 2 / 64);
    const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffffffff};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (sgt_moment_rounded(special[i], 0xffff) != special[i] >> 16)
            check_fail(t, "%#x is rounded", (unsigned)special[i]);
}

static void bf16_bench(check *t)
{
    size_t n = 1 << 22;
    float *p = check_random(t, n, 1), *g = check_random(t, n, 1);
    uint16_t *m = check_bytes(t, n * sizeof *m), *v = check_bytes(t, n * sizeof *v),
             *copy = check_bytes(t, n * sizeof *copy);
    memset(m, 0, n * sizeof *m), memset(v, 0, n * sizeof *v);
    const sgt_random r = {.seed = 1, .draw = sgt_moments_draw(0)};
    for (bench_start(t); bench_next(t);) t->k->adamw_bf16(p, m, v, g, n, &settings[0], &r, copy);
    bench_report(t, "4194304, and in bfloat16", 22.0 * (double)n, 0);
}

static void bench(check *t)
{
    size_t n = 1 << 22;
    float *p = check_random(t, n, 1), *m = check_random(t, n, 1), *v = check_random(t, n, 1),
          *g = check_random(t, n, 1);
    for (size_t i = 0; i < n; i++) v[i] = fabsf(v[i]);
    for (bench_start(t); bench_next(t);) t->k->adamw(p, m, v, g, n, &settings[0], NULL);
    bench_report(t, "4194304", 28.0 * (double)n, 0);
    uint16_t *copy = check_bytes(t, n * sizeof *copy);
    for (bench_start(t); bench_next(t);) t->k->adamw(p, m, v, g, n, &settings[0], copy);
    bench_report(t, "4194304, and in bfloat16", 30.0 * (double)n, 0);
}

const kernel_case cases_adamw[] = {
    {"adamw", definition, against_ref, bench, NULL},
    {"adamw_bf16", bf16_definition, bf16_against_ref, bf16_bench, NULL},
    {0}};
