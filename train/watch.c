/* watch.c: logs and reports each step. */
#include "train/watch.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"

#define SPIKES_IN_A_ROW 16
/* the first EPOCHS_SAID lines about epochs are always printed; later ones are at least
 * SECONDS_BETWEEN seconds apart */
#define EPOCHS_SAID 2
#define SECONDS_BETWEEN 10.

static int open_events(sgt_watch *w, sgt_error *err)
{
    const sgt_trainer *t = w->t;
    if (!t->run || t->state.step >= t->s->steps) return SGT_OK;
    char *folder = sgt_join(t->o->run, "tb");
    if (!folder) return sgt_fail(err, SGT_ENOMEM, "%s/tb: out of memory", t->o->run);
    int rc = sgt_events_open(&w->events, folder, t->state.step, err);
    free(folder);
    return rc;
}

static int scaled(const sgt_watch *w) { return w->t->s->step.precision == SGT_PRECISION_FP16; }

static double number(const json_t *line, const char *name)
{
    const json_t *x = json_object_get(line, name);
    return json_is_number(x) ? json_number_value(x) : (double)NAN;
}

/* Pass the logged steps before a resume to the diagnosis, so that the run gets the same advice as
 * without an interruption. A null in the log stands for NaN. */
static void replay_log(sgt_watch *w)
{
    char line[1024], text[256];
    char *path = sgt_join(w->t->o->run, "log.jsonl");
    double skipped = 0;
    FILE *f = NULL;
    if (path) (void)sgt_file_lines(&f, path, NULL);
    while (f && sgt_file_line(line, sizeof line, f) > 0) {
        json_t *json = json_loads(line, 0, NULL);
        if (!json) continue;
        double now = number(json, "skipped"),
               norm = scaled(w) && now > skipped ? 0 : number(json, "grad_norm");
        skipped = now;
        sgt_diagnosis_step(&w->diagnosis, text, sizeof text, (uint64_t)number(json, "step") + 1,
                           number(json, "loss"), norm, number(json, "lr"));
        json_decref(json);
    }
    if (f) fclose(f);
    free(path);
}

/* Start the diagnosis. Rank 0 reads the log and broadcasts the result, so all ranks stop at the
 * same step. */
static int open_diagnosis(sgt_watch *w, sgt_error *err)
{
    const sgt_trainer *t = w->t;
    sgt_ranks *r = t->o->ranks;
    sgt_diagnosis_start(&w->diagnosis, t->schedule.lr, t->tokens, t->s->step.skip_spikes > 0);
    w->diagnosis.steps = t->s->steps;
    if (!t->state.step || t->s->overfit) return SGT_OK;
    if (t->run) replay_log(w);
    return r ? r->broadcast(r, &w->diagnosis, sizeof w->diagnosis, 0, err) : SGT_OK;
}

int sgt_watch_open(sgt_watch *w, const sgt_trainer *t, sgt_error *err)
{
    *w = (sgt_watch){.t = t,
                     .flops = sgt_flops_per_token(&t->model, t->s->seq),
                     .peak = t->backend->peak_flops,
                     .skipped = t->state.scaler.skipped,
                     .spikes = t->state.scaler.outliers.spikes};
    w->start = w->epoch_start = sgt_now();
    int rc = open_diagnosis(w, err);
    return rc < 0 ? rc : open_events(w, err);
}

void sgt_watch_close(sgt_watch *w) { sgt_events_close(w->events); }

static void print_line(const sgt_watch *w, const char *line)
{
    if (w->t->o->line) w->t->o->line(w->t->o->ctx, line);
}

/* Fill in the MFU. If metrics are read with a lag, step times are inexact, so they must not raise
 * the peak. */
static void fill_in_mfu(sgt_watch *w, sgt_metrics *m)
{
    double rate = m->tokens_per_s * w->flops / sgt_ranks_size(w->t->o->ranks);
    double datasheet = w->t->backend->datasheet_flops;
    m->mfu = sgt_mfu(rate, &w->peak, !w->t->backend->lag);
    m->mfu_datasheet = sgt_mfu(rate, &datasheet, 0);
}

static void report_evaluation(const sgt_watch *w, const sgt_metrics *m)
{
    char line[300], since[32], epoch[32], bits[48] = "";
    double seconds = (double)(w->t->info.windows_per_epoch * w->t->s->seq) / m->tokens_per_s;
    if (m->val_bits_per_byte > 0)
        snprintf(bits, sizeof bits, " (%.4f bits per byte)", m->val_bits_per_byte);
    snprintf(
        line, sizeof line,
        "step %llu: loss %.4f, validation %.4f%s, %llu tokens, %s, %.0f tokens/s, %s per epoch",
        (unsigned long long)m->step + 1, m->loss, m->val_loss, bits, (unsigned long long)m->tokens,
        sgt_format_duration(since, sizeof since, sgt_now() - w->start), m->tokens_per_s,
        sgt_format_duration(epoch, sizeof epoch, seconds));
    print_line(w, line);
}

