/* loop.c: the training loop. In each step, it gets a batch, runs the forward and backward pass,
 * updates the parameters and reports the metrics. At intervals that the user sets, it evaluates the
 * model and saves checkpoints.
 *
 * A backend may deliver the metrics of a step `lag` steps later, so that the loop need not wait for
 * the device. Steps whose log lines are not written yet are kept in a small ring buffer. Before an
 * evaluation, before a checkpoint and at the end of the run, the loop reads the metrics of these
 * steps and writes their log lines. */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/format.h"
#include "loader/base/file.h"
#include "train/advice.h"
#include "train/data/feed.h"
#include "train/log/metrics.h"
#include "train/memory/memory.h"
#include "train/run/saver.h"
#include "train/trainer.h"

#define RING 4    /* larger than any backend's lag */
#define RECENT 20 /* number of last steps whose mean loss is reported at the end */
/* Constants that define when to report a slow file system. The time that steps wait for their rows
 * is averaged over WAIT_STEPS steps. If this average exceeds both SLOW_MS milliseconds and
 * SLOW_PART times the duration of a step, READS pages are read from a shard as a test. The file
 * system is slow if each of these reads takes more than READ_MS milliseconds. */
#define WAIT_STEPS 16
#define SLOW_MS 2
#define SLOW_PART .2
#define READS 16
#define READ_MS 1
#define SPIKES_IN_A_ROW 16
/* At the end of each of the first EPOCHS_SAID epochs, a line about the epoch is always printed. At
 * the end of a later epoch, the line is printed only if the previous such line was printed at least
 * SECONDS_BETWEEN seconds ago. */
#define EPOCHS_SAID 2
#define SECONDS_BETWEEN 10.

/* ---- reports about finished steps ---- */

typedef struct watch {
    const sgt_trainer *t;
    sgt_events *events; /* TensorBoard event file; NULL if this rank does not write one */
    double flops;       /* floating-point operations per token in training */
    /* peak speed of one device, in floating-point operations per second, used to compute the MFU
     * (model FLOPs utilization); raised if a step was faster; 0: unknown */
    double peak;
    /* start: time at which this call of sgt_train began; epoch_start: time at which the current
     * epoch began; epoch_loss: sum of the losses of the current epoch's steps */
    double start, epoch_start, epoch_loss;
    double epoch_said; /* time at which a line about an epoch was last printed */
    uint64_t epoch_steps;
    /* checks the losses of all steps of the run, including those before a resume, for problems such
     * as a divergence */
    sgt_diagnosis diagnosis;
    /* spikes: number of updates that have been skipped because of a spike since the run began; row:
     * number of such updates in a row up to the latest step, 0 if the latest update was not skipped
     * for this reason */
    uint64_t spikes, row;
    sgt_train_losses losses; /* losses of this call's steps; copy_losses adds their mean */
    double recent[RECENT];   /* ring buffer; the loss of step s is at index s % RECENT */
    uint64_t skipped;        /* updates skipped so far */
} watch;

static int scaled(const watch *w) { return w->t->s->step.precision == SGT_PRECISION_FP16; }

static double number(const json_t *line, const char *name)
{
    const json_t *x = json_object_get(line, name);
    return json_is_number(x) ? json_number_value(x) : (double)NAN;
}

/* Pass the results of all steps in log.jsonl to the diagnosis, so that a resumed run gets the same
 * advice as a run that was not interrupted. In the log, null stands for NaN. */
static void replay_log(watch *w)
{
    char line[1024], text[256], path[SGT_PATH];
    double skipped = 0;
    FILE *f = NULL;
    (void)sgt_file_lines(&f, sgt_path(path, w->t->o->run, "log.jsonl"), NULL);
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
}

/* Initialize the diagnosis, which looks for problems in the losses. After a resume, rank 0 reads
 * the earlier losses from the log, and broadcasts the resulting diagnosis. All ranks need the same
 * diagnosis, because with --stop-diverged it decides at which step they stop. */
static int open_diagnosis(watch *w, sgt_error *err)
{
    const sgt_trainer *t = w->t;
    sgt_ranks *r = t->o->ranks;
    sgt_diagnosis_start(&w->diagnosis, t->schedule.lr, t->tokens, t->s->step.skip_spikes > 0);
    w->diagnosis.steps = t->s->steps;
    int resumed = t->state.step && !t->s->overfit;
    if (resumed && t->run) replay_log(w);
    int rc = resumed && r ? r->broadcast(r, &w->diagnosis, sizeof w->diagnosis, 0, err) : SGT_OK;
    w->diagnosis.attention = t->backend->attention;
    return rc;
}

/* Initialize *w to report the steps from step t->state.step on. The caller must close w->events,
 * even if open_watch fails. */
