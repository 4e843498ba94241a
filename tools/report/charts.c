/* charts.c: makes the page's charts over steps, for all runs together, and the curves that losses.c
 * draws, too. The charts of memory are in occupancy.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/talk.h"
#include "tools/report/charts.h"

double report_bytes_unit(double most, const char **name)
{
    static const struct {
        double bytes;
        const char *name;
    } units[] = {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof *units && most < 2 * units[i].bytes) i++;
    *name = units[i].name;
    return units[i].bytes;
}

char *report_says_bytes(char *buf, size_t n, double bytes)
{
    return sgt_format_bytes(buf, n, bytes > 0 ? (uint64_t)bytes : 0);
}

/* Return where a bin is on the x axis `x`: in completed steps, tokens, or seconds. */
static double place(const report_bin *b, int x) { return b->mean.v[x] + (x == REPORT_STEP); }

/* Add a column of a run as a curve. */
int report_add_curve(report_chart *c, const report_bins *b, report_kind kind, unsigned color,
                     const char *name, int x, int column, int band, sgt_error *err)
{
    report_point *p = report_chart_add(c, kind, color, b->count);
    if (!p) return sgt_fail_memory(err, "a picture");
    c->series[c->count - 1].band = band && b->steps > 1;
    c->series[c->count - 1].name = name;
    for (size_t i = 0; i < b->count; i++)
        p[i] = (report_point){place(&b->at[i], x), b->at[i].mean.v[column], b->at[i].low.v[column],
                              b->at[i].high.v[column]};
    return SGT_OK;
}

/* Add a noisy column as a faint line and a smooth line over it. */
int report_add_smooth(report_chart *c, const report *r, size_t run, int x, int column,
                      sgt_error *err)
{
    const report_bins *b = &r->runs[run].bins;
    const char *name = r->count > 1 ? r->runs[run].name : "value";
    unsigned color = (unsigned)run;
    if (b->count < REPORT_SMOOTH_LEAST)
        return report_add_curve(c, b, REPORT_LINE, color, name, x, column, 1, err);
    int rc = report_add_curve(c, b, REPORT_RAW, color, name, x, column, 1, err);
    report_point *p = rc == SGT_OK ? report_chart_add(c, REPORT_LINE, color, b->count) : NULL;
    if (!p) return rc < 0 ? rc : sgt_fail_memory(err, "a picture");
    report_smooth(p, c->series[c->count - 2].points, b->count, c->log_y);
    if (r->count == 1) c->series[c->count - 1].name = "smoothed";
    return SGT_OK;
}

/* Return where the longest run ended on the x axis `x`. */
static double end_of(const report *r, int x)
{
    double end = 0;
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        double at = x == REPORT_STEP ? run->steps : x == REPORT_TOKENS ? run->tokens : run->seconds;
        if (at > end) end = at;
    }
    return end;
}

/* Format a position on the x axis as the first line of a tooltip; the axis label has the unit. */
static char *says_step(char *buf, size_t n, double v)
{
    char count[32];
    snprintf(buf, n, "step %s",
             sgt_format_count(count, sizeof count, v > 0 ? (uint64_t)(v + 0.5) : 0));
    return buf;
}

static char *says_tokens(char *buf, size_t n, double v)
{
    char big[32];
    snprintf(buf, n, "after %s tokens", report_big(big, sizeof big, v));
    return buf;
}

static char *says_time(char *buf, size_t n, double v)
{
    char time[48];
    snprintf(buf, n, "after %s", report_time(time, sizeof time, v));
    return buf;
}

static void label_x(report_chart *c, int x)
{
    c->x_says = x == REPORT_STEP ? says_step : x == REPORT_TOKENS ? says_tokens : says_time;
    snprintf(c->x_label, sizeof c->x_label, "%s", x == REPORT_STEP ? "steps" : "tokens");
}

int report_add_curves(report_chart *c, const report *r, int x, int column, int noisy,
                      sgt_error *err)
{
    int rc = SGT_OK;
    c->x_end = end_of(r, x);
    label_x(c, x);
    for (size_t i = 0; i < r->count && rc == SGT_OK; i++)
        rc = noisy ? report_add_smooth(c, r, i, x, column, err)
                   : report_add_curve(c, &r->runs[i].bins, REPORT_LINE, (unsigned)i,
                                      r->count > 1 ? r->runs[i].name : "value", x, column, 0, err);
    return rc;
}

static char *says_number(char *buf, size_t n, double v)
{
    snprintf(buf, n, "%.3g", v);
    return buf;
}

static char *says_speed(char *buf, size_t n, double v)
{
    char big[32];
    snprintf(buf, n, "%s tokens/s", report_big(big, sizeof big, v));
    return buf;
}

static char *says_percent(char *buf, size_t n, double v)
{
    snprintf(buf, n, "%.3g\u00a0%%", 100 * v);
    return buf;
}

/* Append to the caption how steps were averaged, as in "Each point is the mean of 12 steps, the
 * shade behind it reaches from the lowest to the highest of them." */
