/* test_advice.c: advice on learning rates and losses. For each advice there is a curve that causes
 * it. Healthy curves cause none. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/advice.h"
#include "loader/base/philox.h"
#include "tests/train/fixture.h"
#include "train/log/metrics.h"
#include "train/backend.h"

Test(advice, learning_rates_by_size)
{
    static const struct {
        uint64_t parameters;
        double low, high, chosen;
    } want[] = {
        {124439808, 3e-4, 6e-4, 3e-4},           {300000000, 1e-4, 3e-4, 1e-4},
        {774030080, 1e-4, 2e-4, 1e-4},           {1557611200, 5e-5, 1e-4, 5e-5},
        {123999999, 3e-4, 6e-4, 3e-4},           {UINT64_C(100000000000), 0.6e-4, 0.6e-4, 0.6e-4},
        {62000000, 3e-4, 1.2e-3, 4.24264069e-4}, {31000000, 3e-4, 2.4e-3, 6e-4},
        {690000, 3e-4, 0.01, 4.02168038e-3},     {1, 3e-4, 0.01, 4.02168038e-3}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        sgt_lr_range r = sgt_advice_lr(want[i].parameters);
        cr_expect(fabs(r.low / want[i].low - 1) < 1e-6 && fabs(r.high / want[i].high - 1) < 1e-6 &&
                      fabs(r.chosen / want[i].chosen - 1) < 1e-6,
                  "%llu parameters: %.9g to %.9g, %.9g", (unsigned long long)want[i].parameters,
                  r.low, r.high, r.chosen);
    }
    cr_expect_float_eq(sgt_advice_scale_lr(3e-4, 64 * 32, 64), 0.0096, 1e-12);
}

Test(advice, a_rate_outside_its_range)
{
    static const struct {
        uint64_t parameters, rows;
        double lr;
        int outside;
    } want[] = {{124439808, 64, 3e-4, 0},     {124439808, 64, 6e-4, 0},   {124439808, 64, 7e-4, 1},
                {124439808, 64, 2e-4, -1},    {62000000, 64, 7e-4, 0},    {62000000, 64, 1.3e-3, 1},
                {62000000, 64, 3e-4, 0},      {7000000, 64, 3e-3, 0},     {7000000, 64, 1e-5, -1},
                {7000000, 64, 0.1, 1},        {1000, 64, 0.011, 1},       {774030080, 64, 3e-4, 1},
                {774030080, 64, 1.5e-4, 0},   {774030080, 64, 5e-5, -1},  {1557611200, 64, 2e-4, 1},
                {124439808, 4, 1.5e-4, 0},    {124439808, 4, 1.4e-4, -1}, {124439808, 4, 7e-4, 1},
                {124439808, 2048, 0.0096, 0}, {124439808, 2048, 0.02, 1}};
    char text[256];
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const char *says =
            sgt_advice_lr_outside(text, sizeof text, want[i].parameters, want[i].rows, want[i].lr);
        cr_expect_eq(!says                        ? 0
                     : strstr(says, " is below ") ? -1
                                                  : 1,
                     want[i].outside, "%g for %llu parameters and %llu rows", want[i].lr,
                     (unsigned long long)want[i].parameters, (unsigned long long)want[i].rows);
    }
    /* A rate chosen by the table is never outside its range. */
    for (uint64_t n = 1000; n < UINT64_C(1000000000000); n *= 3)
        for (uint64_t rows = 1; rows < 1 << 20; rows *= 2)
            cr_expect_null(
                sgt_advice_lr_outside(text, sizeof text, n, rows, sgt_advice_auto_lr(n, rows, 64)),
                "%llu, %llu rows", (unsigned long long)n, (unsigned long long)rows);
}

/* Losses that are not finite are among the curves below. */
Test(advice, a_gradient_norm_that_is_not_finite)
{
    char text[256];
    cr_assert(sgt_advice_not_finite(text, sizeof text, 3, 7, (double)INFINITY, 1e-3, NULL));
    cr_expect(strstr(text, "step 3: the gradient norm is infinite: "), "%s", text);
    cr_assert(sgt_advice_not_finite(text, sizeof text, 3, 7, (double)NAN, 1e-3, "another"));
    cr_expect_str_eq(
        text, "step 3: the gradient norm is not a number, but the loss is finite: start again with "
              "another, or with an lr 10 times lower (--lr 0.0001); see grad_norm in log.jsonl and "
              "--grad-clip");
}

