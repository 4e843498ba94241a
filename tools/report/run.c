/* run.c: reads the folder of a training run, and computes curves of a few hundred points, the
 * headline numbers and the advice from its log.jsonl. The run can be in any state: it may still be
 * training, may have been killed or resumed, or may have filled the disk. */
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/base/owner.h"
#include "train/advice.h"
#include "train/log/metrics.h"
#include "train/model/model.h"
#include "train/run/checkpoint.h"
#include "train/run/run.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/report/report.h"
#include "tools/sample/sample.h"

static int check_folder(const char *path, sgt_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (S_ISDIR(st.st_mode) &&
        (sgt_folder_has(path, "log.jsonl") || sgt_folder_has(path, "options.json") ||
         sgt_folder_has(path, "latest")))
        return SGT_OK;
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: not a run of sgt-train: it has no log.jsonl (pass the folder given as --run)", path);
}

/* ---- log.jsonl ----
 *
 * Lines that are not a complete entry for a step are counted and skipped. */

#define MOST_STEP 1e15 /* highest valid step number, small enough for a double to be exact */
/* Maximum absolute value of a number in the log. Larger numbers are read as NaN, because a chart
 * cannot be scaled to them. */
#define MOST_VALUE 1e100

static const char *const names[REPORT_COLUMNS] = {[REPORT_STEP] = "step",
                                                  [REPORT_LOSS] = "loss",
                                                  [REPORT_VAL] = "val_loss",
                                                  [REPORT_VAL_NOISE] = "val_noise",
                                                  [REPORT_BITS] = "val_bits_per_byte",
                                                  [REPORT_LR] = "lr",
                                                  [REPORT_NORM] = "grad_norm",
                                                  [REPORT_SKIPPED] = "skipped",
                                                  [REPORT_TOKENS] = "tokens",
                                                  [REPORT_SPEED] = "tokens_per_s",
                                                  [REPORT_MS] = "ms_per_step",
                                                  [REPORT_WAIT] = "data_wait_ms",
                                                  [REPORT_MFU] = "mfu",
                                                  [REPORT_PEAK] = "peak_bytes"};

static double read_number(const json_t *line, const char *name)
{
    const json_t *x = json_object_get(line, name);
    double v = json_is_number(x) ? json_number_value(x) : (double)NAN;
    return fabs(v) <= MOST_VALUE ? v : (double)NAN;
}

static int is_evaluated(const report_row *row) { return !isnan(row->v[REPORT_VAL]); }

/* Append a row to the log. First remove all rows for the same step and for later steps. If there
 * are such rows, the run was resumed from an earlier checkpoint and has repeated these steps. */
static void append_row(report_log *l, const report_row *row)
{
    while (l->count && l->rows[l->count - 1].v[REPORT_STEP] >= row->v[REPORT_STEP]) {
        l->count--;
        l->repeated++;
    }
    if (sgt_reserve(&l->rows, &l->room, l->count + 1, sizeof *l->rows, NULL, NULL) < 0)
        sgt_no_memory();
    l->rows[l->count++] = *row;
}

/* Append the values in a line of log.jsonl to the log of `run`, which is a report_run. */
static void add_row(void *run, json_t *line)
{
    report_run *r = run;
    report_row row;
    for (size_t i = 0; i < REPORT_COLUMNS; i++)
        row.v[i] = names[i] ? read_number(line, names[i]) : (double)NAN;
    double step = row.v[REPORT_STEP];
    if (step >= 0 && step <= MOST_STEP && floor(step) == step) append_row(&r->log, &row);
    else r->log.damaged++;
}

/* ---- other files, all optional ---- */

#define MOST_BYTES ((size_t)64 << 20) /* maximum size of options.json in bytes */

static void add_start(void *run, json_t *line)
{
    const report_run *r = run;
    if (json_is_object(line) && json_array_append(r->starts, line) < 0) sgt_no_memory();
}

/* Return the element of r->memory for the kind of memory with this name. If there is none, add it.
 * Return NULL if r->memory is full. */
static report_memory *find_kind(report_run *r, const char *name)
{
    report_memory *m = r->memory, *end = m + r->memory_count;
    while (m < end && strncmp(m->name, name, sizeof m->name - 1) != 0) m++;
    if (m < end) return m;
    if (r->memory_count == sizeof r->memory / sizeof *m) return NULL;
    *m = (report_memory){.used = -1, .estimate = -1};
    snprintf(m->name, sizeof m->name, "%s", name);
    r->memory_count++;
    return m;
}