void report_say_thinning(report_figure *g, const report *r, int band)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < r->count; i++) {
        uint64_t n = r->runs[i].bins.steps;
        if (!n) continue;
        if (n < least) least = n;
        if (n > most) most = n;
    }
    int smooth = 0;
    for (size_t i = 0; i < r->count; i++) smooth |= r->runs[i].bins.count >= REPORT_SMOOTH_LEAST;
    if (smooth && band)
        report_figure_say(g, "%sThe line is smoothed; the faint one behind it is not.",
                          *g->caption ? " " : "");
    if (most < 2) return;
    report_figure_say(g, "%sEach point is the mean of ", *g->caption ? " " : "");
    if (least == most) report_figure_say(g, "%llu steps", (unsigned long long)most);
    else
        report_figure_say(g, "%llu to %llu steps", (unsigned long long)least,
                          (unsigned long long)most);
    report_figure_say(g, "%s",
                      band ? ", the shade behind it reaches from the lowest to the highest of them."
                           : ".");
}

/* ---- optimizer ---- */

char *report_label_power(char *buf, size_t n, int power)
{
    static const char *const digits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    int p = -power;
    *buf = 0;
    if (p)
        snprintf(buf, n, "\u00d7 10\u207b%s%s", p > 9 ? digits[p / 10 % 10] : "", digits[p % 10]);
    return buf;
}

static int put_rate(FILE *page, const report *r, sgt_error *err)
{
    report_figure g = {.id = "lr", .of_runs = 1, .chart = {.zero = 1}};
    double most = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->runs[i].bins.count; k++)
            if (r->runs[i].bins.at[k].mean.v[REPORT_LR] > most)
                most = r->runs[i].bins.at[k].mean.v[REPORT_LR];
    int power = most > 0 && most < 0.1 ? (int)floor(log10(most) + 1e-6) : 0;
    g.chart.y_unit = pow(10, power);
    snprintf(g.title, sizeof g.title, "Learning rate");
    g.chart.y_says = says_number;
    if (!*report_label_power(g.chart.y_label, sizeof g.chart.y_label, power))
        snprintf(g.chart.y_label, sizeof g.chart.y_label, "learning rate");
    report_figure_say(&g, "What the schedule gave each step.");
    int rc = report_add_curves(&g.chart, r, REPORT_STEP, REPORT_LR, 0, err);
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}

/* Return the norm to which all runs clip gradients, or NAN if they differ. */
static double clip_of(const report *r)
{
    double clip = NAN;
    for (size_t i = 0; i < r->count; i++) {
        double c = r->runs[i].settings_known ? r->runs[i].settings.grad_clip : NAN;
        if (!(c > 0) || (i && c != clip)) return NAN;
        clip = c;
    }
    return clip;
}

/* Add a horizontal limit from step 0 to the last step of runs first .. end - 1. */
static int add_limit(report_chart *c, const report *r, double y, unsigned color, const char *name,
                     size_t first, size_t end, sgt_error *err)
{
    double last = 0;
    for (size_t i = first; i < end; i++)
        if (r->runs[i].steps > last) last = r->runs[i].steps;
    report_point *p = report_chart_add(c, REPORT_LIMIT, color, 2);
    if (!p) return sgt_fail_memory(err, "a picture");
    c->series[c->count - 1].name = name;
    p[0] = (report_point){.x = 0, .y = y};
    p[1] = (report_point){.x = last, .y = y};
    return SGT_OK;
}

static int add_skips(report_figure *g, const report *r, sgt_error *err)
{
    double skipped = 0;
    for (size_t i = 0; i < r->count; i++) {
        const report_bins *b = &r->runs[i].bins;
        size_t n = 0;
        for (size_t k = 0; k < b->count; k++) n += b->at[k].skipped > 0;
        if (!n) continue;
        report_point *p = report_chart_add(&g->chart, REPORT_RUG, (unsigned)i, n);
        if (!p) return sgt_fail_memory(err, "a picture");
        for (size_t k = 0; k < b->count; k++)
            if (b->at[k].skipped > 0)
                *p++ = (report_point){.x = place(&b->at[k], REPORT_STEP), .y = 1};
        skipped += r->runs[i].skipped;
    }
    if (skipped > 0)
        report_figure_key(g, "dots", r->count > 1 ? REPORT_RUNS : 0, "below: updates left out");
    if (skipped > 0)
        report_figure_say(g, "%.0f update%s left out.", skipped, skipped == 1 ? " was" : "s were");
    else report_figure_say(g, "No update was left out.");
    return SGT_OK;
}

static int put_norm(FILE *page, const report *r, sgt_error *err)
{
    report_figure g = {.id = "grad-norm", .of_runs = 1, .chart = {.log_y = 1}};
    double clip = clip_of(r);
    char name[48];
    snprintf(g.title, sizeof g.title, "Gradient norm");
    snprintf(g.chart.y_label, sizeof g.chart.y_label, "norm before clipping (log scale)");
    g.chart.y_says = says_number;
    int rc = report_add_curves(&g.chart, r, REPORT_STEP, REPORT_NORM, 1, err);
    if (rc == SGT_OK && clip > 0)
        rc = add_limit(&g.chart, r, clip, REPORT_RUNS, "clipped to", 0, r->count, err);
    if (rc == SGT_OK) rc = add_skips(&g, r, err);
    snprintf(name, sizeof name, "clipped to %g", clip);
    if (clip > 0) report_figure_key(&g, "limit", REPORT_RUNS, name);
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}

