/* An update's greater part goes on beside the next step's products (train/cpu/update.c): whoever looks before that, or
 * puts something, finds what an update at once would have left. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static const char *const names[] = {"tiny_tanh",    "options_sgd",  "options_untied",
                                    "options_bf16", "options_fp16", "options_dropout"};

static void step(const fixture *f, sgt_backend *b, uint64_t s)
{
    sgt_step_metrics m;
    fixture_accumulate(f, b, s, f->batch);
    fixture_finish(f, b, s, &m);
}

static void same(const fixture *f, sgt_backend *a, sgt_backend *b, sgt_state what, const char *name)
{
    float *x = flat_state(a, &f->model, what), *y = flat_state(b, &f->model, what);
    cr_expect(memcmp(x, y, sgt_model_floats(&f->model) * sizeof *x) == 0, "%s: state %d: other bits", name, what);
    free(x);
    free(y);
}

/* One thread puts nothing off. */
Test(update, parameters_and_moments_are_there_as_soon_as_they_are_asked_for)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int what = SGT_PARAMETERS; what <= SGT_MOMENT2; what++) {
            fixture f;
            fixture_load(&f, names[i], SGT_GELU_TANH);
            sgt_backend *one = fixture_backend(&f, f.batch, 1), *two = fixture_backend(&f, f.batch, 2);
            for (uint64_t s = 0; s < 3; s++) {
                step(&f, one, s);
                step(&f, two, s);
                same(&f, one, two, (sgt_state)what, names[i]);
            }
            one->close(one);
            two->close(two);
            fixture_free(&f);
        }
}

Test(update, an_evaluation_has_the_new_parameters)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fixture f;
        double loss[2];
        uint64_t targets;
        fixture_load(&f, names[i], SGT_GELU_TANH);
        sgt_rows rows = {.tokens = f.tokens, .targets = f.y};
        for (int threads = 1; threads <= 2; threads++) {
            sgt_backend *b = fixture_backend(&f, f.batch, threads);
            step(&f, b, 0);
            cr_assert_eq(b->eval(b, &rows, &loss[threads - 1], &targets, NULL), 0);
            b->close(b);
        }
        cr_expect(memcmp(&loss[0], &loss[1], sizeof *loss) == 0, "%s: %.9g and %.9g", names[i], loss[0], loss[1]);
        fixture_free(&f);
    }
}

Test(update, what_is_put_after_it_stays)
{
    fixture f;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    sgt_backend *b = fixture_backend(&f, f.batch, 2), *fresh = fixture_backend(&f, f.batch, 2);
    step(&f, b, 0);
    put_flat(b, &f.model, SGT_PARAMETERS, f.initial);
    same(&f, b, fresh, SGT_PARAMETERS, "put");
    b->close(b);
    fresh->close(fresh);
    fixture_free(&f);
}
