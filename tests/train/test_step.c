/* test_step.c: what a backend on the CPU refuses. tests/step compares its steps with PyTorch and with
 * themselves, divided in other ways. */
#include <string.h>
#include <sys/resource.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"

/* Too large a model is refused before its memory is used. Otherwise the system would kill the
 * process. */
Test(step, what_does_not_fit_costs_nothing)
{
    sgt_backend *b;
    sgt_error err;
    struct rusage before, after;
    sgt_backend_options o = {.batch = 8, .seq = 512, .threads = 1};
    must(sgt_model_named(&o.model, "1024x32768x16", why));
    getrusage(RUSAGE_SELF, &before);
    cr_assert_eq(sgt_cpu_backend_open(&b, &o, &err), SGT_ENOMEM);
    getrusage(RUSAGE_SELF, &after);
    cr_expect(strstr(err.text, "the model and its step need "), "%s", err.text);
    cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 100 << 10, "%ld KiB were touched",
                 after.ru_maxrss - before.ru_maxrss);
}

Test(step, calls_out_of_order_are_refused)
{
    scoped(fixture) f;
    sgt_step_metrics m;
    float x;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    scoped(sgt_backend) *b = fixture_backend(&f, f.batch, 1);
    expect_failure(b->update(b, 0, 1e-3, why), SGT_EUSAGE, "backend: update without a micro-step");
    fixture_micro_step(&f, b, 0, f.batch, 1.0 / 64);
    expect_failure(b->eval(b, NULL, NULL, NULL, why), SGT_EUSAGE,
                   "backend: evaluation within a step");
    must(b->update(b, 7, 1e-3, why));
    expect_failure(b->metrics(b, 6, &m, why), SGT_EUSAGE, "backend: metrics of step 6 are gone");
    expect_failure(b->get(b, SGT_PARAMETERS, 0, 16384, 1, &x, why), SGT_EUSAGE,
                   "backend: floats 16384 to 16385 of wte.weight, which has 16384");
    expect_failure(b->get(b, SGT_PARAMETERS, 1000, 0, 1, &x, why), SGT_EUSAGE,
                   "backend: no tensor 1000");
    expect_failure(b->get(b, (sgt_state)9, 0, 0, 1, &x, why), SGT_EUSAGE, "backend: no state 9");
}
