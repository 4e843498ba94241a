/* sgt-report: writes an HTML page about one or more training runs, with curves such as the loss,
 * and with advice on how to train better. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tools/cli/options.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/report/report.h"

static struct {
    const char *out; /* path of the file for the page; NULL for a default name */
    int no_sample, json, quiet;
} o;

static const sgt_option table[] = {
    {.name = "Output"},
    {"output", 'o', SGT_OPT_TEXT, &o.out, "FILE",
     "file to write the page to; an existing page is replaced",
     .def = "RUN/report.html, or report.html for several runs"},
    {"no-sample", 0, SGT_OPT_FLAG, &o.no_sample, NULL,
     .help = "omit the sample text generated with the newest checkpoint"},
    {"json", 0, SGT_OPT_FLAG, &o.json, NULL,
     .help = "print the main numbers as one JSON object; make a page only if -o is also given"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, NULL,
     .help = "print only warnings, errors and --json output"},
    {0}};

static const sgt_program program = {.name = "sgt-report",
                                    .usage = "sgt-report [OPTION]... RUN/...",
                                    .about = "Makes an HTML page about one training run, or a page "
                                             "that compares several runs: loss, learning rate, "
                                             "gradient norm, speed, memory, options and advice. "
                                             "The page is one file and loads no other files.",
                                    .options = table,
                                    .examples = "  sgt-report run/\n"
                                                "  sgt-report runs/* -o compared.html"};

/* Return x as a JSON number, or JSON's null if x is NaN, which stands for an unknown value. */
static json_t *number(double x) { return isnan(x) ? json_null() : json_real(x); }

static json_t *run_json(const report_run *r)
{
    json_t *advice = json_array();
    for (size_t i = 0; i < r->advice_count; i++)
        json_array_append_new(advice, json_string(r->advice[i]));
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, "
        "s:o}",
        "run", r->name, "steps", json_integer(isnan(r->steps) ? 0 : (json_int_t)r->steps), "loss",
        number(r->loss), "loss_noise", number(r->loss_noise), "loss_steps",
        (json_int_t)r->loss_steps, "val_loss", number(r->val_loss), "val_noise",
        number(r->val_noise), "best_val_loss", number(r->best_val), "val_bits_per_byte",
        number(r->val_bits), "tokens", number(r->tokens), "seconds", number(r->seconds),
        "tokens_per_s", number(r->speed), "mfu", number(r->mfu), "data_wait", number(r->wait),
        "peak_bytes", number(r->peak), "repeated_lines", (json_int_t)r->log.repeated,
        "damaged_lines", (json_int_t)r->log.damaged, "advice", advice);
}

/* Print the main numbers of all runs as a JSON object. out: path of the page, or NULL if no page
 * was written. replaced: 1 if the page replaced an existing file, otherwise 0. */
static int print_json(const report *r, const char *out, int replaced, sgt_error *err)
{
    json_t *runs = json_array();
    for (size_t i = 0; i < r->count; i++) json_array_append_new(runs, run_json(&r->runs[i]));
    return sgt_print_json(json_pack("{s:o, s:b, s:o}", "report",
                                    out ? sgt_json_string(out) : json_null(), "replaced", replaced,
                                    "runs", runs),
                          JSON_REAL_PRECISION(9), err);
}

/* Write the page to the file at path `out`, and set *bytes to its size. The page is first built in
 * memory, and written only when it is complete, so that an error leaves no incomplete file. */
static int write_page(const report *r, const char *out, size_t *bytes, sgt_error *err)
{
    char *text = NULL;
    FILE *page = open_memstream(&text, bytes);
    if (!page) return sgt_fail_memory(err, out);
    report_put_page(page, r);
    int rc = (ferror(page) | fclose(page)) ? sgt_fail_memory(err, out) : SGT_OK;
    if (rc == SGT_OK && sgt_stopped(r->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "interrupted");
    if (rc == SGT_OK && (rc = sgt_file_put(out, text, *bytes, err)) < 0 && !o.out)
        rc = sgt_fail_hint(err, SGT_EFORMAT, "-o FILE writes the page elsewhere");
    free(text);
    return rc;
}

static int open_runs(report *r, char **paths, const sgt_notice *notice, sgt_error *err)
{
    int rc = SGT_OK;
    size_t count = r->count;
    for (r->count = 0; r->count < count && rc == SGT_OK;) {
        if (sgt_stopped(r->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        report_run *run = &r->runs[r->count];
        rc = report_run_open(run, paths[r->count], notice, err);
        r->count++;
        if (rc == SGT_OK && !o.no_sample) rc = report_run_sample(run, r->stop, err);
    }
    return rc;
}

static int make(report *r, char **paths, const sgt_notice *notice, sgt_error *err)
{
    size_t bytes = 0;
    char name[1024], size[32], beside[SGT_PATH] = "report.html";
    if (o.json && !o.out) o.no_sample = 1; /* no page is written */
    int rc = open_runs(r, paths, notice, err);
    if (rc < 0) return rc;
    if (r->count == 1) sgt_path(beside, r->runs[0].path, "report.html");
    const char *out = o.out ? o.out : o.json ? NULL : beside;
    int replaced = out && access(out, F_OK) == 0;
    if (out) rc = write_page(r, out, &bytes, err);
    if (rc == SGT_OK && o.json) rc = print_json(r, out, replaced, err);
    else if (rc == SGT_OK && !o.quiet)
        printf("%s: %zu run%s, %s%s\n", sgt_printable(name, sizeof name, out), r->count,
               r->count == 1 ? "" : "s", sgt_format_bytes(size, sizeof size, bytes),
               replaced ? "; replaced the earlier page" : "");
    return rc;
}

int main(int argc, char **argv)
{
    sgt_error err;
    int first = sgt_options_parse(&program, argc, argv), count = argc - first;
    if (count > REPORT_RUNS)
        sgt_usage(&program, "a page can show at most %d runs, not %d", REPORT_RUNS, count);
    if (o.out && !strcmp(o.out, "-"))
        sgt_usage(&program, "--output -: the page must be a file (use ./- for a file named -)");
    sgt_notice notice = sgt_talk_notice(program.name, o.quiet);
    report r = {.runs = calloc((size_t)count, sizeof *r.runs),
                .count = (size_t)count,
                .stop = sgt_catch_signals()};
    int rc = r.runs ? make(&r, argv + first, &notice, &err) : sgt_fail_memory(&err, NULL);
    for (size_t i = 0; i < r.count && r.runs; i++) report_run_close(&r.runs[i]);
    free(r.runs);
    return sgt_end_program(&program, rc, &err);
}