static int open_watch(watch *w, const sgt_trainer *t, sgt_error *err)
{
    *w = (watch){.t = t,
                 .losses = {.resumed = t->state.step},
                 .flops = sgt_flops_per_token(&t->model, t->s->seq),
                 .peak = t->backend->peak_flops,
                 .skipped = t->state.scaler.skipped,
                 .spikes = t->state.scaler.outliers.spikes};
    w->start = w->epoch_start = sgt_now();
    char folder[SGT_PATH];
    int rc = open_diagnosis(w, err);
    if (rc < 0 || !t->run || t->state.step >= t->s->steps) return rc;
    return sgt_events_open(&w->events, sgt_path(folder, t->o->run, "tb"), t->state.step, err);
}

static void print_line(const watch *w, const char *line)
{
    if (w->t->o->line) w->t->o->line(w->t->o->ctx, line);
}

/* Set m->mfu and m->mfu_datasheet: the training speed as a fraction of the device's peak speed. A
 * step faster than the measured peak raises the peak, except with delayed metrics, because then the
 * time of a single step is inexact and may be too short. */
static void fill_in_mfu(watch *w, sgt_metrics *m)
{
    double rate = m->tokens_per_s * w->flops / sgt_ranks_size(w->t->o->ranks);
    double datasheet = w->t->backend->datasheet_flops;
    m->mfu = sgt_mfu(rate, &w->peak, !w->t->backend->lag);
    m->mfu_datasheet = sgt_mfu(rate, &datasheet, 0);
}

static void report_evaluation(const watch *w, const sgt_metrics *m)
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

static void report_epoch(watch *w, const sgt_metrics *m)
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

/* Round x to as many digits as log.jsonl stores. All values for the diagnosis are rounded, because
 * after a resume, they come from the log. A run that was interrupted then gets the same diagnosis
 * as a run that was not. */
static double logged(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", x);
    return isfinite(x) ? strtod(text, NULL) : x;
}

/* Pass the results of a step to the diagnosis. If the loss scaler skipped the update because
 * gradients overflowed, pass 0 instead of the infinite gradient norm, because such overflows are
 * normal. */
static void diagnose(watch *w, sgt_metrics *m, char *text, size_t n)
{
    double norm = scaled(w) && m->skipped > w->skipped ? 0 : logged(m->grad_norm);
    w->skipped = m->skipped;
    m->advice = sgt_diagnosis_step(&w->diagnosis, text, n, m->step + 1, logged(m->loss), norm,
                                   logged(m->lr));
}

/* Warn if --skip-spikes has skipped SPIKES_IN_A_ROW updates in a row. This happens if the loss has
 * risen permanently: each step then counts as a spike, all updates are skipped, and training never
 * recovers. */
static void watch_spikes(watch *w, const sgt_metrics *m)
{
    w->row = m->spikes > w->spikes ? w->row + 1 : 0;
    w->spikes = m->spikes;
    if (w->row == SPIKES_IN_A_ROW)
        sgt_say(&w->t->o->warning,
                "step %llu: --skip-spikes has skipped %d updates in a row, so these are not spikes "
                "(start again with a larger --skip-spikes or a lower --lr)",
                (unsigned long long)m->step + 1, SPIKES_IN_A_ROW);
}

/* At the end of a run with --overfit-batch, report whether the loss fell. */
static void report_overfit(const watch *w, uint64_t steps)
{
    if (!w->t->s->overfit || steps < 2) return;
    const double last = w->recent[(w->t->state.step + steps - 1) % RECENT];
    if (last < w->losses.first)
        sgt_say(&w->t->o->notice, "--overfit-batch: the loss fell from %.4f to %.4f in %llu steps",
                w->losses.first, last, (unsigned long long)steps);
    else
        sgt_say(&w->t->o->warning,
                "--overfit-batch: the loss did not fall: it went from %.4f to %.4f in %llu steps "
                "(check --lr and the data)",
                w->losses.first, last, (unsigned long long)steps);
}

/* Copy the losses of this call to *out, and set out->mean to the mean over the last RECENT steps.
 * If there were fewer than 2 * RECENT steps, use only the second half of the steps instead, so that
 * the high losses at the beginning do not count. */
static void copy_losses(const watch *w, sgt_train_losses *out)
{
    uint64_t end = w->t->state.step + w->losses.steps, n = w->losses.steps / 2;
    double sum = 0;
    if (!n) n = w->losses.steps;
    if (n > RECENT) n = RECENT;
    for (uint64_t s = end - n; s < end; s++) sum += w->recent[s % RECENT];
    *out = w->losses;
    out->mean = n ? sum / (double)n : 0;
    out->of = n;
}

/* Warn that training continues without `what`, a file that a resume does not need, because the file
 * could not be written (for example, because the disk is full). */
static void go_on_without(const sgt_trainer *t, const char *what, const sgt_error *why)
{
    sgt_say(&t->o->warning, "%s: training continues without %s", why->text, what);
}

/* Report a finished step, whose metrics are *m, to the log, to TensorBoard and to the user. Set
 * m->mfu and m->mfu_datasheet. */