static void report_epoch(sgt_watch *w, const sgt_metrics *m)
{
    char line[128];
    uint64_t rows = w->t->rows, windows = w->t->info.windows_per_epoch;
    w->epoch_loss += m->loss;
    w->epoch_steps++;
    uint64_t epoch = (m->step + 1) * rows / windows;
    if (epoch == m->step * rows / windows) return;
    snprintf(line, sizeof line, "Epoch %llu, Loss: %.4f, %.1f s", (unsigned long long)epoch,
             w->epoch_loss / (double)w->epoch_steps, sgt_now() - w->epoch_start);
    if (epoch <= EPOCHS_SAID || sgt_now() - w->epoch_said >= SECONDS_BETWEEN) {
        print_line(w, line);
        w->epoch_said = sgt_now();
    }
    w->epoch_loss = 0;
    w->epoch_steps = 0;
    w->epoch_start = sgt_now();
}

/* Round x as the log does, because a resumed run diagnoses the logged numbers. */
static double logged(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", x);
    return isfinite(x) ? strtod(text, NULL) : x;
}

/* Diagnose a step. If a loss scaler skipped an update because of an overflow, that is normal. */
static void diagnose(sgt_watch *w, sgt_metrics *m, char *text, size_t n)
{
    double norm = scaled(w) && m->skipped > w->skipped ? 0 : logged(m->grad_norm);
    w->skipped = m->skipped;
    m->advice = sgt_diagnosis_step(&w->diagnosis, text, n, m->step + 1, logged(m->loss), norm,
                                   logged(m->lr));
}

/* Warn if many updates in a row are skipped as spikes: after a lasting rise of the loss, all
 * updates would be skipped. */
static void watch_spikes(sgt_watch *w, const sgt_metrics *m)
{
    w->row = m->spikes > w->spikes ? w->row + 1 : 0;
    w->spikes = m->spikes;
    if (w->row == SPIKES_IN_A_ROW)
        sgt_say(&w->t->o->warning,
                "step %llu: --skip-spikes has left out %d updates in a row: these are no spikes "
                "(start again with a larger one, or with a lower --lr)",
                (unsigned long long)m->step + 1, SPIKES_IN_A_ROW);
}

void sgt_watch_end(const sgt_watch *w, uint64_t steps)
{
    if (!w->t->s->overfit || steps < 2) return;
    if (w->last_loss < w->first_loss)
        sgt_say(&w->t->o->notice, "--overfit-batch: the loss fell from %.4f to %.4f in %llu steps",
                w->first_loss, w->last_loss, (unsigned long long)steps);
    else
        sgt_say(&w->t->o->warning,
                "--overfit-batch: the loss went from %.4f to %.4f in %llu steps and did not fall: "
                "look at --lr and at the data",
                w->first_loss, w->last_loss, (unsigned long long)steps);
}

/* Set the losses of this call. For a short run, only its second half is averaged, so that the mean
 * does not include its beginning. */
void sgt_watch_losses(const sgt_watch *w, sgt_train_losses *out)
{
    uint64_t end = w->t->state.step + w->steps, n = w->steps / 2;
    double sum = 0;
    if (!n) n = w->steps;
    if (n > SGT_WATCH_RECENT) n = SGT_WATCH_RECENT;
    for (uint64_t s = end - n; s < end; s++) sum += w->recent[s % SGT_WATCH_RECENT];
    *out = (sgt_train_losses){.resumed = w->t->state.step,
                              .steps = w->steps,
                              .first = w->first_loss,
                              .mean = n ? sum / (double)n : 0,
                              .of = n,
                              .val = w->val_loss,
                              .val_bits_per_byte = w->val_bits_per_byte,
                              .val_step = w->val_step};
}

int sgt_watch_step(sgt_watch *w, sgt_metrics *m, sgt_error *err)
{
    const sgt_trainer *t = w->t;
    char json[1000], advice[256];
    int rc = SGT_OK;
    fill_in_mfu(w, m);
    if (!t->s->overfit) diagnose(w, m, advice, sizeof advice);
    sgt_metrics_json(json, sizeof json, m);
    if (t->run) rc = sgt_run_log(t->run, json, err);
    if (rc == SGT_OK && w->events) rc = sgt_events_add(w->events, m, err);
    if (rc < 0) return rc;
    if (m->step == t->state.step) w->first_loss = m->loss;
    w->last_loss = m->loss;
    w->recent[m->step % SGT_WATCH_RECENT] = m->loss;
    w->steps++;
    if (m->evaluated) {
        w->val_loss = m->val_loss;
        w->val_bits_per_byte = m->val_bits_per_byte;
        w->val_step = m->step + 1;
    }
    if (m->advice && !(t->o->stop_diverged && w->diagnosis.diverged))
        sgt_say(&t->o->warning, "%s", m->advice);
    m->advice = NULL; /* its text is in an array on this function's stack */
    watch_spikes(w, m);
    if (m->evaluated) report_evaluation(w, m);
    if (!t->s->overfit) report_epoch(w, m);
    if (t->o->progress) t->o->progress(t->o->ctx, m, t->s->steps, t->state.step);
    return SGT_OK;
}