/* ---- curves ---- */

typedef struct curve {
    double (*loss)(uint64_t step);
    uint64_t steps, tokens; /* steps of the run; tokens of each step */
    /* standard deviation of normal noise (sums of twelve uniform numbers) that is added to the
     * loss */
    double noise;
    uint64_t warmup;
    int skipping;
    uint64_t spike; /* a step whose loss is 3 higher */
} curve;

static double normal(uint64_t step)
{
    double sum = -6;
    for (uint64_t i = 0; i < 3; i++) {
        sgt_philox4 r = sgt_philox(7, step, i);
        for (int k = 0; k < 4; k++) sum += r.x[k] * 0x1p-32;
    }
    return sum;
}

/* Return all advice on a curve, one per line. The learning rate has a warm-up to 1e-3, and then
 * half a cosine down to a tenth of it. `norm` gives the gradient norms. */
static const char *diagnose(const curve *c, double (*norm)(uint64_t step))
{
    static char text[2048];
    char line[256];
    sgt_diagnosis d;
    text[0] = '\0';
    sgt_diagnosis_start(&d, 1e-3, c->tokens, c->skipping);
    d.steps = c->steps;
    for (uint64_t s = 1; s <= c->steps; s++) {
        double lr = s <= c->warmup
                        ? 1e-3 * (double)s / (double)c->warmup
                        : 1e-3 * (0.55 + 0.45 * cos(M_PI * (double)s / (double)c->steps));
        double loss = c->loss(s) + c->noise * normal(s) + (s == c->spike ? 3 : 0);
        if (sgt_diagnosis_step(&d, line, sizeof line, s, loss, norm(s), lr))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", line);
    }
    return text;
}

static double falling(uint64_t s) { return 2.5 + 8.3 * pow((double)s + 10, -0.3); }
static double memorizing(uint64_t s) { return 10.8 * exp(-(double)s / 60) + 0.01; }
static double waiting(uint64_t s)
{
    return s < 500 ? 10.8 - 0.0004 * (double)s : 10.6 * pow((double)s / 500, -0.4);
}
static double stuck(uint64_t s) { return s < 100 ? 10.8 - 0.03 * (double)s : 7.8; }
static double creeping(uint64_t s) { return 10.8 - 2e-5 * (double)s; }
/* Oscillations that grow, as with a learning rate that is too high. */
static double swinging(uint64_t s)
{
    return falling(s) + 4e-3 * (s < 300 ? (double)s : 300) * (s / 4 % 2 ? 1 : -1);
}
static double spiking(uint64_t s) { return falling(s) + (s == 700 || s == 900 ? 3 : 0); }
/* A fall from 10.8 to 5.2 within 300 steps, and with a spike of two of them. */
static double fall(uint64_t s) { return 5 + 5.8 * exp(-(double)s / 80); }
static double spiking_at_15(uint64_t s) { return fall(s) + (s == 15 || s == 16 ? 3 : 0); }
/* A fall of two nats a step at first, and one that begins late. */
static double plunge(uint64_t s) { return 2.5 + 8.3 * exp((1 - (double)s) / 4); }
static double plunge_late(uint64_t s) { return s < 6 ? 10.8 : plunge(s - 5); }
static double spiking_for_10(uint64_t s)
{
    return falling(s) + (s < 700 || s >= 710 ? 0 : 3.5 - 0.25 * (double)(s - 700));
}
/* From step 500 on, or for 50 steps, the data is different and its loss is higher. */
static double other_data(uint64_t s) { return falling(s) + (s < 500 ? 0 : 2); }
static double other_data_for_50(uint64_t s) { return falling(s) + (s / 50 == 10 ? 2 : 0); }
static double level_norm(uint64_t s) { return 1 + 0 * (double)s; }
static double norm_with_spikes(uint64_t s)
{
    return s % 300 == 0 ? 12 * 0.7 : s % 100 == 0 ? 9 * 0.7 : 0.7 + 0.1 * normal(s);
}
static double norm_with_a_spike_early(uint64_t s) { return s == 15 ? 12 : 1; }
static double norm_of_a_start(uint64_t s) { return 0.5 + 8 / (double)s; }
static double breaking(uint64_t s) { return s < 50 ? falling(s) : (double)NAN; }
static double overflowing(uint64_t s) { return s < 50 ? falling(s) : HUGE_VAL; }