/* Process a line of memory.jsonl, which contains the number of bytes in use at a point of a step
 * for each kind of memory. For each kind, keep the highest number of all lines. */
static void add_memory(void *run, json_t *line)
{
    const char *kind;
    json_t *bytes;
    json_object_foreach(json_object_get(line, "used"), kind, bytes)
    {
        report_memory *m = find_kind(run, kind);
        if (m) m->used = fmax(m->used, (double)json_integer_value(bytes));
    }
}

/* Read options.json if it exists. */
static int parse_options(report_run *r, sgt_error *err)
{
    char *text = NULL, path[SGT_PATH];
    size_t n;
    if (sgt_file_gone(sgt_path(path, r->path, "options.json"))) return SGT_OK;
    int rc = sgt_file_get(&text, &n, path, MOST_BYTES, err);
    if (rc == SGT_OK) rc = sgt_config_merge(&r->settings, text, path, SGT_MERGE_GIVEN, err);
    r->settings_known =
        rc == SGT_OK && r->settings.given[SGT_SET_LR] && r->settings.given[SGT_SET_BATCH];
    r->options = json_incref(json_array_get(r->settings.owners, 0));
    free(text);
    return rc;
}

static void read_checkpoint(report_run *r)
{
    sgt_checkpoint_state state;
    sgt_model m;
    if (sgt_run_newest(&r->checkpoint, r->path, 0, NULL, NULL) < 0 || !r->checkpoint) return;
    if (sgt_checkpoint_read(&state, r->checkpoint, NULL) == SGT_OK) {
        r->data_hash = state.data_hash;
        snprintf(r->device, sizeof r->device, "%s, %s, %s",
                 strcmp(state.device, "cuda") == 0 ? "CUDA" : "CPU", state.level, state.library);
        sgt_checkpoint_state_free(&state);
    }
    if (sgt_model_read_config(&m, r->checkpoint, NULL) == SGT_OK)
        r->parameters = sgt_model_parameters(&m);
}

/* Memory in bytes that this process uses before it reads the first run. Estimates of the memory of
 * a run use this number for the memory of the program sgt-train itself. It is measured before any
 * run is read, because the data of sgt-report must not count. */
static uint64_t program;

static void estimate_memory(report_run *r, const sgt_notice *notice)
{
    sgt_error why = {.text = "the run's options are unknown"};
    sgt_model m;
    sgt_train_estimate e;
    sgt_train_options o = {.run = r->path, .program = program};
    const int known = r->settings_known;
    int estimated = known && sgt_train_estimate_memory(&r->settings, &o, &e, &why) == SGT_OK;
    for (size_t i = 0; estimated && i < e.count; i++) {
        report_memory *kind = find_kind(r, e.kinds[i].name);
        if (kind) kind->estimate = (double)e.kinds[i].bytes;
    }
    if (estimated) r->estimate = (double)e.total;
    else snprintf(r->no_estimate, sizeof r->no_estimate, "%s", why.text);
    if (known && !estimated)
        sgt_say(notice, "%s: could not estimate its memory: %s", r->name, why.text);
    if (r->parameters || !known) return;
    if (estimated) r->parameters = sgt_model_parameters(&e.model);
    else if (r->settings.model && sgt_model_named(&m, r->settings.model, NULL) == SGT_OK)
        r->parameters = sgt_model_parameters(&m);
}

/* ---- curves ----
 *
 * Each point of a curve is the mean of a bin, a group of consecutive steps, so that the curve of a
 * long run has few points. A point also has the lowest and the highest value in its bin, so that a
 * short spike remains visible. */

#define MOST_BINS 240 /* maximum number of points of a curve */
#define MOST_DOTS 60  /* maximum number of points of a curve that has a dot at each point */

/* Add a row of the log to a bin, a group of consecutive rows. skipped: number of skipped updates up
 * to the previous row. The log contains the number up to each row, but a bin counts only the
 * updates skipped in its own rows, so the difference is added to the bin, and *skipped is set to
 * the number up to this row. */
static void add_to_bin(report_bin *bin, const report_row *row, double *skipped)
{
    for (size_t c = 0; c < REPORT_COLUMNS; c++) {
        double v = row->v[c];
        if (isnan(v)) continue;
        if (!bin->n[c] || v < bin->low.v[c]) bin->low.v[c] = v;
        if (!bin->n[c] || v > bin->high.v[c]) bin->high.v[c] = v;
        bin->mean.v[c] += v; /* the sum until make_bins divides it */
        bin->n[c]++;
    }
    if (row->v[REPORT_SKIPPED] > *skipped) {
        bin->skipped += row->v[REPORT_SKIPPED] - *skipped;
        *skipped = row->v[REPORT_SKIPPED];
    }
}