/* ---- speed ---- */

static int put_speed(FILE *page, const report *r, sgt_error *err)
{
    report_figure g = {.id = "speed",
                       .title = "Speed",
                       .of_runs = 1,
                       .chart = {.zero = 1, .y_label = "tokens per second", .y_says = says_speed}};
    report_figure_say(&g, "Higher is better.");
    report_say_thinning(&g, r, 1);
    int rc = report_add_curves(&g.chart, r, REPORT_STEP, REPORT_SPEED, 1, err);
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}

static int put_mfu(FILE *page, const report *r, sgt_error *err)
{
    report_figure g = {
        .id = "mfu",
        .title = "MFU",
        .of_runs = 1,
        .chart = {
            .zero = 1, .y_unit = .01, .y_label = "% of the peak speed", .y_says = says_percent}};
    report_figure_say(&g, "Higher is better. Model FLOPs utilization: the share of the device's "
                          "measured peak speed that goes into the model's own arithmetic.");
    int rc = report_add_curves(&g.chart, r, REPORT_STEP, REPORT_MFU, 1, err);
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}

/* Draw the time spent waiting for the loader, as a share of all time, because milliseconds alone
 * say little. */
static int put_wait(FILE *page, const report *r, sgt_error *err)
{
    report_figure g = {.id = "wait",
                       .title = "Waiting for the loader",
                       .of_runs = 1,
                       .chart = {.zero = 1,
                                 .y_unit = .01,
                                 .y_room = .01,
                                 .y_label = "% of a step's time",
                                 .y_says = says_percent}};
    double most = 0;
    int rc = SGT_OK;
    g.chart.x_end = end_of(r, REPORT_STEP);
    label_x(&g.chart, REPORT_STEP);
    for (size_t i = 0; i < r->count && rc == SGT_OK; i++) {
        const report_bins *b = &r->runs[i].bins;
        const char *name = r->count > 1 ? r->runs[i].name : "value";
        rc = report_add_curve(&g.chart, b, REPORT_LINE, (unsigned)i, name, REPORT_STEP, REPORT_WAIT,
                              0, err);
        for (size_t k = 0; k < b->count && rc == SGT_OK; k++) {
            g.chart.series[i].points[k].y /= b->at[k].mean.v[REPORT_MS];
            if (b->at[k].high.v[REPORT_WAIT] > most) most = b->at[k].high.v[REPORT_WAIT];
        }
    }
    report_figure_say(&g,
                      "Lower is better: near 0, batches are ready before they are asked for. The "
                      "longest wait was %.3g ms.",
                      most);
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}

/* Draw the peak memory from the log: of the process on a CPU, or of a device with its own
 * memory. */
static int put_peak(FILE *page, const report *r, sgt_error *err)
{
    report_figure g = {.id = "peak", .of_runs = 1, .chart = {.zero = 1}};
    const char *unit;
    double most = 0;
    int rc = report_add_curves(&g.chart, r, REPORT_STEP, REPORT_PEAK, 0, err), estimated = 0;
    for (size_t i = 0; i < r->count && rc == SGT_OK; i++) {
        const report_run *run = &r->runs[i];
        if (run->peak > most) most = run->peak;
        if (!run->estimated || !run->bins.count) continue;
        rc = add_limit(&g.chart, r, (double)run->estimate.total, (unsigned)i,
                       r->count > 1 ? NULL : "estimate", i, i + 1, err);
        if ((double)run->estimate.total > most) most = (double)run->estimate.total;
        estimated = 1;
    }
    g.chart.y_unit = report_bytes_unit(most, &unit);
    snprintf(g.title, sizeof g.title, "Peak memory");
    snprintf(g.chart.y_label, sizeof g.chart.y_label, "%s", unit);
    g.chart.y_says = report_says_bytes;
    if (estimated) report_figure_key(&g, "limit", r->count > 1 ? REPORT_RUNS : 0, "estimate");
    report_figure_say(&g, "The most memory that was in use up to each step%s.",
                      estimated ? ", and what was estimated for the run" : "");
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}

int report_put_steps(FILE *page, const report *r, sgt_error *err)
{
    static int (*const puts_figure[])(FILE *, const report *, sgt_error *) = {
        put_rate, put_norm, put_speed, put_mfu, put_wait, put_peak};
    int rc = SGT_OK;
    fputs("<section class=\"figures\" aria-labelledby=\"steps\">\n<h2 id=\"steps\">Steps</h2>\n",
          page);
    for (size_t i = 0; i < sizeof puts_figure / sizeof *puts_figure && rc == SGT_OK; i++)
        rc = puts_figure[i](page, r, err);
    fputs("</section>\n", page);
    return rc;
}
