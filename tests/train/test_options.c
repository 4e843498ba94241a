/* test_options.c: options of a training step on a CPU other than AdamW in float32. They are
 * compared with PyTorch in float64, and with the step itself, computed in other ways. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/cpu.h"
#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "tests/train/run_fixture.h"

/* Return the value of the last bit of the 16-bit format in use, relative to the number; 0 for
 * float32. */
static double last_bit(const fixture *f)
{
    sgt_precision p = f->options.precision;
    return p == SGT_PRECISION_BF16 ? 0x1p-8 : p == SGT_PRECISION_FP16 ? 0x1p-11 : 0;
}

/* Return the bound of the gradient's error, relative to its norm. In float32 it is 5e-6, about 2^6
 * units of 2^-24. In 16 bits, the reference rounds at the same places, but a number that differs by
 * 2^6 units may be rounded the other way, and then differs by a last bit. At each of about 16
 * roundings, that happens to a fraction of 2 * 2^6 * 2^-24 / last bit of all numbers. If one
 * rounding were omitted, every number would differ by a third of a last bit, which exceeds this
 * bound. */
static double gradient_bound(const fixture *f)
{
    double bit = last_bit(f);
    return bit > 0 ? sqrt(16 * 0x1p-17 / bit) * bit : 5e-6;
}

/* Return the bound of the loss. Let e be last_bit(f), the relative step of the 16-bit format. The
 * forward pass rounds about 2^15 numbers to it. Before that, they differ from the reference's
 * numbers by 4 units of float32, which is 2^-21. So 2^15 * 2^-21 / e of them are rounded the other
 * way. Each changes the loss of one of N positions, whose logits are below 1/2, by e. The squares
 * of such errors add up. */
static double loss_bound(const fixture *f)
{
    return 5e-6 + sqrt(0x1p-6 * last_bit(f)) / (f->batch * f->seq);
}

/* Check each tensor's gradient, and then the whole gradient. A tensor of few numbers has a wider
 * bound, because one number may be off by a last bit. */
static void check_gradients(const fixture *f, sgt_backend *b)
{
    scoped_memory float *g = flat_state(b, &f->model, SGT_GRADIENTS);
    double scale = f->options.precision == SGT_PRECISION_FP16 ? 65536 : 1, all = 0, whole = 0;
    for (size_t i = 0; i < sgt_model_tensors(&f->model); i++) {
        sgt_tensor t;
        double diff = 0, norm = 0;
        sgt_model_tensor(&f->model, i, &t);
        for (size_t j = t.offset; j < t.offset + t.count; j++) {
            double d = (double)g[j] / scale - f->grads[j];
            diff += d * d;
            norm += f->grads[j] * f->grads[j];
        }
        all += diff, whole += norm;
        cr_expect_leq(sqrt(diff / norm), fmax(5e-6, last_bit(f)),
                      "gradient of %s: relative error %g", t.name, sqrt(diff / norm));
    }
    cr_expect_leq(sqrt(all / whole), gradient_bound(f), "gradient: relative error %g",
                  sqrt(all / whole));
}

/* Return the bound of the parameters' error after the steps, if the gradient, whose norm is clipped
 * to 1, has an error of gradient_bound. AdamW's first steps have length lr whatever a gradient's
 * size, so a gradient near 0 may move a parameter by lr/5. SGD's three steps multiply a gradient by
 * at most 8 lr in all, and each step rounds a parameter below 2. Muon multiplies an error of a
 * gradient's smallest singular values by 485, and moves a parameter by less than lr. */
static double parameter_bound(const fixture *f)
{
    return f->options.optim.kind == SGT_SGD ? f->lr * 8 * gradient_bound(f) + 3 * 0x1p-23
                                            : f->lr / 5;
}

static void check_evaluation(const fixture *f, sgt_backend *b)
{
    double loss;
    uint64_t targets;
    sgt_batch rows = {.inputs = f->x, .targets = f->y};
    cr_assert_eq(b->eval(b, &rows, &loss, &targets, NULL), 0);
    cr_expect_eq(targets, fixture_targets(f, 0, f->batch));
    cr_expect_float_eq(loss / (double)targets, f->loss[f->steps], loss_bound(f),
                       "evaluation: %.9f, not %.9f", loss / (double)targets, f->loss[f->steps]);
}

