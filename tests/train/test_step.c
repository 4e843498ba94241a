/* test_step.c: the whole training step on the CPU, compared with PyTorch in float64 and with itself
 * divided in other ways. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/train/fixture.h"

static double relative_l2(const float *x, const double *want, size_t n)
{
    double diff = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        diff += ((double)x[i] - want[i]) * ((double)x[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(diff / norm);
}

static void check_gradients(const fixture *f, sgt_backend *b)
{
    float *g = flat_state(b, &f->model, SGT_GRADIENTS);
    for (size_t i = 0; i < sgt_model_tensors(&f->model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f->model, i, &t);
        double e = relative_l2(g + t.offset, f->grads + t.offset, t.count);
        cr_expect_leq(e, 5e-6, "gradient of %s: relative error %g", t.name, e);
    }
    free(g);
}

static void against_reference(const char *name, sgt_gelu_kind gelu)
{
    fixture f;
    sgt_step_metrics m;
    fixture_load(&f, name, gelu);
    sgt_backend *b = fixture_backend(&f, f.batch, 2);
    for (uint32_t s = 0; s < f.steps; s++) {
        fixture_micro_step(&f, b, 0, f.batch, 1.0 / (f.batch * f.seq));
        if (s == 0) check_gradients(&f, b);
        cr_assert_eq(b->update(b, s, 1e-3, NULL), 0);
        cr_assert_eq(b->metrics(b, s, &m, NULL), 0);
        cr_expect_float_eq(m.loss, f.loss[s], 5e-6, "step %u: loss %.9f, not %.9f", s, m.loss,
                           f.loss[s]);
        cr_expect_float_eq(m.grad_norm / f.norm[s], 1, 5e-6, "step %u: norm %.9f, not %.9f", s,
                           m.grad_norm, f.norm[s]);
    }
    float *p = flat_state(b, &f.model, SGT_PARAMETERS);
    double worst = 0;
    for (size_t i = 0; i < sgt_model_floats(&f.model); i++)
        worst = fmax(worst, fabs((double)p[i] - f.final[i]));
    cr_expect_leq(worst, 2e-4, "parameters after %u steps differ by %g", f.steps, worst);
    free(p);
    b->close(b);
    fixture_free(&f);
}

Test(step, tanh_gelu_as_pytorch_in_float64) { against_reference("tiny_tanh", SGT_GELU_TANH); }
Test(step, erf_gelu_as_pytorch_in_float64) { against_reference("tiny_erf", SGT_GELU_ERF); }
Test(step, odd_sizes_as_pytorch_in_float64) { against_reference("odd_tanh", SGT_GELU_TANH); }

/* Run three steps of the fixture with its rows in `micro` micro-steps; return the parameters. */
static float *three_steps(const fixture *f, uint32_t micro, int threads, double losses[3])
{
    uint32_t rows = f->batch / micro;
    sgt_backend *b = fixture_backend(f, rows, threads);
    for (uint32_t s = 0; s < 3; s++) {
        sgt_step_metrics m;
        for (uint32_t a = 0; a < micro; a++)
            fixture_micro_step(f, b, a * rows, rows, 1.0 / (f->batch * f->seq));
        cr_assert_eq(b->update(b, s, 1e-3, NULL), 0);
        cr_assert_eq(b->metrics(b, s, &m, NULL), 0);
        losses[s] = m.loss;
    }
    float *p = flat_state(b, &f->model, SGT_PARAMETERS);
    b->close(b);
    return p;
}

Test(step, the_same_bits_for_any_number_of_threads)
{
    static const char *const names[] = {"tiny_tanh", "odd_tanh"};
    for (int i = 0; i < 2; i++) {
        fixture f;
        double one_loss[3], loss[3];
        fixture_load(&f, names[i], SGT_GELU_TANH);
        float *one = three_steps(&f, 1, 1, one_loss);
        for (int threads = 2; threads <= 5; threads++) {
            float *p = three_steps(&f, 1, threads, loss);
            cr_expect(memcmp(p, one, sgt_model_floats(&f.model) * sizeof *p) == 0,
                      "%s, %d threads: other bits", names[i], threads);
            cr_expect(memcmp(loss, one_loss, sizeof loss) == 0);
            free(p);
        }
        free(one);
        fixture_free(&f);
    }
}

Test(step, accumulation_equals_one_batch)
{
    fixture f;
    double whole_loss[3], loss[3];
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    float *whole = three_steps(&f, 1, 2, whole_loss);
    for (uint32_t micro = 2; micro <= 4; micro *= 2) {
        float *p = three_steps(&f, micro, 2, loss);
        double worst = 0;
        for (size_t i = 0; i < sgt_model_floats(&f.model); i++)
            worst = fmax(worst, fabs((double)p[i] - (double)whole[i]));
        cr_expect_leq(worst, 2e-4, "%u micro-steps: parameters differ by %g", micro, worst);
        for (int s = 0; s < 3; s++) cr_expect_float_eq(loss[s], whole_loss[s], 5e-6);
        free(p);
    }
    free(whole);
    fixture_free(&f);
}

/* Ignored targets count neither in the loss nor in its divisor. So a row without other targets has
 * no effect. */
Test(step, ignored_targets_leave_no_trace)
{
    fixture f;
    sgt_step_metrics some, fewer;
    fixture_load(&f, "tiny_tanh", SGT_GELU_TANH);
    sgt_backend *b = fixture_backend(&f, f.batch, 2), *half = fixture_backend(&f, f.batch / 2, 2);
    fixture_micro_step(&f, half, 0, f.batch / 2, 1.0 / (f.batch / 2 * f.seq));
    for (uint32_t i = f.batch / 2 * f.seq; i < f.batch * f.seq; i++) f.y[i] = -1;
    fixture_micro_step(&f, b, 0, f.batch, 1.0 / (f.batch * f.seq));
    cr_assert_eq(b->update(b, 0, 1e-3, NULL), 0);
    cr_assert_eq(half->update(half, 0, 1e-3, NULL), 0);
    cr_assert_eq(b->metrics(b, 0, &some, NULL), 0);
    cr_assert_eq(half->metrics(half, 0, &fewer, NULL), 0);
    cr_expect_float_eq(some.loss, fewer.loss, 5e-6);
    cr_expect_float_eq(some.grad_norm / fewer.grad_norm, 1, 5e-6);
    half->close(half);
    b->close(b);
    fixture_free(&f);
}

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