static double losing(uint64_t s)
{
    return s < 30 ? 10.8 - 0.05 * (double)s : s < 60 ? 9.3 + 200 * (double)(s - 30) : 6e3;
}
static double losing_late(uint64_t s) { return s < 2000 ? falling(s) : 20; }
static double losing_at_once(uint64_t s) { return s < 2 ? 10.8 : s < 20 ? 1e4 / (double)s : 60; }
static double losing_numbers(uint64_t s) { return s < 100 ? falling(s) : s % 2 ? (double)NAN : 5; }
static double recovering(uint64_t s) { return s > 300 && s < 325 ? 20 : falling(s); }
static double above_for_49(uint64_t s) { return s >= 200 && s < 230 ? 10.8 : 10; }
static double above_for_50(uint64_t s) { return s >= 200 && s < 231 ? 10.8 : 10; }

static double seven_turns(uint64_t s)
{
    return s >= 200 && s < 228 ? (s / 4 % 2 ? 5 : 4) : s < 200 ? 4.5 : 5;
}
static double slow_turns(uint64_t s) { return s / 16 % 2 ? 5 : 4; }
static double four_swings(uint64_t s) { return s >= 200 && s < 232 ? (s / 4 % 2 ? 5 : 4) : 4.5; }

static const struct {
    curve c;
    /* how `says` must occur: no advice at all, as the only advice, as the last one, or not at
     * all */
    enum { SILENT, ALONE, LAST, NOT } how;
    const char *says;
} judged[] = {
    /* Healthy curves. Chance explains noise with a standard deviation of 4.5 nats divided by the
     * square root of the tokens of a step. The last curve has about twice that, as measured with
     * ten rows of many kinds of documents. */
    {{falling, 5000, 32768, 0, 0, 0, 0}, SILENT, NULL},
    {{falling, 5000, 32768, 0.025, 100, 0, 0}, SILENT, NULL},
    {{falling, 5000, 64, 0.56, 250, 0, 0}, SILENT, NULL},
    {{falling, 100000, 8192, 0.05, 1000, 0, 0}, SILENT, NULL},
    {{memorizing, 2000, 32768, 0.002, 0, 0, 0}, SILENT, NULL},
    {{waiting, 5000, 8192, 0.05, 1000, 0, 0}, SILENT, NULL},
    {{falling, 5000, 640, 0.38, 250, 0, 0}, SILENT, NULL},
    /* each problem once, with the option and the factor of its advice */
    {{swinging, 3000, 32768, 0.025, 0, 0, 0},
     ALONE,
     "the loss oscillates: it went up and down 4 times in the last 64 steps (make the lr 2 to 10 "
     "times lower, --lr 0.0005 to 0.0001)"},
    {{stuck, 4000, 32768, 0.025, 0, 0, 0},
     ALONE,
     "the loss has stayed at 7.8 for 176 steps (make the lr"},
    {{creeping, 1000, 8192, 0.05, 50, 0, 0},
     ALONE,
     " steps (make the lr 2 to 10 times higher, --lr 0.002 to 0.01)"},
    {{spiking, 1000, 32768, 0.025, 0, 0, 0}, ALONE, "step 700: the loss spikes: it is 6.6"},
    {{spiking, 1000, 8192, 0.05, 0, 0, 0},
     ALONE,
     ", which is 2.9 above the steps around it (a low --grad-clip limits such an update, and "
     "--skip-spikes 6 skips it)\n"},
    {{spiking, 1000, 8192, 0.05, 0, 1, 0}, SILENT, NULL}, /* --skip-spikes is on already */
    /* a spike while the loss still falls fast, in the first 128 steps, with few tokens per step */
    {{falling, 100, 640, 0.38, 10, 0, 40}, ALONE, "step 40: the loss spikes: it is "},
    {{fall, 300, 64, 0.1, 15, 0, 2}, ALONE, "step 2: the loss spikes: it is "},
    {{spiking_at_15, 300, 64, 0.1, 15, 0, 0}, ALONE, "step 15: the loss spikes: it is "},
    {{plunge, 100, 640, 0.05, 15, 0, 3},
     ALONE,
     "step 3: the loss spikes: it is 10.4, which is 2.7 above the steps around it"},
    {{plunge, 15, 8192, 0.05, 5, 0, 3}, ALONE, "step 3: the loss spikes: it is "}, /* a short run */
    /* --skip-spikes would not have helped before step 129 */
    {{fall, 300, 64, 0.15, 15, 0, 100}, ALONE, "it (a low --grad-clip limits such an update)\n"},
    {{fall, 300, 64, 0.15, 15, 0, 300}, ALONE, "step 300: the loss spikes: it is "},
    {{spiking_for_10, 1000, 8192, 0.05, 0, 0, 0}, ALONE, "step 700: the loss spikes: it is "},
    /* not a spike: a fall, however steep, and a loss that rises and stays high */
    {{fall, 300, 64, 0.3, 15, 0, 0}, SILENT, NULL},
    {{plunge, 100, 8192, 0.05, 0, 0, 0}, SILENT, NULL},
    {{plunge_late, 100, 8192, 0.05, 15, 0, 0}, SILENT, NULL},
    {{plunge_late, 15, 64, 0.56, 5, 0, 0}, SILENT, NULL},
    {{other_data, 1000, 8192, 0.05, 0, 0, 0}, SILENT, NULL},
    {{other_data_for_50, 1000, 8192, 0.05, 0, 0, 0}, SILENT, NULL},
    {{breaking, 300, 8192, 0.05, 0, 0, 0},
     ALONE,
     "step 50: the loss is not a number: start again with an lr 10 times lower (--lr 0.0001); see "
     "grad_norm in log.jsonl and --grad-clip"},
    {{overflowing, 300, 8192, 0.05, 0, 0, 0},
     ALONE,
     "step 50: the loss is infinite: start again with an lr 10 times lower"},
    /* four swings oscillate. Not so: one swing less, as many over a longer time, and swings that
     * chance explains because a step has few tokens. */
    {{four_swings, 250, 32768, 0, 0, 0, 0}, ALONE, "oscillates"},
    {{seven_turns, 250, 32768, 0, 0, 0, 0}, NOT, "oscillates"},
    {{slow_turns, 250, 32768, 0, 0, 0, 0}, NOT, "oscillates"},
    {{four_swings, 250, 600, 0, 0, 0, 0}, SILENT, NULL},
    /* A run has diverged if the mean loss of 20 steps stays above that of the first 20 for 50
     * steps; 49 are too few. If the loss rises before there are 20 steps, it is compared with the
     * first step's loss plus a tenth. No advice follows that. */
    {{losing, 300, 8192, 0.05, 0, 0, 0},
     LAST,
     "step 80: diverged: the loss is above its initial value: 6000 over the last 20 steps, 10.2"},
    {{losing_late, 3000, 8192, 0.05, 0, 0, 0},
     LAST,
     "diverged: the loss is above its initial value: 20 over"},
    {{losing_at_once, 100, 8192, 0, 0, 0, 0},
     LAST,
     "step 69: diverged: the loss is above its initial value: 60 over the last 20 steps, 10.8 at "
     "the first step (lower --lr, or let --lr auto choose it)"},
    {{above_for_50, 280, 1 << 30, 0, 0, 0, 0}, LAST, "step 249: diverged"},
    {{above_for_49, 280, 1 << 30, 0, 0, 0, 0}, NOT, "diverged"},
    /* the loss becomes NaN, and only that is reported */
    {{losing_numbers, 200, 8192, 0, 0, 0, 0}, NOT, "diverged"},
    {{recovering, 1000, 8192, 0, 0, 0, 0}, NOT, "diverged"},
};