/* Divide the rows of the log into bins (groups of consecutive rows) of equal size, at most `most`
 * of them. If `evaluated` is 1, use only the rows with a validation loss, otherwise all rows. */
static void make_bins(report_bins *b, const report_log *l, int evaluated, size_t most)
{
    size_t rows = 0, done = 0;
    double skipped = 0;
    for (size_t i = 0; i < l->count; i++) rows += !evaluated || is_evaluated(&l->rows[i]);
    if (!rows) return;
    b->steps = (rows + most - 1) / most;
    b->count = (rows + b->steps - 1) / b->steps;
    b->at = calloc(b->count, sizeof *b->at);
    if (!b->at) sgt_no_memory();
    for (size_t i = 0; i < l->count; i++)
        if (!evaluated || is_evaluated(&l->rows[i]))
            add_to_bin(&b->at[done++ / b->steps], &l->rows[i], &skipped);
    for (report_bin *bin = b->at; bin < b->at + b->count; bin++)
        for (size_t c = 0; c < REPORT_COLUMNS; c++) {
            bin->mean.v[c] /= (double)bin->n[c]; /* NaN (0 / 0) if no row has a value */
            if (!bin->n[c]) bin->low.v[c] = bin->high.v[c] = (double)NAN;
        }
}

/* ---- headline numbers ---- */

/* Minimum number of steps over which the final loss is averaged. The final loss is the mean over
 * the last 1 % of the steps, but at least over the last FINAL steps, or over all steps of a shorter
 * run. */
#define FINAL 20

/* values that are accumulated while the rows of the log are processed in order */
typedef struct totals {
    /* Sums over all steps. wait: time in milliseconds that steps waited for data. flops: MFU times
     * the time of the step. mfu_time: time of the step in milliseconds. The last two are sums over
     * only the steps whose MFU is known, so that the mean MFU is flops / mfu_time. */
    double wait, flops, mfu_time;
    /* later: number of evaluations after the evaluation with the lowest validation loss of the run.
     * least_later: lowest validation loss in these later evaluations. */
    size_t later;
    double least_later;
    sgt_diagnosis diagnosis;
    double skipped; /* number of skipped updates up to the previous row */
    size_t val_end; /* index of the last row with an evaluation, plus 1 */
} totals;

static void add_validation(report_run *r, totals *t, const double *v)
{
    r->val_loss = v[REPORT_VAL];
    r->val_noise = v[REPORT_VAL_NOISE];
    r->val_bits = v[REPORT_BITS];
    if (!(r->val_loss >= r->best_val)) {
        r->best_val = r->val_loss;
        r->best_step = v[REPORT_STEP] + 1;
        t->later = 0;
        t->least_later = HUGE_VAL;
    } else {
        t->later++;
        t->least_later = fmin(t->least_later, r->val_loss);
    }
}

static void add_totals(report_run *r, totals *t, const report_row *row)
{
    const double *v = row->v, ms = v[REPORT_MS];
    if (is_evaluated(row)) add_validation(r, t, v);
    if (v[REPORT_WAIT] > 0) t->wait += v[REPORT_WAIT];
    if (ms > 0 && v[REPORT_MFU] > 0) {
        t->flops += v[REPORT_MFU] * ms;
        t->mfu_time += ms;
    }
    if (!(v[REPORT_PEAK] <= r->peak)) r->peak = v[REPORT_PEAK];
}

double report_residuals(const double *y, size_t stride, size_t n, double *changes)
{
    double count = 0, x = 0, xx = 0, sum = 0, xy = 0, squares = 0, last = NAN;
    *changes = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(y[i * stride])) continue;
        count++;
        x += (double)i;
        xx += (double)i * (double)i;
        sum += y[i * stride];
        xy += (double)i * y[i * stride];
    }
    double slope = count > 1 ? (count * xy - x * sum) / (count * xx - x * x) : 0;
    for (size_t i = 0; i < n; i++) {
        double off = y[i * stride] - sum / count - slope * ((double)i - x / count);
        if (isnan(off)) continue;
        squares += off * off;
        if (!isnan(last)) *changes += (off - last) * (off - last);
        last = off;
    }
    return squares;
}

