/* test_update.c: most of an update is deferred, and done during the next step's matrix products
 * (train/cpu/update.c). Reading or writing the state before that gives the same as an update that
 * is done at once. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/train/fixture.h"

static const char *const names[] = {"tiny_tanh",    "options_sgd",  "options_untied",
                                    "options_bf16", "options_fp16", "options_dropout",
                                    "options_muon"};

static void same(const fixture *f, sgt_backend *a, sgt_backend *b, sgt_state what, const char *name)
{
    scoped_memory float *x = flat_state(a, &f->model, what), *y = flat_state(b, &f->model, what);
    cr_expect(memcmp(x, y, sgt_model_floats(&f->model) * sizeof *x) == 0,
              "%s: state %d: other bits", name, what);
}

/* With one thread nothing is deferred, so a run on one thread gives the expected state. */
Test(update, parameters_and_moments_are_there_as_soon_as_they_are_asked_for)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++) {
            scoped(fixture) f;
            fixture_load(&f, names[i], SGT_GELU_TANH);
            scoped(sgt_backend) *one = fixture_backend(&f, f.batch, 1),
                                *two = fixture_backend(&f, f.batch, 2);
            for (uint64_t s = 0; s < 3; s++) {
                fixture_step(&f, one, s);
                fixture_step(&f, two, s);
                same(&f, one, two, (sgt_state)what, names[i]);
            }
        }
}

Test(update, an_evaluation_has_the_new_parameters)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        scoped(fixture) f;
        double loss[2];
        uint64_t targets;
        fixture_load(&f, names[i], SGT_GELU_TANH);
        sgt_batch rows = {.inputs = f.x, .targets = f.y};
        for (int threads = 1; threads <= 2; threads++) {
            scoped(sgt_backend) *b = fixture_backend(&f, f.batch, threads);
            fixture_step(&f, b, 0);
            cr_assert_eq(b->eval(b, &rows, &loss[threads - 1], &targets, NULL), 0);
        }
        cr_expect(memcmp(&loss[0], &loss[1], sizeof *loss) == 0, "%s: %.9g and %.9g", names[i],
                  loss[0], loss[1]);
    }
}

Test(update, what_is_put_after_it_stays)
{
    scoped(fixture) f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = fixture_backend(&f, f.batch, 2),
                        *fresh = fixture_backend(&f, f.batch, 2);
    fixture_step(&f, b, 0);
    put_flat(b, &f.model, SGT_PARAMETERS, f.initial);
    same(&f, b, fresh, SGT_PARAMETERS, "put");
}

/* Gradients are multiplied by 2^80. Sums of their squares in float, as matrix products compute
 * them, would overflow. */
Test(update, a_norm_is_that_of_finite_gradients)
{
    scoped(fixture) f;
    double norm[2];
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    sgt_batch rows = {.inputs = f.x, .targets = f.y};
    for (int large = 0; large < 2; large++) {
        sgt_step_metrics m;
        scoped(sgt_backend) *b = fixture_backend(&f, f.batch, 2);
        cr_assert_eq(b->micro_step(b, 0, 0, &rows, large ? 0x1p80 : 1, NULL), 0);
        fixture_finish(&f, b, 0, &m);
        cr_expect_eq(m.skipped, 0);
        norm[large] = m.grad_norm;
    }
    cr_expect_float_eq(norm[1] / norm[0], 1, 5e-6, "%.9g, not %.9g", norm[1], norm[0]);
}