static int report_step(watch *w, sgt_metrics *m, sgt_error *err)
{
    const sgt_trainer *t = w->t;
    char json[1000], advice[256];
    sgt_error why;
    int rc = SGT_OK;
    fill_in_mfu(w, m);
    if (!t->s->overfit) diagnose(w, m, advice, sizeof advice);
    sgt_metrics_json(json, sizeof json, m);
    if (t->run) rc = sgt_run_log(t->run, json, err);
    if (rc < 0) return rc;
    if (w->events && sgt_events_add(w->events, m, &why) < 0) {
        go_on_without(t, "more points for TensorBoard", &why);
        sgt_events_close(w->events);
        w->events = NULL;
    }
    if (m->step == t->state.step) w->losses.first = m->loss;
    w->recent[m->step % RECENT] = m->loss;
    w->losses.steps++;
    if (m->evaluated) {
        w->losses.val = m->val_loss;
        w->losses.val_bits_per_byte = m->val_bits_per_byte;
        w->losses.val_step = m->step + 1;
    }
    if (m->advice && !(t->o->stop_diverged && w->diagnosis.diverged))
        sgt_say(&t->o->warning, "%s", m->advice);
    m->advice = NULL; /* it points to a local array, which is invalid after the return */
    watch_spikes(w, m);
    if (m->evaluated) report_evaluation(w, m);
    if (!t->s->overfit) report_epoch(w, m);
    if (t->o->progress) t->o->progress(t->o->ctx, m, t->s->steps, t->state.step);
    return SGT_OK;
}

/* ---- the loop ---- */

typedef struct loop {
    sgt_trainer *t;
    sgt_feed *feed;
    sgt_saver *saver; /* NULL if this rank does not write */
    unsigned lag;     /* delay of metrics, in steps */
    sgt_feed *val;
    /* array of losses in an evaluation, with one element for each target in a batch of this rank */
    float *losses;
    sgt_metrics ring[RING]; /* ring buffer; the metrics of step s are at index s % RING */
    double began[RING];
    uint64_t next; /* first step whose log line has not been written */
    double mark;   /* time at which the latest step, evaluation or save ended */
    uint64_t val_tokens;
    /* saved: step of the latest save that has started and not failed; failed: number of failed
     * saves */
    uint64_t saved, failed;
    watch watch;
    double step_seconds; /* sum of the step times in the log */
    /* peak memory of the process in bytes, measured when the latest log line was written */
    uint64_t step_peak;
    uint64_t held; /* bytes allocated on a GPU; 0 if the device is a CPU */
    /* number of documents that began in the rows of this rank since this call of sgt_train began */
    uint64_t begun;
    /* number of documents that began in the rows of all ranks, from the beginning of the run to the
     * latest save */
    uint64_t documents;
    /* How long steps wait for rows. The waits of WAIT_STEPS steps are added up, then the next group
     * begins. waits_since: time at which the current group began; waits: seconds that steps of this
     * group have waited; reads: number of file reads by this process before this group; waits_said:
     * 1 if a slow file system has already been reported, because this is done only once. */
    double waits_since, waits;
    long reads;
    int waits_said;
} loop;

/* Return x, but a NaN without its sign, so that printf prints "nan" and not "-nan". */
static double plain(double x) { return isnan(x) ? (double)NAN : x; }

/* Replace each of the n elements of `x` with its sum over all ranks. */
static int over_ranks(const loop *l, double *x, size_t n, sgt_error *err)
{
    sgt_ranks *r = l->t->o->ranks;
    return r ? r->sum(r, x, n, err) : SGT_OK;
}

/* ---- evaluation ---- */

/* Sums over all rows of an evaluation. All fields are doubles, so that over_ranks can sum the
 * struct over all ranks as one array. */
typedef struct sums {
    double loss, targets;
    /* Sums from which val_noise, the standard error of the validation loss, is computed. rows:
     * number of rows that have at least one target. squares: sum of S*S/n over these rows, if S is
     * the sum of the losses in a row and n is its number of targets; this is the square of the
     * row's mean loss, weighted by n. */
    double rows, squares;
    sgt_text_loss text;
} sums;

/* Add one row to the sums `rows`, `squares` and `text` in *all, which the backend does not compute.
 * `losses` has the loss of each target in the row. */
static void add_row(const sgt_trainer *t, const int32_t *targets, const float *losses, sums *all)
{
    double loss = 0, n = 0;
    for (uint64_t i = 0; i < t->s->seq; i++) {
        if (targets[i] < 0 || (uint64_t)targets[i] == t->s->ignore) continue;
        loss += losses[i];
        n++;
        if (t->text_bytes) sgt_text_loss_add(&all->text, t->text_bytes, targets[i], losses[i]);
    }
    all->rows += n > 0;
    all->squares += n > 0 ? loss * loss / n : 0;
}

/* An evaluation has t->eval_rows rows. In batch k of an evaluation, mark the targets of all rows
 * after these as having no loss, so that the same rows are evaluated with any batch size. */