/* Set *loss to the mean loss of the last n of the first `end` rows, and *noise to the standard
 * error of this mean. Return n, which is 1 % of the number of all rows, but not less than FINAL and
 * not more than `end`. The standard error is computed from the residuals of a fitted line, so that
 * a trend of the loss does not count as noise. */
static size_t average_loss(const report_log *l, size_t end, double *loss, double *noise)
{
    size_t n = (l->count + 99) / 100 > FINAL ? (l->count + 99) / 100 : FINAL;
    if (n > end) n = end;
    double sum = 0, changes;
    const report_row *last = l->rows + end - n;
    for (size_t i = 0; i < n; i++) sum += last[i].v[REPORT_LOSS];
    *loss = sum / (double)n;
    *noise = NAN;
    if (n > 2 && !isnan(sum))
        *noise = sqrt(report_residuals(&last->v[REPORT_LOSS], REPORT_COLUMNS, n, &changes) /
                      (double)(n - 2) / (double)n);
    return n;
}

/* Compute the headline numbers of the run from the sums in *t. The speed and the MFU are averages
 * over time, not over steps. */
static void finish_totals(report_run *r, const totals *t)
{
    const report_log *l = &r->log;
    r->last = l->rows[l->count - 1];
    const double *first = l->rows[0].v, *last = r->last.v;
    /* Number of tokens that the run processed before the first row of the log, if the step of the
     * first row had as many tokens as the step of the second row. */
    double before = 0;
    if (l->count > 1)
        before = first[REPORT_TOKENS] - (l->rows[1].v[REPORT_TOKENS] - first[REPORT_TOKENS]);
    r->steps = last[REPORT_STEP] + 1;
    r->tokens = last[REPORT_TOKENS];
    r->skipped = last[REPORT_SKIPPED];
    r->seconds = last[REPORT_SECONDS];
    if (r->seconds > 0) r->speed = (r->tokens - (isnan(before) ? 0 : before)) / r->seconds;
    if (r->seconds > 0) r->wait = t->wait / 1e3 / r->seconds;
    if (t->mfu_time > 0) r->mfu = t->flops / t->mfu_time;
    r->loss_steps = average_loss(l, l->count, &r->loss, &r->loss_noise);
}

/* ---- advice ----
 *
 * The advice consists of sgt-train's diagnosis of the loss curve, and of problems of the entire
 * run. */

/* Thresholds for advice about the loader. It is given if waiting for data takes more than the
 * fraction WAITING of the training time, and more than AT_LEAST seconds, because every run waits a
 * little at its start. */
#define WAITING 0.05
#define AT_LEAST 1
/* Thresholds for overfitting. A run counts as overfitted if there were at least LATER evaluations
 * after the evaluation with the lowest validation loss, and the losses of all of them were more
 * than WORSE times the lowest. (A single later evaluation would not show a trend.) */
#define WORSE 1.02
#define LATER 3

static void advise(report_run *r, int grave, const char *fmt, ...) SGT_PRINTF(3, 4);
static void advise(report_run *r, int grave, const char *fmt, ...)
{
    va_list args;
    if (r->advice_count == REPORT_ADVICE) return;
    va_start(args, fmt);
    r->grave[r->advice_count] = grave;
    if (vasprintf(&r->advice[r->advice_count++], fmt, args) < 0) sgt_no_memory();
    va_end(args);
}

/* Add advice about the learning rate if it is unusual. It is checked only for AdamW, because for
 * other optimizers, the usual range is not known. */
static void judge_rate(report_run *r)
{
    const sgt_config *s = &r->settings;
    char line[256];
    if (r->parameters && s->step.optim.kind == SGT_ADAMW &&
        sgt_advice_lr_outside(line, sizeof line, r->parameters, s->batch * s->accum, s->lr))
        advise(r, 0, "%s", line);
}

static void start_diagnosis(totals *t, const sgt_config *s)
{
    sgt_diagnosis_start(&t->diagnosis, s->lr, s->batch * s->accum * s->seq, !!s->step.skip_spikes);
    if (s->steps != SGT_DEFAULT_COUNT) t->diagnosis.steps = s->steps;
}

/* Pass the values v of a row of the log to the diagnosis of the loss curve. In fp16, training
 * regularly tries a loss scale that is too high, so that a gradient overflows and the step is
 * skipped. For such a step, pass a gradient norm of 0, because the diagnosis would otherwise report
 * the overflow as a problem. */
