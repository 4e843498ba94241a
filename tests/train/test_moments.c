/* test_moments.c: AdamW's moments in bfloat16 (--optimizer-state bf16): the same bits for any
 * number of threads, deferred or not; and stored and loaded again. tests/step/muon.c moves
 * Muon's. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/fixture.h"

enum { STATES = 3, STEPS = 3 };

typedef struct numbers {
    float *of[STATES]; /* parameters and both moments */
} numbers;

static numbers numbers_of(sgt_backend *b, const sgt_model *m)
{
    numbers n;
    for (int i = 0; i < STATES; i++) n.of[i] = flat_state(b, m, (sgt_state)i);
    return n;
}

static void expect_same(const numbers *a, const numbers *b, const sgt_model *m, const char *what)
{
    for (int i = 0; i < STATES; i++)
        cr_expect(memcmp(a->of[i], b->of[i], sgt_model_floats(m) * sizeof(float)) == 0,
                  "%s: state %d has other bits", what, i);
}

static void forget(numbers *n)
{
    for (int i = 0; i < STATES; i++) free(n->of[i]);
}
SCOPED_STRUCT(numbers, forget)

static sgt_backend *opened(const fixture *f, int threads, int no_overlap)
{
    sgt_backend_options o = f->options;
    o.optim.bf16_moments = 1;
    o.threads = threads;
    o.no_overlap = no_overlap;
    return fixture_open(f, &o);
}

/* Rounding changes m by at most 2^-7 of itself and the root of v by 2^-8, in each step before the
 * last update: with a third such error for sums whose terms cancel, 3.5 % of the way. */
static void expect_near_float32(const fixture *f, const numbers *got)
{
    double worst = 0, moved = 0;
    for (size_t i = 0; i < sgt_model_floats(&f->model); i++) {
        worst = fmax(worst, fabs((double)got->of[0][i] - f->final[i]));
        moved = fmax(moved, fabs((double)f->initial[i] - f->final[i]));
    }
    cr_expect_leq(worst, 3 * (0x1p-7 + 0x1p-8) * moved, "parameters differ by %g and moved by %g",
                  worst, moved);
}

static void bits_of(const char *name)
{
    scoped(fixture) f;
    fixture_load(&f, name, SGT_GELU_TANH);
    scoped(numbers) first = {{0}};
    for (int i = 0; i < 3; i++) { /* one thread; two, deferred; two, at once */
        scoped(sgt_backend) *b = opened(&f, i ? 2 : 1, i == 2);
        for (uint64_t s = 0; s < STEPS; s++) fixture_step(&f, b, s);
        numbers n = numbers_of(b, &f.model);
        if (i) expect_same(&first, &n, &f.model, i == 2 ? "updated at once" : "two threads");
        else expect_near_float32(&f, &n);
        if (i) forget(&n);
        else first = n;
    }
}

Test(moments, threads_and_deferring_do_not_change_bits) { bits_of("tiny_tanh"); }

Test(moments, are_in_bf16)
{
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = opened(&f, 1, 0);
    fixture_step(&f, b, 0);
    scoped(numbers) n = numbers_of(b, &f.model);
    size_t set = 0, lower = 0;
    for (int i = 1; i < STATES; i++)
        for (size_t j = 0; j < sgt_model_floats(&f.model); j++) {
            uint32_t bits;
            memcpy(&bits, &n.of[i][j], sizeof bits);
            set += bits != 0;
            lower += (bits & 0xffff) != 0;
        }
    cr_expect_gt(set, 1000);
    cr_expect_eq(lower, 0);
}

/* Set the parameters and moments of a backend to those of another: both continue with the same
 * bits. The options are the fixture's. */
static void continues(const fixture *f)
{
    sgt_backend_options o = f->options;
    o.threads = 1;
    scoped(sgt_backend) *whole = fixture_open(f, &f->options), *later = fixture_open(f, &o);
    for (uint64_t s = 0; s < 2; s++) fixture_step(f, whole, s);
    numbers n = numbers_of(whole, &f->model);
    for (int i = 0; i < STATES; i++) put_flat(later, &f->model, (sgt_state)i, n.of[i]);
    numbers loaded = numbers_of(later, &f->model);
    expect_same(&n, &loaded, &f->model, "loaded");
    forget(&n);
    forget(&loaded);
    cr_expect_eq(fixture_step(f, whole, 2), fixture_step(f, later, 2));
    scoped(numbers) a = numbers_of(whole, &f->model), b = numbers_of(later, &f->model);
    expect_same(&a, &b, &f->model, "continued");
}

Test(moments, stored_and_loaded_they_continue_with_the_same_bits)
{
    static const sgt_precision precisions[] = {SGT_PRECISION_FP32, SGT_PRECISION_BF16,
                                               SGT_PRECISION_FP16};
    for (size_t k = 0; k < sizeof precisions / sizeof *precisions; k++) {
        scoped(fixture) f;
        fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
        f.options.optim.bf16_moments = 1;
        f.options.precision = precisions[k];
        continues(&f);
    }
}