static void cut_rows(const loop *l, uint64_t k, const sgt_batch *rows)
{
    const sgt_trainer *t = l->t;
    size_t T = t->s->seq, n = t->info.local_batch * T;
    uint64_t ranks = sgt_ranks_size(t->o->ranks), first = k * t->s->batch;
    if (first + t->s->batch <= t->eval_rows) return;
    if (t->o->ranks) first += t->o->ranks->rank;
    for (size_t i = 0; i < n; i++)
        if (first + i / T * ranks >= t->eval_rows) rows->targets[i] = SGT_IGNORED;
}

static int evaluate(loop *l, sgt_metrics *m, sgt_error *err)
{
    sgt_trainer *t = l->t;
    sums all = {0};
    uint64_t from = sgt_trace_begin(t->trace);
    sgt_feed_again(l->val);
    for (uint64_t k = 0; k * t->s->batch < t->eval_rows; k++) {
        double loss;
        uint64_t n;
        sgt_batch rows;
        int rc = sgt_feed_next(l->val, &rows, err);
        rows.losses = l->losses;
        if (rc == SGT_OK) cut_rows(l, k, &rows);
        if (rc == SGT_OK) rc = t->backend->eval(t->backend, &rows, &loss, &n, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < t->info.local_batch; i++)
            add_row(t, rows.targets + i * t->s->seq, l->losses + i * t->s->seq, &all);
        all.loss += loss;
        all.targets += (double)n;
    }
    int rc = over_ranks(l, &all.loss, sizeof all / sizeof all.loss, err);
    if (rc < 0) return rc;
    sgt_trace_end(t->trace, from, SGT_TRACE_LOOP, "evaluation", "evaluation");
    l->val_tokens += (uint64_t)all.targets;
    m->val_loss = all.targets > 0 ? plain(all.loss / all.targets) : (double)NAN;
    /* variance of the mean losses of the rows, each weighted by the row's fraction of all
     * targets */
    const double variance = (all.squares - all.loss * m->val_loss) / all.targets;
    m->val_noise = all.rows > 1 ? sqrt(fmax(variance, 0) / (all.rows - 1)) : 0;
    m->val_bits_per_byte = sgt_bits_per_byte(&all.text);
    return SGT_OK;
}

/* ---- the end of a step ---- */

/* Read the metrics of step l->next and write its log line. If `val` is 1, first evaluate the model,
 * so that the line includes the result. */
static int finish_step(loop *l, int val, sgt_error *err)
{
    sgt_trainer *t = l->t;
    sgt_metrics *m = &l->ring[l->next % RING];
    sgt_step_metrics got;
    uint64_t from = sgt_trace_begin(t->trace);
    int rc = t->backend->metrics(t->backend, m->step, &got, err);
    if (rc < 0) return rc;
    sgt_trace_end(t->trace, from, SGT_TRACE_LOOP, "wait", "metrics wait");
    double end = sgt_now(), begin = l->began[l->next % RING];
    m->loss = plain(got.loss);
    m->grad_norm = plain(got.grad_norm);
    m->ms_per_step = (end - (begin > l->mark ? begin : l->mark)) * 1e3;
    m->tokens_per_s = (double)t->tokens / m->ms_per_step * 1e3;
    m->loss_scale = got.loss_scale;
    m->skipped = got.skipped;
    m->spikes = got.spikes;
    m->skipping = t->s->step.skip_spikes > 0;
    m->peak_bytes = l->held ? l->held : sgt_memory_peak();
    l->step_seconds += m->ms_per_step / 1e3;
    l->step_peak = m->peak_bytes;
    m->evaluated = val;
    if (val && (rc = evaluate(l, m, err)) < 0) return rc;
    if ((rc = report_step(&l->watch, m, err)) < 0) return rc;
    l->next++;
    l->mark = sgt_now();
    return SGT_OK;
}

/* Return the step of the newest checkpoint: the last one that this call of sgt_train has saved or,
 * if there is none, the one from which the run was resumed. */
static uint64_t newest(const loop *l)
{
    uint64_t saved = l->saver ? sgt_saver_saved(l->saver) : 0;
    return saved ? saved : l->t->state.step;
}

/* Warn that the checkpoint of step l->saved could not be saved. Training continues, because older
 * checkpoints exist, and the next save may succeed, for example if disk space has become free. */
static void go_on_unsaved(loop *l, int rc, const sgt_error *why)
{
    /* SGT_EUNSUPPORTED means that another process has taken over the run directory; the next log
     * line or save fails with that error, so no warning is needed here */
    if (rc != SGT_EUNSUPPORTED) {
        sgt_say(&l->t->o->warning,
                "%s (step %llu is not saved: training continues, and the next save tries again)",
                why->text, (unsigned long long)l->saved);
        l->failed++;
    }
    l->saved = newest(l);
}

/* Check whether the latest save has failed, and warn if so. If `wait` is 1, wait until the save has
 * ended before checking. */
static void look_at_save(loop *l, int wait)
{
    sgt_error why;
    const int rc = l->saver ? (wait ? sgt_saver_wait : sgt_saver_check)(l->saver, &why) : SGT_OK;
    if (rc < 0) go_on_unsaved(l, rc, &why);
}

