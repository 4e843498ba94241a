/* advice.c: gives advice on a run's log: the diagnosis that sgt-train makes while it runs, and
 * problems that show only over the whole run. */
#include "train/advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"

/* The loader is worth a look if waiting for data takes more than this share of the time, and at
 * least AT_LEAST seconds: every run waits a little at its start. */
#define WAITING 0.05
#define AT_LEAST 1
/* The run overfits if at least LATER validation losses come after the lowest, and all of them are
 * more than WORSE times as high. */
#define WORSE 1.02
#define LATER 3

static void say(report_run *r, const char *fmt, ...) SGT_PRINTF(2, 3);
static void say(report_run *r, const char *fmt, ...)
{
    char *text;
    va_list args;
    if (r->advice_count == REPORT_ADVICE) return;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) >= 0) r->advice[r->advice_count++] = text;
    va_end(args);
}

/* Judge the learning rate. The known ranges are for AdamW only. */
static void about_rate(report_run *r)
{
    const sgt_settings *s = &r->settings;
    sgt_lr_range range = sgt_advice_lr(r->parameters);
    int outside = sgt_advice_lr_outside(r->parameters, s->batch * s->accum, s->lr);
    if (!outside || s->optimizer != SGT_ADAMW) return;
    say(r,
        "lr %.3g is %s what models of about %.3g million parameters are trained with (%.3g to "
        "%.3g)",
        s->lr, outside < 0 ? "below" : "above", (double)range.parameters / 1e6, range.low,
        range.high);
}

/* Diagnose the loss curve. Overflows that loss scaling handles are no problem. */
static void about_curve(report_run *r)
{
    const sgt_settings *s = &r->settings;
    char line[256];
    double skipped = 0;
    sgt_diagnosis d;
    sgt_diagnosis_start(&d, s->lr, s->batch * s->accum * s->seq, s->skip_spikes > 0);
    if (s->steps != SGT_DEFAULT_COUNT) d.steps = s->steps;
    int scaled = s->precision == SGT_PRECISION_FP16;
    for (size_t i = 0; i < r->log.count; i++) {
        const double *v = r->log.rows[i].v;
        double norm = scaled && v[REPORT_SKIPPED] > skipped ? 0 : v[REPORT_NORM];
        skipped = v[REPORT_SKIPPED];
        if (!sgt_diagnosis_step(&d, line, sizeof line, (uint64_t)v[REPORT_STEP] + 1, v[REPORT_LOSS],
                                norm, v[REPORT_LR]))
            continue;
        if (r->advice_count < REPORT_ADVICE) r->grave[r->advice_count] = d.grave;
        say(r, "%s", line);
    }
}

/* Report overfitting, if all validation losses after the lowest are clearly higher (WORSE). A
 * single evaluation is no trend. */
static void about_validation(report_run *r)
{
    size_t later = 0;
    double least = HUGE_VAL;
    for (size_t i = 0; i < r->log.count; i++) {
        const double *v = r->log.rows[i].v;
        if (isnan(v[REPORT_VAL]) || v[REPORT_STEP] + 1 <= r->best_step) continue;
        later++;
        if (v[REPORT_VAL] < least) least = v[REPORT_VAL];
    }
    if (later >= LATER && least > WORSE * r->best_val)
        say(r,
            "the validation loss was lowest after step %.0f (%.4g) and has risen to %.4g since: "
            "the model learns its data by heart (fewer --epochs, more data, or --dropout 0.1)",
            r->best_step, r->best_val, r->val_loss);
}

void report_advise(report_run *r)
{
    if (!r->log.count) return;
    if (r->settings_known) {
        if (r->parameters && !r->settings.overfit) about_rate(r);
        if (!r->settings.overfit) about_curve(r);
    }
    about_validation(r);
    if (r->wait > WAITING && r->wait * r->seconds > AT_LEAST)
        say(r, "%.0f %% of the time went by waiting for batches: %s", 100 * r->wait,
            r->settings_known && r->settings.loader == SGT_READER_PRELOAD
                ? "more --workers"
                : "--loader preload, or more --workers");
}
