/* test_step.c: what a backend on the CPU refuses. tests/step compares its steps with PyTorch and with
 * themselves, divided in other ways. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/train/fixture.h"

/* Too large a model is refused before its memory is used. Otherwise the system would kill the
 * process. */
Test(step, what_does_not_fit_costs_nothing)
{
    sgt_backend *b;
    sgt_error err;
    struct rusage before, after;
    sgt_backend_options o = {.batch = 8, .seq = 512, .threads = 1};
    cr_assert_eq(sgt_model_named(&o.model, "1024x32768x16", &err), 0, "%s", err.text);
    getrusage(RUSAGE_SELF, &before);
    cr_assert_eq(sgt_cpu_backend_open(&b, &o, &err), SGT_ENOMEM);
    getrusage(RUSAGE_SELF, &after);
    cr_expect(strstr(err.text, "the model and its step need "), "%s", err.text);
    cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 100 << 10, "%ld KiB were touched",
                 after.ru_maxrss - before.ru_maxrss);
}

Test(step, calls_out_of_order_are_refused)
{
    fixture f;
    sgt_error err;
    sgt_step_metrics m;
    float x;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    sgt_backend *b = fixture_backend(&f, f.batch, 1);
    cr_expect_eq(b->update(b, 0, 1e-3, &err), SGT_EUSAGE);
    cr_expect_str_eq(err.text, "backend: update without a micro-step");
    fixture_micro_step(&f, b, 0, f.batch, 1.0 / 64);
    cr_expect_eq(b->eval(b, NULL, NULL, NULL, &err), SGT_EUSAGE);
    cr_expect_str_eq(err.text, "backend: evaluation within a step");
    cr_assert_eq(b->update(b, 7, 1e-3, &err), 0);
    cr_expect_eq(b->metrics(b, 6, &m, &err), SGT_EUSAGE);
    cr_expect_str_eq(err.text, "backend: metrics of step 6 are gone");
    cr_expect_eq(b->get(b, SGT_PARAMETERS, 0, 16384, 1, &x, &err), SGT_EUSAGE);
    cr_expect_str_eq(err.text, "backend: floats 16384 to 16385 of wte.weight, which has 16384");
    cr_expect_eq(b->get(b, SGT_PARAMETERS, 1000, 0, 1, &x, &err), SGT_EUSAGE);
    cr_expect_str_eq(err.text, "backend: no tensor 1000");
    cr_expect_eq(b->get(b, (sgt_state)9, 0, 0, 1, &x, &err), SGT_EUSAGE);
    cr_expect_str_eq(err.text, "backend: no state 9");
    b->close(b);
    fixture_free(&f);
}