/* Return the error that ends the run because step `step` could not be saved. The message states the
 * cause, this step, and the newest checkpoint. */
static int fail_unsaved(const loop *l, uint64_t step, int rc, sgt_error *err)
{
    char *path = newest(l) ? sgt_run_checkpoint(l->t->run, newest(l)) : NULL;
    rc = sgt_fail(err, rc, "%s (step %llu is not saved: %s%s)", err->text, (unsigned long long)step,
                  path ? path : "there is no checkpoint", path ? " is the newest checkpoint" : "");
    free(path);
    return rc;
}

/* Save a checkpoint of the state after `steps` steps. `more`: 1 if training continues, otherwise 0.
 * If training continues, the checkpoint is written in the background, and a failure is only a
 * warning. With several ranks, however, a save that cannot start is an error, because the other
 * ranks have already begun to send their part of the state. */
static int save(loop *l, uint64_t steps, int more, sgt_error *err)
{
    sgt_trainer *t = l->t;
    const sgt_train_losses *losses = &l->watch.losses;
    sgt_checkpoint_state state = t->state;
    state.step = steps;
    state.next_batch = steps * t->s->accum;
    state.tokens = steps * t->tokens;
    state.val_loss = losses->val_step == steps && isfinite(losses->val) ? losses->val : 0;
    double begun = (double)l->begun;
    /* there is nothing to save to: without a run directory and ranks, this call only measures
     * speed */
    if (!t->run && !t->o->ranks) return SGT_OK;
    uint64_t from = sgt_trace_begin(t->trace);
    int rc = over_ranks(l, &begun, 1, err);
    l->documents = state.documents += (uint64_t)begun;
    if (rc == SGT_OK && sgt_trainer_scales(t))
        rc = t->backend->get_scaler(t->backend, &state.scaler, err);
    if (rc < 0) return rc;
    state.skipping = t->s->step.skip_spikes > 0;
    state.scaling = t->s->step.precision == SGT_PRECISION_FP16 || state.scaler.skipped > 0;
    look_at_save(l, 1);
    l->saved = steps;
    if (!t->run) rc = sgt_checkpoint_copy(NULL, 3, t->backend, &t->model, err);
    else if ((rc = sgt_saver_save(l->saver, &state, t->backend, more, err)) < 0) {
        if (rc == SGT_EUNSUPPORTED) return rc;
        if (!more || t->o->ranks) return fail_unsaved(l, steps, rc, err);
        go_on_unsaved(l, rc, err);
        rc = SGT_OK;
    }
    sgt_trace_end(t->trace, from, SGT_TRACE_LOOP, "checkpoint", "checkpoint");
    l->mark = sgt_now();
    return rc;
}

/* ---- a step ---- */

/* Add the number of documents that begin in `rows` to l->begun. If rows are padded, each row is one
 * document. */
static void count_documents(loop *l, const sgt_batch *rows)
{
    const sgt_trainer *t = l->t;
    size_t n = t->info.local_batch;
    if (t->info.padded) l->begun += n;
    if (t->info.padded || t->eot < 0) return;
    for (size_t i = 0; i < n * t->s->seq; i++) l->begun += rows->inputs[i] == t->eot;
}

/* Return 1 if the file system of the data is slow, otherwise 0. It is slow if each of READS test
 * reads of a page takes longer than READ_MS milliseconds. A single slow read is no proof: on a busy
 * machine, the process may have waited for a CPU core. The reads bypass the page cache if the file
 * system supports O_DIRECT. */