static void diagnose(report_run *r, totals *t, const double *v)
{
    char line[256];
    int scaled = r->settings.step.precision == SGT_PRECISION_FP16;
    double norm = scaled && v[REPORT_SKIPPED] > t->skipped ? 0 : v[REPORT_NORM];
    t->skipped = v[REPORT_SKIPPED];
    if (sgt_diagnosis_step(&t->diagnosis, line, sizeof line, (uint64_t)v[REPORT_STEP] + 1,
                           v[REPORT_LOSS], norm, v[REPORT_LR]))
        advise(r, t->diagnosis.grave, "%s", line);
}

/* Add advice about the entire run in these cases: the validation loss has risen since its lowest
 * value, or is far above the training loss of the same steps; or the run spends too much time
 * waiting for the loader. If the standard error of the validation loss is unknown, use the standard
 * deviation of the training loss of single steps instead. */
static void judge_whole(report_run *r, const totals *t)
{
    char line[256];
    double loss, noise;
    size_t n = average_loss(&r->log, t->val_end, &loss, &noise);
    double val_noise = r->val_noise > 0 ? r->val_noise : noise * sqrt((double)n);
    if (t->later >= LATER && t->least_later > WORSE * r->best_val)
        advise(r, 0,
               "the validation loss was lowest after step %.0f (%.4g) and has risen to %.4g since: "
               "the model is overfitting (use fewer --epochs, more data, or --dropout 0.1)",
               r->best_step, r->best_val, r->val_loss);
    else if (sgt_advice_gap(line, sizeof line, loss, noise, r->val_loss, val_noise))
        advise(r, 0, "%s", line);
    if (r->wait > WAITING && r->wait * r->seconds > AT_LEAST)
        advise(r, 0, "%.0f %% of the time was spent waiting for batches: %s", 100 * r->wait,
               r->settings_known && r->settings.loader == SGT_READER_PRELOAD
                   ? "use more --workers"
                   : "use --loader preload or uring, or more --workers");
}

/* ---- the text sample ---- */

/* Maximum number of parameters of a model with which a text sample is generated. With so many
 * parameters, this takes two seconds on one CPU core, and 256 MiB of memory. */
#define MOST_PARAMETERS 64000000

/* Store a message as the reason why there is no text sample. A hint in parentheses at the end of
 * the message is removed, because it is about an option that only sgt-sample has. */
static void explain(report_run *r, const char *message)
{
    snprintf(r->no_sample, sizeof r->no_sample, "%s", message);
    char *hint = strrchr(r->no_sample, '(');
    if (hint && hint > r->no_sample && message[strlen(message) - 1] == ')') hint[-1] = 0;
}

/* Store the generated text, up to its first NUL, as the text sample of the run, with control
 * characters replaced with spaces. */
static void keep_sample(report_run *r, const sample_text *t)
{
    r->sample = strndup(t->n ? t->bytes : "", t->n);
    if (!r->sample) sgt_no_memory();
    for (char *c = r->sample; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
}

/* The options are the defaults of sgt-sample, which draw tokens at random, because greedy decoding
 * with a model that has been trained only a little may generate nothing but newlines. */
int report_run_sample(report_run *r, const sgt_stop *stop, sgt_error *err)
{
    const sgt_option_list none = {.count = 0};
    sample_run s = {.show = {.json = 1}};
    sgt_decoder_options d = {.sequences = 1, .threads = 1};
    sgt_generate_options g = {.choice = {.temperature = 0.8, .top_k = 200, .seed = 1},
                              .tokens = REPORT_SAMPLE_TOKENS,
                              .stop = stop};
    int rc = SGT_OK;
    if (!r->checkpoint) rc = sgt_fail(err, SGT_EFORMAT, "the run has no checkpoint yet");
    else if (r->parameters > MOST_PARAMETERS)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "the model has more than %d million parameters: run sgt-sample instead",
                      MOST_PARAMETERS / 1000000);
    if (rc == SGT_OK) rc = sample_model_find(&s.model, r->checkpoint, NULL, NULL, err);
    if (rc == SGT_OK) rc = sample_prompts_read(&s.prompts, &none, &none, err);
    if (rc == SGT_OK) rc = sample_generate(&s, 1, &d, &g, err);
    if (rc == SGT_OK) keep_sample(r, s.show.texts);
    sample_run_close(&s);
    if (rc == SGT_ESTOPPED) return rc;
    if (rc < 0) explain(r, err->text);
    return SGT_OK;
}

