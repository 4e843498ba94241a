/* run.c: reads a run's folder: options.json, the newest checkpoint and the logs. It also computes
 * the headline numbers. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "train/model/config.h"
#include "train/run/run.h"
#include "tools/report/report.h"

/* most bytes of options.json and starts.jsonl; options.json has one thousand */
#define MOST ((size_t)1 << 20)

static int there(const char *folder, const char *name)
{
    char *path = sgt_join(folder, name);
    int yes = path && access(path, F_OK) == 0;
    free(path);
    return yes;
}

static int check_folder(const char *path, sgt_error *err)
{
    struct stat st;
    if (stat(path, &st) < 0) return sgt_fail_errno(err, "%s", path);
    if (S_ISDIR(st.st_mode) &&
        (there(path, "log.jsonl") || there(path, "options.json") || there(path, "latest")))
        return SGT_OK;
    return sgt_fail(
        err, SGT_EFORMAT,
        "%s: no run of sgt-train: no log.jsonl in it (a report is made of what --run named)", path);
}

/* ---- options and checkpoint ---- */

/* Read options.json. An error in it is only reported, because the curves can still be shown. */
static void read_options(report_run *r, const sgt_notice *notice)
{
    sgt_error why;
    char *text = NULL, *path = sgt_join(r->path, "options.json");
    size_t n;
    if (path && access(path, F_OK) == 0) {
        int rc = sgt_file_get(&text, &n, path, MOST, &why);
        if (rc == SGT_OK) {
            r->options = json_loadb(text, n, 0, NULL);
            if (json_is_object(r->options))
                rc = sgt_settings_merge(&r->settings, text, path, 1, &why);
            else rc = sgt_fail(&why, SGT_EFORMAT, "%s: expected a JSON object", path);
            r->settings_known =
                rc == SGT_OK && r->settings.given[SGT_SET_LR] && r->settings.given[SGT_SET_BATCH];
        }
        if (rc < 0) sgt_say(notice, "%s: left out", why.text);
    }
    if (!json_is_object(r->options)) {
        json_decref(r->options);
        r->options = NULL;
    }
    free(text);
    free(path);
}

static void read_checkpoint(report_run *r)
{
    char *dir = NULL;
    sgt_checkpoint_state state;
    sgt_model m;
    if (sgt_run_newest(&dir, r->path, 0, NULL, NULL) == SGT_OK && dir) {
        if (sgt_checkpoint_read(&state, dir, NULL) == SGT_OK) {
            r->data_hash = state.data_hash;
            snprintf(r->device, sizeof r->device, "%s, %s, %s",
                     strcmp(state.device, "cuda") == 0 ? "CUDA" : "CPU", state.level,
                     state.library);
            sgt_checkpoint_state_free(&state);
        }
        if (sgt_config_read(&m, dir, NULL) == SGT_OK) r->parameters = sgt_model_parameters(&m);
    }
    r->checkpoint = dir;
}

static void take_text(char *buf, size_t n, const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));
    if (text) sgt_printable(buf, n, text);
}

/* Read starts.jsonl, which runs of older versions do not have. */
static void read_starts(report_run *r)
{
    char *text = NULL, *path = sgt_join(r->path, "starts.jsonl");
    size_t n;
    if (!path || sgt_file_get(&text, &n, path, MOST, NULL) < 0) n = 0;
    for (char *at = text, *end; n && (end = memchr(at, '\n', n - (size_t)(at - text)));
         at = end + 1) {
        json_t *line = json_loadb(at, (size_t)(end - at), 0, NULL);
        if (json_is_object(line) && r->starts++ == 0)
            take_text(r->begun, sizeof r->begun, line, "time");
        take_text(r->resumed, sizeof r->resumed, line, "time");
        take_text(r->host, sizeof r->host, line, "host");
        take_text(r->machine, sizeof r->machine, line, "machine");
        take_text(r->command, sizeof r->command, line, "command");
        json_decref(line);
    }
    free(text);
    free(path);
}

static void estimate(report_run *r)
{
    sgt_error why = {0};
    sgt_train_options o = {.run = r->path};
    if (!r->settings_known) {
        snprintf(r->why_not, sizeof r->why_not, "the run's options are not known");
        return;
    }
    r->estimated = sgt_train_estimate_memory(&r->settings, &o, &r->estimate, &why) == SGT_OK;
    if (!r->estimated) snprintf(r->why_not, sizeof r->why_not, "%s", why.text);
    else if (!r->parameters) r->parameters = sgt_model_parameters(&r->estimate.model);
    sgt_model m;
    if (!r->parameters && r->settings.model &&
        sgt_model_named(&m, r->settings.model, NULL) == SGT_OK)
        r->parameters = sgt_model_parameters(&m);
}

/* ---- headline numbers ---- */

/* steps whose mean is the final loss: at least this many, or 1 % of all if that is more */
#define FINAL 20

/* Compute the final loss and its standard error. The error is estimated from the deviations from a
 * straight line through the last losses. */