static int has_slow_files(const sgt_loader *l)
{
    alignas(4096) char page[4096];
    int slow = 1, fd = open(sgt_loader_shard_path(l, 0), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const off_t size = lseek(fd, 0, SEEK_END), n = sizeof page;
    (void)fcntl(fd, F_SETFL, O_DIRECT);
    for (off_t i = 0; i < READS && slow; i++) {
        double before = sgt_now();
        slow = pread(fd, page, sizeof page, i * size / READS / n * n) >= 0 &&
               sgt_now() - before > 1e-3 * READ_MS;
    }
    close(fd);
    return slow;
}

/* If steps wait long for their rows because file reads take milliseconds, as on a network file
 * system, report that once. Report nothing if the process has read little from files or if test
 * reads are fast. In that case, steps probably wait because the loader's threads do not get a CPU
 * core. */
static void look_at_waits(loop *l, uint64_t s, double waited)
{
    const sgt_trainer *t = l->t;
    const char *reader = t->info.reader_detail;
    struct rusage used = {0};
    l->waits += waited;
    if (s % WAIT_STEPS != WAIT_STEPS - 1) return;
    getrusage(RUSAGE_SELF, &used);
    long reads = used.ru_majflt + used.ru_inblock;
    double now = sgt_now(), ms = 1e3 * l->waits / WAIT_STEPS;
    if (reads - l->reads > WAIT_STEPS && ms > SLOW_MS && !l->waits_said &&
        l->waits > SLOW_PART * (now - l->waits_since) && reader &&
        (*reader == 'u' || strstr(reader, "mmap")) && has_slow_files(t->train)) {
        /* The text begins with "preload (mmap: ...)" if --loader preload was set but the data does
         * not fit in memory, so that mmap reads it instead. */
        const char *advice = *reader == 'u'   ? "use --loader preload, which reads all at once"
                             : *reader == 'p' ? "use --loader uring, which reads ahead"
                                              : "use --loader preload, which reads all at once, "
                                                "or --loader uring, which reads ahead";
        sgt_say(&t->o->notice,
                "a step waits %.1f ms for its rows: reading %s takes milliseconds, as on a network "
                "file system (%s)",
                ms, t->s->data, advice);
        l->waits_said = 1;
    }
    l->reads = reads;
    l->waits_since = now;
    l->waits = 0;
}

static int micro_step(loop *l, uint64_t s, uint32_t micro, double scale, double *waited,
                      sgt_error *err)
{
    sgt_trainer *t = l->t;
    sgt_batch rows = {0};
    double before = sgt_now();
    uint64_t from = sgt_trace_begin(t->trace);
    int rc = sgt_feed_next(l->feed, &rows, err);
    *waited += sgt_now() - before;
    if (rc < 0) return rc;
    sgt_trace_end(t->trace, from, SGT_TRACE_LOOP, "data", "data wait");
    count_documents(l, &rows);
    from = sgt_trace_begin(t->trace);
    rc = t->backend->micro_step(t->backend, s, micro, &rows, scale, err);
    sgt_trace_end_event(
        t->trace, from,
        (sgt_trace_event){
            .name = "micro-step", .category = "micro-step", .key = "micro", .value = micro});
    return rc;
}

static int one_step(loop *l, uint64_t s, sgt_error *err)
{
    sgt_trainer *t = l->t;
    const sgt_config *config = t->s;
    uint64_t passed = config->overfit ? t->rows : (s + 1) * t->rows;
    double waited = 0;
    sgt_metrics *m = &l->ring[s % RING];
    int rc = SGT_OK;
    uint64_t from = sgt_trace_begin(t->trace), update;
    l->began[s % RING] = sgt_now();
    for (uint64_t a = 0; a < config->accum && rc == SGT_OK; a++)
        rc = micro_step(l, s, (uint32_t)a, 1 / (double)t->tokens, &waited, err);
    double lr = sgt_schedule_lr(&t->schedule, s);
    update = sgt_trace_begin(t->trace);
    if (rc == SGT_OK) rc = t->backend->update(t->backend, s, lr, err);
    sgt_trace_end(t->trace, update, SGT_TRACE_LOOP, "optimizer", "update");
    sgt_trace_end_event(
        t->trace, from,
        (sgt_trace_event){.name = "step", .category = "step", .key = "step", .value = s});
    *m = (sgt_metrics){.step = s,
                       .lr = lr,
                       .tokens = (s + 1) * t->tokens,
                       .epoch = (double)passed / (double)t->info.windows_per_epoch,
                       .data_wait_ms = waited * 1e3};
    look_at_waits(l, s, waited);
    return rc;
}

/* Tell the trace that step `s` begins. If `last` is 1, tell it instead that the last step has
 * ended. */
static void trace(const loop *l, uint64_t s, int last)
{
    sgt_error why;
    sgt_trace *t = l->t->trace;
    if ((last ? sgt_trace_finish(t, &why) : sgt_trace_step(t, s, &why)) < 0)
        go_on_without(l->t, "a trace", &why);
}

static int every(uint64_t steps, uint64_t n) { return n && steps % n == 0; }

/* Write the missing log lines of all steps before step `done`. If `eval` is 1, evaluate the model
 * before writing the line of step done - 1, so that this line includes the result. */
static int finish_steps(loop *l, uint64_t done, int eval, sgt_error *err)
{
    int rc = SGT_OK;
    while (rc == SGT_OK && l->next < done) rc = finish_step(l, eval && l->next + 1 == done, err);
    return rc;
}

/* Set *stopping to 1 if any rank was asked to stop, otherwise to 0. All ranks call this function
 * before each step, and get the same result, so they all stop after the same step. */
static int agree_to_stop(const loop *l, int *stopping, sgt_error *err)
{
    double asked = sgt_stopped(l->t->o->stop);
    int rc = over_ranks(l, &asked, 1, err);
    *stopping = asked > 0;
    return rc;
}

/* Return 1 if the run must stop because it has diverged and --stop-diverged is set, otherwise 0.
 * All ranks return the same value, because their losses are sums over all ranks. */
static int has_diverged(const loop *l)
{
    return l->t->o->stop_diverged && l->watch.diagnosis.diverged;
}

static int fail_diverged(const loop *l, uint64_t done, sgt_error *err)
{
    char how[160] = "the loss is not a number";
    const sgt_diagnosis *d = &l->watch.diagnosis;
    if (isfinite(d->mean))
        snprintf(how, sizeof how,
                 "the loss is above its initial value: %.4g over the last %d steps instead of %.4g",
                 d->mean, SGT_MEAN_STEPS, d->start);
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: diverged: %s; saved and stopped after step %llu of %llu (start again with "
                    "a lower --lr)",
                    l->t->o->run, how, (unsigned long long)done,
                    (unsigned long long)l->t->s->steps);
}

/* Return the error for a run that has saved its last step, but failed to save some earlier ones. */
static int fail_saves(const loop *l, sgt_error *err)
{
    return sgt_fail(err, SGT_EIO, "%s: step %llu is saved, but %llu earlier save%s failed",
                    l->t->o->run, (unsigned long long)l->saved, (unsigned long long)l->failed,
                    l->failed == 1 ? "" : "s");
}

/* Run steps until all steps are done, a stop is requested or the loss diverges. After that, save a
 * checkpoint. */
static int run_steps(loop *l, sgt_error *err)
{
    sgt_trainer *t = l->t;
    const sgt_config *config = t->s;
    uint64_t done = l->next;
    sgt_error why;
    int rc = SGT_OK, stopping;
    while (rc == SGT_OK && done < config->steps && !has_diverged(l)) {
        if ((rc = agree_to_stop(l, &stopping, err)) < 0 || stopping) break;
        trace(l, done, 0);
        if ((rc = one_step(l, done++, err)) < 0) break;
        int eval = t->eval_rows && (every(done, config->eval_every) || done == config->steps);
        int keep = every(done, config->save_every);
        if (eval || keep) rc = finish_steps(l, done, eval, err);
        else if (done > l->lag) rc = finish_steps(l, done - l->lag, 0, err);
        if (rc == SGT_OK && keep) rc = save(l, done, done < config->steps, err);
        if (rc == SGT_OK &&
            sgt_memory_log(t, done - t->state.step, done == config->steps, &why) < 0)
            go_on_without(t, "memory.jsonl", &why);
        look_at_save(l, 0);
    }
    /* Store now whether a divergence has ended the loop. The next line passes the remaining steps
     * to the diagnosis, which can change the result of has_diverged. */
    int diverged = has_diverged(l);
    if (rc == SGT_OK) rc = finish_steps(l, done, 0, err);
    look_at_save(l, 1);
    /* l->saved is correct only on rank 0, because only rank 0 writes checkpoints */
    if (rc == SGT_OK && t->o->ranks)
        rc = t->o->ranks->broadcast(t->o->ranks, &l->saved, sizeof l->saved, 0, err);
    if (rc == SGT_OK && done > l->saved) rc = save(l, done, 0, err);
    /* wait until rank 0 has saved, because a launcher may kill rank 0 when another rank exits */
    if (rc == SGT_OK && t->o->ranks) rc = t->o->ranks->barrier(t->o->ranks, err);
    if (rc == SGT_OK && (diverged || has_diverged(l))) return fail_diverged(l, done, err);
    if (rc < 0 || done == config->steps) return rc < 0 || !l->failed ? rc : fail_saves(l, err);
    if (!l->saved) return sgt_fail(err, SGT_ESTOPPED, "interrupted before the first step");
    return sgt_fail(err, SGT_ESTOPPED,
                    "interrupted after step %llu of %llu (--resume continues from there)",
                    (unsigned long long)done, (unsigned long long)config->steps);
}

static int open_feed(loop *l, sgt_error *err)
{
    sgt_trainer *t = l->t;
    const sgt_backend *b = t->backend;
    const sgt_config *config = t->s;
    uint64_t accum = config->accum, first = t->state.step * accum, end = config->steps * accum;
    sgt_feed_options o = {.first = first,
                          .count = end - first,
                          .threads = config->workers,
                          .now = config->step.no_overlap,
                          .cycle = config->overfit ? accum : 0,
                          .hold = b->hold,
                          .alloc = b->pinned_alloc,
                          .free = b->pinned_free,
                          .ctx = b->pinned_ctx,
                          .examples = t->examples.count ? &t->examples : NULL,
                          .trace = t->trace};
    if (b->lag >= RING)
        return sgt_fail(err, SGT_EUSAGE, "backend: the metrics come %u steps late", b->lag);
    int rc = sgt_feed_open(&l->feed, t->train, &o, err);
    if (rc < 0 || !t->eval_rows) return rc;
    sgt_feed_options val = {.count = t->eval_rows, .now = 1};
    size_t n = (size_t)t->info.local_batch * config->seq;
    val.examples = t->val_examples.count ? &t->val_examples : NULL;
    if (!(l->losses = calloc(n, sizeof *l->losses))) return sgt_fail_memory(err, NULL);
    return sgt_feed_open(&l->val, t->val, &val, err);
}

/* Set r->sets and r->set_count to the data sets that were used. If memory runs out, the list is
 * incomplete, but that is not an error, because the list is only printed. */
static void fill_sets(const loop *l, sgt_training_result *r)
{
    const sgt_trainer *t = l->t;
    uint64_t steps = t->s->overfit ? 1 : l->next;
    if (t->info.set_count < 2 || !(r->sets = calloc(t->info.set_count, sizeof *r->sets))) return;
    for (; r->set_count < t->info.set_count; r->set_count++) {
        const sgt_loader_set_info *set = &t->info.sets[r->set_count];
        sgt_train_set *to = &r->sets[r->set_count];
        if (!(to->data = strdup(set->path))) return;
        to->rows = sgt_loader_drawn(t->train, r->set_count, steps * t->rows);
        to->epochs = (double)to->rows / (double)set->windows_per_epoch;
    }
}

static void fill_result(const loop *l, sgt_training_result *r)
{
    const sgt_trainer *t = l->t;
    r->last = t->run ? sgt_run_last_line(t->run) : NULL;
    r->steps = l->next;
    r->train_tokens = l->next * t->tokens;
    r->val_tokens = l->val_tokens;
    r->pf_days = sgt_pf_days(sgt_model_parameters(&t->model), (double)r->train_tokens);
    r->documents = t->eot < 0 && !t->info.padded ? UINT64_MAX : l->documents;
    fill_sets(l, r);
    r->seconds = sgt_now() - l->watch.start;
    r->step_seconds = l->step_seconds;
    r->step_peak_bytes = l->step_peak;
    copy_losses(&l->watch, &r->losses);
    r->peak_bytes = l->held ? l->held : sgt_memory_peak();
    r->total_bytes = l->held ? t->backend->memory_total : sgt_memory_total();
    r->checkpoint = newest(l) && t->run ? sgt_run_checkpoint(t->run, newest(l)) : NULL;
}

/* Return the number of bytes that the backend has allocated on a GPU, or 0 on a CPU. A backend
 * allocates all its memory while it opens, so this number does not change afterwards. */
static uint64_t held_bytes(const sgt_backend *b)
{
    sgt_memory_kind kinds[SGT_MEMORY_KINDS];
    uint64_t sum = 0;
    size_t n = b->memory_total ? b->memory(b, kinds) : 0;
    for (size_t i = 0; i < n; i++) sum += kinds[i].bytes;
    return sum;
}

static int run(sgt_trainer *t, sgt_training_result *r, sgt_error *err)
{
    int rc = SGT_OK;
    loop l = {.t = t,
              .lag = t->s->sync_metrics ? 0 : t->backend->lag,
              .next = t->state.step,
              .saved = t->state.step,
              .documents = t->state.documents,
              .held = held_bytes(t->backend)};
    rc = open_watch(&l.watch, t, err);
    l.mark = l.watch.start;
    if (rc == SGT_OK && t->state.step >= t->s->steps) {
        sgt_say(&t->o->notice,
                "%s has completed all of its %llu steps (to continue, give a larger --steps)",
                t->o->run, (unsigned long long)t->state.step);
        if (t->run) rc = sgt_run_rotate(t->run, UINT64_MAX, t->s->keep, err);
    } else if (rc == SGT_OK) {
        if (t->run) rc = sgt_saver_open(&l.saver, t, err);
        if (rc == SGT_OK) rc = open_feed(&l, err);
        if (rc == SGT_OK) rc = run_steps(&l, err);
    }
    /* even after an error, wait until a checkpoint that is being written in the background is
     * complete */
    if (l.saver) sgt_saver_wait(l.saver, NULL);
    trace(&l, 0, 1);
    if (rc == SGT_OK) report_overfit(&l.watch, l.next - t->state.step);
    fill_result(&l, r);
    sgt_events_close(l.watch.events);
    sgt_saver_close(l.saver);
    sgt_feed_close(l.feed);
    sgt_feed_close(l.val);
    free(l.losses);
    return rc;
}

int sgt_train(sgt_config *s, const sgt_train_options *o, sgt_training_result *r, sgt_error *err)
{
    sgt_trainer t;
    *r = (sgt_training_result){0};
    int rc = sgt_trainer_open(&t, s, o, err);
    /* If the checkpoint is gone, the previous owner of the run may have removed it, because this
     * process chose the checkpoint before it became the owner. */
    if (rc < 0 && rc != SGT_ESTOPPED && t.from && sgt_file_gone(t.from))
        rc = sgt_run_owned(o->run, rc, err);
    if (rc == SGT_OK && o->opened) o->opened(o->ctx, t.backend);
    if (rc == SGT_OK) rc = run(&t, r, err);
    if (rc < 0 && o->ranks) o->ranks->give_up(o->ranks, err);
    sgt_trainer_close(&t);
    return rc;
}

void sgt_training_result_free(sgt_training_result *r)
{
    free(r->last);
    free(r->checkpoint);
    for (uint32_t i = 0; i < r->set_count; i++) free(r->sets[i].data);
    free(r->sets);
    *r = (sgt_training_result){0};
}