Test(advice, what_is_said_of_a_curve)
{
    for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) {
        const char *text = diagnose(&judged[i].c, level_norm);
        const char *at = judged[i].says ? strstr(text, judged[i].says) : NULL,
                   *line = strchr(judged[i].how == LAST && at ? at : text, '\n');
        if (judged[i].how == SILENT) cr_expect_str_empty(text, "curve %zu: %s", i, text);
        else if (judged[i].how == NOT) cr_expect_null(at, "curve %zu: %s", i, text);
        else cr_expect(at && line && line[1] == '\0', "curve %zu: %s", i, text);
    }
}

/* A gradient norm of 12 times the median is a spike. A norm of 9 times the median is not, and norms
 * that fall from a high start are not either. */
Test(advice, spikes_of_the_gradient_norm)
{
    curve c = {falling, 1000, 8192, 0.05, 0, 0, 0};
    cr_expect_str_eq(
        diagnose(&c, norm_with_spikes),
        "step 300: the gradient norm spikes: 8.4 is 12 times the median of earlier steps (a low "
        "--grad-clip limits such an update, and --skip-spikes 6 skips it)\n");
    cr_expect_str_empty(diagnose(&c, norm_of_a_start));
    c.steps = 100;
    cr_expect(strstr(diagnose(&c, norm_with_a_spike_early), "step 15: the gradient norm spikes: "));
    cr_expect_null(strstr(diagnose(&c, norm_with_a_spike_early), "--skip-spikes"));
    c.steps = 1000;
    c.skipping = 1;
    cr_expect_str_empty(diagnose(&c, norm_with_spikes));
}