/* ---- everything ---- */

/* Maximum time in seconds since the log of a run last grew, if the run counts as still training. It
 * is the time of ten steps if that is longer. */
#define LEAST_IDLE 120

/* Compute the numbers, the advice and the curves of a run from the rows of its log. */
static void digest_log(report_run *r)
{
    report_log *l = &r->log;
    totals t = {0};
    int judged = r->settings_known && !r->settings.overfit;
    double seconds = 0;
    r->steps = r->loss = r->val_loss = r->val_bits = r->best_val = r->best_step = r->tokens =
        r->mfu = r->skipped = r->peak = r->seconds = r->speed = r->wait = r->loss_noise =
            r->val_noise = NAN;
    if (!l->count) return;
    if (judged) judge_rate(r);
    if (judged) start_diagnosis(&t, &r->settings);
    for (size_t i = 0; i < l->count; i++) {
        report_row *row = &l->rows[i];
        if (row->v[REPORT_MS] > 0) seconds += row->v[REPORT_MS] / 1e3;
        row->v[REPORT_SECONDS] = seconds;
        add_totals(r, &t, row);
        if (is_evaluated(row)) t.val_end = i + 1;
        /* Replace the row's peak memory with the highest peak so far, because a resumed run is a
         * new process, whose own peak starts low again. */
        row->v[REPORT_PEAK] = r->peak;
        if (judged) diagnose(r, &t, row->v);
    }
    make_bins(&r->bins, l, 0, MOST_BINS);
    make_bins(&r->evaluations, l, 1, MOST_DOTS);
    finish_totals(r, &t);
    judge_whole(r, &t);
    /* free the rows now, because 10^6 rows take 100 MB, and a page can have several runs */
    free(l->rows);
    l->rows = NULL;
}

/* Set r->going to 1 if the run seems to be still training: if steps are left, its log has grown
 * recently (LEAST_IDLE), and the process that owns its folder is alive, as far as this machine can
 * tell. Set r->idle to the time since the log last grew. */
static void find_going(report_run *r)
{
    struct stat st;
    sgt_error why;
    char path[SGT_PATH];
    if (!r->settings_known || r->steps >= (double)r->settings.steps ||
        stat(sgt_path(path, r->path, "log.jsonl"), &st) < 0)
        return;
    /* the absolute value, because the machine that writes the log may have a clock that is ahead */
    r->idle = fabs(difftime(time(NULL), st.st_mtime));
    r->going = r->idle < fmax(LEAST_IDLE, r->last.v[REPORT_MS] / 100) &&
               sgt_owner_lives(sgt_path(path, r->path, "owner"), NULL, &why) == 1;
}

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err)
{
    size_t n = strlen(path);
    sgt_error why;
    *r = (report_run){.starts = json_array()};
    sgt_config_default(&r->settings);
    if (!program) program = sgt_memory_resident();
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= sizeof r->path) return sgt_fail(err, SGT_EUSAGE, "a path of %zu bytes is too long", n);
    memcpy(r->path, path, n);
    sgt_printable(r->name, sizeof r->name, r->path);
    snprintf(r->validation, sizeof r->validation, "%s, validation", r->name);
    int rc = check_folder(r->path, err);
    if (rc < 0) return rc;
    if ((rc = sgt_json_lines(r->path, "log.jsonl", add_row, r, &r->log.half, err)) < 0) return rc;
    if (r->log.damaged)
        sgt_say(notice, "%s/log.jsonl: skipped %llu damaged line%s", r->path,
                (unsigned long long)r->log.damaged, r->log.damaged == 1 ? "" : "s");
    sgt_json_lines(r->path, "memory.jsonl", add_memory, r, NULL, NULL);
    if (parse_options(r, &why) < 0) sgt_say(notice, "the page lacks the options: %s", why.text);
    read_checkpoint(r);
    sgt_json_lines(r->path, "starts.jsonl", add_start, r, NULL, NULL);
    if (r->log.count) estimate_memory(r, notice);
    digest_log(r);
    find_going(r);
    return SGT_OK;
}

void report_run_close(report_run *r)
{
    for (size_t i = 0; i < r->advice_count; i++) free(r->advice[i]);
    json_decref(r->options);
    json_decref(r->starts);
    sgt_config_free(&r->settings);
    free(r->log.rows);
    free(r->bins.at);
    free(r->evaluations.at);
    free(r->checkpoint);
    free(r->sample);
}