static void against_reference(const char *name, uint32_t micro)
{
    scoped(fixture) f;
    sgt_step_metrics m;
    fixture_load(&f, name, SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    o.batch = f.batch / micro;
    scoped(sgt_backend) *b = fixture_open(&f, &o);
    for (uint32_t s = 0; s < f.steps; s++) {
        fixture_accumulate(&f, b, s, o.batch);
        if (s == 0) check_gradients(&f, b);
        fixture_finish(&f, b, s, &m);
        cr_expect_float_eq(m.loss, f.loss[s], loss_bound(&f), "step %u: loss %.9f, not %.9f", s,
                           m.loss, f.loss[s]);
        cr_expect_float_eq(m.grad_norm / f.norm[s], 1, gradient_bound(&f),
                           "step %u: norm %.9f, not %.9f", s, m.grad_norm, f.norm[s]);
    }
    float *p = flat_state(b, &f.model, SGT_PARAMETERS);
    double worst = 0;
    for (size_t i = 0; i < sgt_model_floats(&f.model); i++)
        worst = fmax(worst, fabs((double)p[i] - f.final[i]));
    cr_expect_leq(worst, parameter_bound(&f), "parameters after %u steps differ by %g", f.steps,
                  worst);
    free(p);
    if (micro == 1) check_evaluation(&f, b);
}

/* Dropout: the reference draws the masks of the whole step, and the backend must draw the same,
 * however it divides the step. SGD with an ignored id. Nesterov and an untied head. Muon. Documents
 * that begin within tiles, next to each other, and at both ends of a row, also with dropout. */
Test(options, as_pytorch_in_float64)
{
    static const char *const names[] = {"options_dropout", "options_sgd", "options_untied",
                                        "options_muon", "options_documents"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (uint32_t micro = 1; micro <= 4; micro *= 2) against_reference(names[i], micro);
}

/* There are two references, because sgt_head_run rounds at other places than the head that computes
 * all logits at once. Each reference rounds where the backend does. */
Test(options, bf16_as_pytorch_with_rounded_operands)
{
    const sgt_head h = {.V = 37, .C = 18, .bf16 = 1};
    const char *name = sgt_head_possible(&h) ? "options_bf16_own" : "options_bf16";
    for (uint32_t micro = 1; micro <= 2; micro++) against_reference(name, micro);
}

/* Check that the level's name contains `level`, and that a notice warns if the precision is slow on
 * this CPU (`notice`). */
static void check_path(sgt_precision precision, const char *level, const char *notice)
{
    scoped(fixture) f;
    fixture_load(&f, "options_bf16", SGT_GELU_TANH);
    f.options.precision = precision;
    said[0] = '\0';
    f.options.notice = (sgt_notice){hear, said};
    scoped(sgt_backend) *b = fixture_open(&f, &f.options);
    cr_expect(strstr(b->level, level), "%s is not of %s", level, b->level);
    cr_expect_str_eq(said, notice);
}

Test(options, the_level_says_how_products_are_made)
{
    int bf16 = sgt_gemm_has_bf16();
    check_path(SGT_PRECISION_FP32, "", "");
    check_path(
        SGT_PRECISION_BF16, bf16 ? "/bf16" : "/rounded",
        bf16 ? ""
             : "--precision bf16: this CPU rounds operands to it and multiplies them in fp32\n");
    check_path(SGT_PRECISION_FP16, "/rounded",
               "--precision fp16: this CPU rounds operands to it and multiplies them in fp32\n");
}

/* Plain C has no matrix products of bfloat16. The limit of the CPU level affects only this test,
 * because each test has its own process. */
Test(options, bf16_where_the_cpu_has_no_such_products)
{
    must(sgt_cpu_limit("plain", why));
    check_path(SGT_PRECISION_BF16, "plain/rounded",
               "--precision bf16: this CPU rounds operands to it and multiplies them in fp32\n");
    against_reference("options_bf16", 1);
}

Test(options, fp16_as_pytorch_with_rounded_operands)
{
    for (uint32_t micro = 1; micro <= 2; micro++) against_reference("options_fp16", micro);
}

/* If a step overflows in fp16, only the loss scale is lowered. The next update is then still
 * AdamW's first. */
Test(options, an_overflow_skips_the_update_and_halves_the_scale)
{
    scoped(fixture) f;
    sgt_step_metrics m;
    sgt_scaler scaler;
    fixture_load(&f, "options_fp16", SGT_GELU_TANH);
    sgt_backend_options o = f.options;
    o.optim.kind = SGT_ADAMW;
    o.loss_scale = 0x1p22f; /* 2^22 / 44 targets overflows fp16, and half of that does not */
    scoped(sgt_backend) *b = fixture_open(&f, &o);
    uint64_t step = 0;
    for (;; step++) {
        float scale = ldexpf(o.loss_scale, -(int)step);
        fixture_accumulate(&f, b, step, f.batch);
        fixture_finish(&f, b, step, &m);
        cr_expect_eq(m.loss_scale, scale);
        cr_assert_eq(b->get_scaler(b, &scaler, NULL), 0);
        if (isfinite(m.grad_norm)) break;
        float *p = flat_state(b, &f.model, SGT_PARAMETERS),
              *v = flat_state(b, &f.model, SGT_MOMENT2);
        cr_expect(memcmp(p, f.initial, sgt_model_floats(&f.model) * sizeof *p) == 0,
                  "parameters changed");
        for (size_t i = 0; i < sgt_model_floats(&f.model); i++)
            cr_assert_eq(v[i], 0, "a moment changed");
        free(p);
        free(v);
        cr_expect(m.skipped == step + 1 && scaler.skipped == step + 1 && scaler.good_steps == 0);
        cr_expect_eq(scaler.scale, scale / 2);
        cr_assert_lt(step, 10);
    }
    cr_expect_geq(step, 1);
    cr_expect(m.skipped == step && scaler.skipped == step && scaler.good_steps == 1);
    o.loss_scale = scaler.scale;
    scoped(sgt_backend) *first = fixture_open(&f, &o);
    fixture_accumulate(&f, first, 0, f.batch);
    fixture_finish(&f, first, 0, &m);
    scoped_memory float *got = flat_state(b, &f.model, SGT_PARAMETERS),
                        *want = flat_state(first, &f.model, SGT_PARAMETERS);
    cr_expect(memcmp(got, want, sgt_model_floats(&f.model) * sizeof *got) == 0);
}

Test(options, good_steps_double_the_scale)
{
    scoped(fixture) f;
    sgt_step_metrics m;
    sgt_scaler s = {.scale = 1024, .good_steps = SGT_SCALE_GROWTH - 2, .skipped = 5};
    fixture_load(&f, "options_fp16", SGT_GELU_TANH);
    scoped(sgt_backend) *b = fixture_open(&f, &f.options);
    b->put_scaler(b, 7, &s);
    for (uint64_t step = 7; step < 9; step++) {
        fixture_accumulate(&f, b, step, f.batch);
        fixture_finish(&f, b, step, &m);
        cr_expect(m.loss_scale == 1024 && m.skipped == 5);
        cr_assert_eq(b->get_scaler(b, &s, NULL), 0);
        cr_expect(s.scale == (step == 7 ? 1024 : 2048) &&
                  s.good_steps == (step == 7 ? SGT_SCALE_GROWTH - 1 : 0));
    }
    b->close(b);
    /* bf16 has no loss scale, but skipped updates are counted */
    f.options.precision = SGT_PRECISION_BF16;
    b = fixture_open(&f, &f.options);
    b->put_scaler(b, 9, &s);
    cr_assert_eq(b->get_scaler(b, &s, NULL), 0);
    cr_expect(s.scale == 1 && s.good_steps == 0 && s.skipped == 5);
}

/* Without targets, the mean loss is 0, and so are the gradients: the update only decays weights. */
Test(options, a_step_without_a_target)
{
    scoped(fixture) f;
    sgt_step_metrics m;
    double loss;
    uint64_t targets;
    fixture_load(&f, "options_sgd", SGT_GELU_TANH);
    scoped(sgt_backend) *b = fixture_open(&f, &f.options);
    for (uint32_t i = 0; i < f.batch * f.seq; i++) f.y[i] = f.options.ignore;
    fixture_micro_step_of(&f, b, 0, 0, 0, 1.0 / 44);
    fixture_finish(&f, b, 0, &m);
    cr_expect(m.loss == 0 && m.grad_norm == 0, "loss %g, norm %g", m.loss, m.grad_norm);
    float *p = flat_state(b, &f.model, SGT_PARAMETERS);
    for (size_t i = 0; i < sgt_model_tensors(&f.model); i++) {
        sgt_tensor t;
        sgt_model_tensor(&f.model, i, &t);
        for (size_t j = t.offset; j < t.offset + t.count; j++) {
            double want = f.initial[j] * (t.dims > 1 ? 1 - f.lr * 0.1 : 1);
            cr_assert_float_eq(p[j], want, 0x1p-23 * fabs(want), "%s: %g, not %g", t.name,
                               (double)p[j], want);
        }
    }
    free(p);
    sgt_batch rows = {.inputs = f.x, .targets = f.y};
    cr_assert_eq(b->eval(b, &rows, &loss, &targets, NULL), 0);
    cr_expect(targets == 0 && loss == 0);
}