Test(advice, validation_above_training_by_more_than_the_noise)
{
    static const struct {
        double loss, noise, val, val_noise;
        int said;
    } want[] = {{3, 0.02, 3.2, 0.03, 1},         {3, 0.02, 3.1, 0.03, 0},
                {3, 0.001, 3.05, 0.001, 0},      {3, 0.001, 3.07, 0.001, 1},
                {3, 0.02, 2.5, 0.03, 0},         {3, 0.02, 3.2, 0.08, 0},
                {3, (double)NAN, 3.2, 0.03, 0},  {3, 0.02, 3.2, (double)NAN, 0},
                {3, 0.02, (double)NAN, 0.03, 0}, {0.1, 0.001, 4, 0.02, 1}};
    char text[256];
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cr_expect_eq(sgt_advice_gap(text, sizeof text, want[i].loss, want[i].noise, want[i].val,
                                    want[i].val_noise) != NULL,
                     want[i].said, "case %zu", i);
    cr_expect_str_eq(text,
                     "the validation loss, 4, exceeds the training loss, 0.1, by more than their "
                     "noise (0.02): the model overfits, or the validation data differs from the "
                     "training data (use more data, fewer --epochs, or --dropout 0.1)");
}

/* ---- recorded curves ---- */

/* Losses of three models at eight learning rates each, from too low to too high, recorded by
 * tests/data/measure_lr.sh. Rates from `high` on are reported as too high, and rates from 1 on as
 * diverging. Lower rates give no advice. Three of the higher ones have a spike at steps 7, 9 and 13. */
Test(advice, recorded_curves_at_eight_rates)
{
    static const struct {
        const char *model;
        double high;
    } models[] = {{"2x64x2", 3e-2}, {"4x128x4", 1e-1}, {"6x256x8", 3e-3}};
    static char line[4096], text[2048];
    char vocabulary[16], model[16], said[256];
    unsigned rows, tokens, steps, curves = 0, spikes = 0;
    double rate;
    scoped(FILE) *f = fopen(FIXTURES "rates/curves.txt", "r");
    cr_assert(f);
    while (fgets(line, sizeof line, f)) {
        cr_assert_eq(sscanf(line, "%15s %15s %u %u %u %lf", vocabulary, model, &rows, &tokens,
                            &steps, &rate),
                     6);
        const sgt_schedule schedule = {SGT_COSINE, rate, rate / 10, steps / 20, steps, 0, 0};
        sgt_diagnosis d;
        sgt_diagnosis_start(&d, rate, rows * tokens, 0);
        d.steps = steps;
        cr_assert(fgets(line, sizeof line, f));
        char *at = line;
        text[0] = '\0';
        for (uint64_t s = 0; s < steps; s++)
            if (sgt_diagnosis_step(&d, said, sizeof said, s + 1, strtod(at, &at), 1,
                                   sgt_schedule_lr(&schedule, s)))
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s\n", said);
        double high = models[curves / 8].high;
        cr_expect_str_eq(model, models[curves++ / 8].model);
        if (rate >= 1) cr_expect(strstr(text, "diverged: the loss is above its initial value"));
        else if (rate >= high)
            cr_expect(strstr(text, "the lr is too high: the loss rose from "), "%s %g", model,
                      rate);
        else cr_expect_str_empty(text, "%s at %g: %s", model, rate, text);
        const char *rest = strstr(text, "the loss spikes: ") ? strchr(text, '\n') + 1 : text;
        spikes += rest != text;
        cr_expect(!*rest || strchr(rest, '\n')[1] == '\0', "%s at %g, one line: %s", model, rate,
                  text);
    }
    cr_expect_eq(curves, 24);
    cr_expect_eq(spikes, 3);
}