static void final_loss(report_run *r)
{
    const report_log *l = &r->log;
    size_t n = (l->count + 99) / 100 > FINAL ? (l->count + 99) / 100 : FINAL;
    if (n > l->count) n = l->count;
    double sum = 0, xx = 0, xy = 0, squares = 0, middle = ((double)n - 1) / 2;
    const report_row *last = l->rows + l->count - n;
    for (size_t i = 0; i < n; i++) sum += last[i].v[REPORT_LOSS];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        xx += ((double)i - middle) * ((double)i - middle);
        xy += ((double)i - middle) * (last[i].v[REPORT_LOSS] - mean);
    }
    for (size_t i = 0; i < n; i++) {
        double off = last[i].v[REPORT_LOSS] - mean - (xx > 0 ? xy / xx * ((double)i - middle) : 0);
        squares += off * off;
    }
    r->loss = mean;
    r->loss_steps = n;
    r->loss_noise = n > 2 ? sqrt(squares / (double)(n - 2) / (double)n) : (double)NAN;
}

/* Compute the headline numbers. Rates that vary from step to step are averages over the whole run,
 * weighted by time. */
static void sum_up(report_run *r)
{
    const report_log *l = &r->log;
    double before = NAN, wait = 0, flops = 0, mfu_time = 0;
    r->steps = r->loss = r->val_loss = r->val_bits = r->best_val = r->best_step = r->tokens =
        r->mfu = r->skipped = r->peak = NAN;
    r->seconds = r->speed = r->wait = r->loss_noise = NAN;
    for (size_t i = 0; i < l->count; i++) {
        const double *v = l->rows[i].v;
        double ms = v[REPORT_MS];
        r->broken |= isnan(v[REPORT_LOSS]);
        if (!isnan(v[REPORT_VAL])) {
            r->val_loss = v[REPORT_VAL];
            r->val_bits = v[REPORT_BITS];
        }
        if (!isnan(v[REPORT_VAL]) && !(v[REPORT_VAL] >= r->best_val)) {
            r->best_val = v[REPORT_VAL];
            r->best_step = v[REPORT_STEP] + 1;
        }
        if (v[REPORT_WAIT] > 0) wait += v[REPORT_WAIT];
        if (ms > 0 && v[REPORT_MFU] > 0) {
            flops += v[REPORT_MFU] * ms;
            mfu_time += ms;
        }
        if (!(v[REPORT_PEAK] <= r->peak)) r->peak = v[REPORT_PEAK];
    }
    if (!l->count) return;
    final_loss(r);
    const double *first = l->rows[0].v, *last = l->rows[l->count - 1].v;
    if (l->count > 1)
        before = first[REPORT_TOKENS] - (l->rows[1].v[REPORT_TOKENS] - first[REPORT_TOKENS]);
    r->steps = last[REPORT_STEP] + 1;
    r->tokens = last[REPORT_TOKENS];
    r->skipped = last[REPORT_SKIPPED];
    r->seconds = last[REPORT_SECONDS];
    if (isnan(before)) before = 0;
    if (r->seconds > 0) r->speed = (r->tokens - before) / r->seconds;
    if (r->seconds > 0) r->wait = wait / 1e3 / r->seconds;
    if (mfu_time > 0) r->mfu = flops / mfu_time;
}

/* ---- everything ---- */

static int read_logs(report_run *r, sgt_error *err)
{
    char *log = sgt_join(r->path, "log.jsonl"), *memory = sgt_join(r->path, "memory.jsonl");
    int rc = log && memory ? report_log_read(&r->log, log, err) : sgt_fail_memory(err, r->path);
    if (rc == SGT_OK) rc = report_memory_read(&r->memory, memory, err);
    if (rc == SGT_OK) rc = report_thin(&r->bins, &r->log, 0, err);
    if (rc == SGT_OK) rc = report_thin(&r->evaluations, &r->log, 1, err);
    free(log);
    free(memory);
    return rc;
}

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err)
{
    size_t n = strlen(path);
    *r = (report_run){0};
    sgt_settings_default(&r->settings);
    while (n > 1 && path[n - 1] == '/') n--;
    if (n >= sizeof r->path) return sgt_fail(err, SGT_EUSAGE, "a path of %zu bytes", n);
    memcpy(r->path, path, n);
    sgt_printable(r->name, sizeof r->name, r->path);
    snprintf(r->validation, sizeof r->validation, "%s, validation", r->name);
    int rc = check_folder(r->path, err);
    if (rc == SGT_OK) rc = read_logs(r, err);
    if (rc < 0) return rc;
    if (r->log.damaged)
        sgt_say(notice, "%s/log.jsonl: %llu damaged line%s left out", r->path,
                (unsigned long long)r->log.damaged, r->log.damaged == 1 ? "" : "s");
    read_options(r, notice);
    read_checkpoint(r);
    read_starts(r);
    sum_up(r);
    if (r->log.count) estimate(r);
    if (r->log.count && r->settings_known && !r->estimated)
        sgt_say(notice, "%s: no estimate of its memory: %s", r->name, r->why_not);
    report_advise(r);
    free(r->log.rows); /* the rows of 10^6 steps take 100 MB, and there may be more runs */
    r->log.rows = NULL;
    return SGT_OK;
}

void report_run_close(report_run *r)
{
    for (size_t i = 0; i < r->advice_count; i++) free(r->advice[i]);
    json_decref(r->options);
    sgt_settings_free(&r->settings);
    report_log_free(&r->log);
    free(r->bins.at);
    free(r->evaluations.at);
    free(r->memory.parts);
    free(r->checkpoint);
    free(r->sample);
    free(r->no_sample);
}
