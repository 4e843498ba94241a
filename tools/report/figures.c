/* figures.c: the figures of a page: the curves of all runs over steps, tokens, time or compute, and
 * the memory of each run. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "train/log/metrics.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/report/report.h"

static void add_caption(report_figure *g, const char *fmt, ...) SGT_PRINTF(2, 3);
static void add_caption(report_figure *g, const char *fmt, ...)
{
    size_t n = strlen(g->caption);
    va_list args;
    va_start(args, fmt);
    vsnprintf(g->caption + n, sizeof g->caption - n, fmt, args);
    va_end(args);
}

static void add_key(report_figure *g, const char *class, unsigned color, const char *name)
{
    if (g->key_count == REPORT_KEYS) return;
    report_key *key = &g->keys[g->key_count++];
    *key = (report_key){.class = class, .color = color};
    snprintf(key->name, sizeof key->name, "%s", name);
}

static void begin_section(FILE *page, const char *id, const char *title)
{
    fprintf(page, "<section class=\"figures\" aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n", id,
            id, title);
}

/* ---- units of axes and tooltips ---- */

/* An axis shows numbers in the largest unit of which its highest value has at least `least`. */
typedef struct unit {
    double size;
    const char *name;
} unit;

static double find_unit(const unit *units, size_t count, double most, double least,
                        const char **name)
{
    size_t i = 0;
    while (i + 1 < count && most < least * units[i].size) i++;
    *name = units[i].name;
    return units[i].size;
}

/* Set the y axis to bytes in the best unit for values up to `most`. */
static void set_bytes_axis(report_figure *g, double most)
{
    static const unit units[] = {{0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}};
    const char *name;
    g->zero = 1;
    g->y_unit = find_unit(units, sizeof units / sizeof *units, most, 2, &name);
    snprintf(g->y_label, sizeof g->y_label, "%s", name);
}

/* Return the power of ten that is the unit of an axis of small numbers up to `most`; 1 if they are
 * not small. Write it as in "× 10⁻⁴" to `label`; nothing if it is 1. */
static double find_power(double most, char *label, size_t n)
{
    static const char *const digits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    int p = most > 0 && most < 0.1 ? -(int)floor(log10(most) + 1e-6) : 0;
    *label = '\0';
    if (p)
        snprintf(label, n, "\u00d7 10\u207b%s%s", p > 9 ? digits[p / 10 % 10] : "", digits[p % 10]);
    return pow(10, -p);
}

/* ---- smooth lines ---- */

#define LEAST_SMOOTHED 20 /* shorter lines are not smoothed */
#define PART 12           /* the window's points to each side are all points / PART */
#define LEAST_SIDE 3

/* Return the value at `at` of a straight line fitted to the points up to `side` away, whose weight
 * is the tricube of their distance (LOESS of degree 1, Cleveland 1979). The fit is to y, or with
 * `rest`, to y minus low. Differences from the point's own value are fitted, so that constant
 * values stay exact. */
static double fit(const report_point *p, size_t count, size_t at, size_t side, int rest)
{
    double w0 = 0, w1 = 0, w2 = 0, d0 = 0, d1 = 0, own = rest ? p[at].y - p[at].low : p[at].y;
    size_t first = at > side ? at - side : 0, last = at + side < count ? at + side : count - 1;
    for (size_t i = first; i <= last; i++) {
        double x = (double)i - (double)at, v = (rest ? p[i].y - p[i].low : p[i].y) - own;
        double u = fabs(x) / (double)(side + 1), w = pow(1 - u * u * u, 3);
        if (isnan(v)) continue;
        w0 += w;
        w1 += w * x;
        w2 += w * x * x;
        d0 += w * v;
        d1 += w * x * v;
    }
    double spread = w0 * w2 - w1 * w1;
    return own + (spread > 1e-9 * w0 * w2 ? (w2 * d0 - w1 * d1) / spread : d0 / w0);
}

/* Set each to[i].y to the smooth value at from[i]. Straight lines stay straight, and NAN stays NAN.
 * The residuals are smoothed too and added (Tukey's twicing), because a line would cut across the
 * bend of a loss curve. At a run's steep start, the window reaches as far to each side as there are
 * points before. logs: smooth logarithms of the values. */
static void smooth(report_point *to, const report_point *from, size_t count, int logs)
{
    size_t most = count / PART > LEAST_SIDE ? count / PART : LEAST_SIDE;
    for (size_t i = 0; i < count; i++) {
        double y = from[i].y;
        to[i] = (report_point){.x = from[i].x, .y = !logs ? y : y > 0 ? log(y) : (double)NAN};
    }
    for (size_t i = 0; i < count; i++)
        to[i].low = isnan(to[i].y) ? to[i].y : fit(to, count, i, i < most ? i : most, 0);
    for (size_t i = 0; i < count; i++)
        to[i].high =
            isnan(to[i].y) ? to[i].y : to[i].low + fit(to, count, i, i < most ? i : most, 1);
    for (size_t i = 0; i < count; i++)
        to[i].y = to[i].low = to[i].high = logs ? exp(to[i].high) : to[i].high;
}

/* ---- curves over steps, tokens, time or compute ---- */

/* Besides columns of the log, an x axis can show PF-days: compute differs by the runs' models. */
#define COMPUTE REPORT_COLUMNS

/* Return a row's place on the x axis: in completed steps, tokens, seconds, or PF-days. */
static double place(const report_run *run, const report_row *row, int x)
{
    if (x == COMPUTE) return sgt_pf_days(run->parameters, 1) * row->v[REPORT_TOKENS];
    return row->v[x] + (x == REPORT_STEP);
}

/* Return where the run ended on the x axis. */
static double end_of(const report_run *run, int x)
{
    switch (x) {
    case REPORT_STEP: return run->steps;
    case REPORT_TOKENS: return run->tokens;
    case REPORT_SECONDS: return run->seconds;
    default: return sgt_pf_days(run->parameters, 1) * run->tokens;
    }
}

/* Set the x axis of the curves, which ends where the longest run does. */
static void set_x_axis(report_figure *g, const report *r, int x)
{
    static const unit times[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};
    const char *name = "steps";
    char power[32] = "";
    for (size_t i = 0; i < r->count; i++)
        if (end_of(&r->runs[i], x) > g->x_end) g->x_end = end_of(&r->runs[i], x);
    if (x == REPORT_STEP) {
        g->x_words = (report_words){"step ", REPORT_COUNT, ""};
    } else if (x == REPORT_TOKENS) {
        g->x_words = (report_words){"after ", REPORT_BIG, " tokens"};
        name = "tokens";
    } else if (x == REPORT_SECONDS) {
        g->x_words = (report_words){"after ", REPORT_TIME, ""};
        g->x_unit = find_unit(times, sizeof times / sizeof *times, g->x_end, 3, &name);
    } else {
        g->x_words = (report_words){"after ", REPORT_DIGITS, " PF-days"};
        g->x_unit = find_power(g->x_end, power, sizeof power);
        name = *power ? " PF-days" : "PF-days";
    }
    snprintf(g->x_label, sizeof g->x_label, "%s%s", power, name);
}

/* Return the name of a column in the tooltips of a run. */
static const char *name_curve(const report *r, size_t run, int column)
{
    if (r->count > 1) return column == REPORT_VAL ? r->runs[run].validation : r->runs[run].name;
    return column == REPORT_VAL ? "validation" : column == REPORT_LOSS ? "training" : "value";
}

/* Add a column of a run over x as a curve. */
static report_point *add_curve(report_figure *g, const report *r, size_t run, report_kind kind,
                               int x, int column)
{
    const report_run *of = &r->runs[run];
    const report_bins *b = column == REPORT_VAL ? &of->evaluations : &of->bins;
    unsigned color = r->count == 1 && column == REPORT_VAL ? 1 : (unsigned)run;
    report_point *p = report_add_series(g, kind, color, name_curve(r, run, column), b->count);
    for (size_t i = 0; i < b->count; i++)
        p[i] = (report_point){place(of, &b->at[i].mean, x), b->at[i].mean.v[column],
                              b->at[i].low.v[column], b->at[i].high.v[column]};
    return p;
}

/* Add a column of all runs over x. */
static void add_curves(report_figure *g, const report *r, int x, int column)
{
    set_x_axis(g, r, x);
    for (size_t i = 0; i < r->count; i++) add_curve(g, r, i, REPORT_LINE, x, column);
}

/* Add a noisy column of all runs over x: faint lines with their bands, each with a smooth line over
 * it if there are enough points. */
static void add_noisy_curves(report_figure *g, const report *r, int x, int column)
{
    set_x_axis(g, r, x);
    for (size_t i = 0; i < r->count; i++) {
        const report_bins *b = &r->runs[i].bins;
        int smoothed = b->count >= LEAST_SMOOTHED;
        report_point *p = add_curve(g, r, i, smoothed ? REPORT_RAW : REPORT_LINE, x, column);
        g->series[g->count - 1].band = b->steps > 1;
        const char *name = r->count > 1 ? NULL : "smoothed";
        if (smoothed)
            smooth(report_add_series(g, REPORT_LINE, (unsigned)i, name, b->count), p, b->count,
                   g->log_y);
    }
}

/* Append to the caption how steps were averaged, as in "Each point is the mean of 12 steps, the
 * shade behind it reaches from the lowest to the highest of them." */
static void explain_bins(report_figure *g, const report *r)
{
    uint64_t least = UINT64_MAX, most = 0;
    int smoothed = 0;
    for (size_t i = 0; i < r->count; i++) {
        const report_bins *b = &r->runs[i].bins;
        if (b->steps && b->steps < least) least = b->steps;
        if (b->steps > most) most = b->steps;
        smoothed |= b->count >= LEAST_SMOOTHED;
    }
    if (smoothed) add_caption(g, " The line is smoothed; the faint one behind it is not.");
    if (most < 2) return;
    add_caption(g, " Each point is the mean of ");
    if (least < most) add_caption(g, "%llu to ", (unsigned long long)least);
    add_caption(g,
                "%llu steps, the shade behind it reaches from the lowest to the highest of them.",
                (unsigned long long)most);
}

/* ---- losses ---- */

/* percentage of all losses that the chart of losses always shows, besides each run's first loss */
#define MOST_SHOWN 98

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Set the upper limit of the chart: above the first losses and nearly all others, so that one
 * diverged curve does not flatten the rest. Return how many losses are higher. */
static size_t limit_losses(report_figure *g, const report *r)
{
    size_t room = 0, n = 0, above = 0;
    for (size_t i = 0; i < r->count; i++) room += r->runs[i].bins.count;
    double *all = calloc(room + !room, sizeof *all), most = 0;
    if (!all) sgt_no_memory();
    for (size_t i = 0; i < r->count; i++) {
        const report_bins *b = &r->runs[i].bins;
        if (b->count && b->at[0].mean.v[REPORT_LOSS] > most) most = b->at[0].high.v[REPORT_LOSS];
        for (size_t k = 0; k < b->count; k++)
            if (!isnan(b->at[k].mean.v[REPORT_LOSS])) all[n++] = b->at[k].mean.v[REPORT_LOSS];
    }
    qsort(all, n, sizeof *all, compare_numbers);
    if (n && all[n * MOST_SHOWN / 100] > most) most = all[n * MOST_SHOWN / 100];
    for (size_t i = 0; i < n; i++) above += all[i] > most;
    free(all);
    g->y_most = most;
    return above;
}

/* Write the legend and the caption of the large chart, which explain all of them. */
static void explain_losses(report_figure *g, const report *r, size_t above)
{
    uint64_t most = 0; /* evaluations in a dot */
    for (size_t i = 0; i < r->count; i++)
        if (r->runs[i].evaluations.steps > most) most = r->runs[i].evaluations.steps;
    if (r->count == 1) add_key(g, "line", 0, "training");
    if (most && r->count == 1) add_key(g, "dots", 1, "validation");
    if (most && r->count > 1) add_key(g, "dots", REPORT_RUNS, "with dots: validation");
    explain_bins(g, r);
    if (most > 1)
        add_caption(g, " A dot is the mean of up to %llu evaluations.", (unsigned long long)most);
    if (above) add_caption(g, " Cut off: %zu point%s above.", above, above == 1 ? "" : "s");
    if (!most) add_caption(g, " Nothing was evaluated.");
}

static void put_loss(FILE *page, const report *r, report_figure g, int x)
{
    size_t above = limit_losses(&g, r);
    add_noisy_curves(&g, r, x, REPORT_LOSS);
    for (size_t i = 0; i < r->count; i++) add_curve(&g, r, i, REPORT_MARKS, x, REPORT_VAL);
    g.y_words = (report_words){"", REPORT_DIGITS, " nats"};
    snprintf(g.y_label, sizeof g.y_label, "nats per token");
    g.large = g.of_runs = x == REPORT_STEP;
    if (x == REPORT_STEP) explain_losses(&g, r, above);
    report_put_figure(page, r, &g);
}

/* Return whether runs can be compared by their compute: models of several sizes do not do the same
 * work for a token. */
static int has_compute(const report *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!(end_of(&r->runs[i], COMPUTE) > 0)) return 0;
    return r->count > 1;
}

void report_put_losses(FILE *page, const report *r)
{
    static const report_figure over_steps = {
        .id = "loss-steps",
        .title = "Loss over steps",
        .caption = "Lower is better. The loss is in nats per token (1 nat is 1.44 bits): a model "
                   "that gives every next token a probability of 1/n has a loss of ln n, 10.8 for "
                   "GPT-2's 50,257."};
    static const report_figure over_tokens = {
        .id = "loss-tokens",
        .title = "Loss over tokens",
        .caption = "Lower is better: what the model learns from so much text, however large its "
                   "steps are."};
    static const report_figure over_time = {
        .id = "loss-time",
        .title = "Loss over time",
        .caption = "Lower is better. Time within steps: without evaluations, checkpoints and "
                   "interruptions."};
    static const report_figure over_compute = {
        .id = "loss-compute",
        .title = "Loss over compute",
        .caption = "Lower is better. A PF-day is 10\u00b9\u2075 operations a second for a day. "
                   "Training takes 6 per parameter and token."};
    begin_section(page, "loss", "Loss");
    put_loss(page, r, over_steps, REPORT_STEP);
    put_loss(page, r, over_tokens, REPORT_TOKENS);
    put_loss(page, r, over_time, REPORT_SECONDS);
    if (has_compute(r)) put_loss(page, r, over_compute, COMPUTE);
    fputs("</section>\n", page);
}

/* ---- steps ---- */

static void put_rate(FILE *page, const report *r)
{
    report_figure g = {.id = "lr",
                       .title = "Learning rate",
                       .caption = "What the schedule gave each step.",
                       .of_runs = 1,
                       .zero = 1,
                       .y_words = {"", REPORT_DIGITS, ""}};
    double most = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->runs[i].bins.count; k++)
            most = fmax(most, r->runs[i].bins.at[k].mean.v[REPORT_LR]);
    g.y_unit = find_power(most, g.y_label, sizeof g.y_label);
    if (!*g.y_label) snprintf(g.y_label, sizeof g.y_label, "learning rate");
    add_curves(&g, r, REPORT_STEP, REPORT_LR);
    report_put_figure(page, r, &g);
}

/* Add a horizontal limit from x = 0 to `end`. */
static void add_limit(report_figure *g, double y, double end, unsigned color, const char *name)
{
    report_point *p = report_add_series(g, REPORT_LIMIT, color, name, 2);
    p[0] = (report_point){.x = 0, .y = y};
    p[1] = (report_point){.x = end, .y = y};
}

/* Return the norm to which all runs clip gradients, or NAN if they differ. */
static double clip_of(const report *r)
{
    double clip = NAN;
    for (size_t i = 0; i < r->count; i++) {
        double c = r->runs[i].settings_known ? r->runs[i].settings.step.optim.grad_clip : NAN;
        if (!(c > 0) || (i && c != clip)) return NAN;
        clip = c;
    }
    return clip;
}

static void add_skips(report_figure *g, const report *r)
{
    double skipped = 0;
    for (size_t i = 0; i < r->count; i++) {
        const report_bins *b = &r->runs[i].bins;
        report_point *p = report_add_series(g, REPORT_RUG, (unsigned)i, NULL, b->count);
        for (size_t k = 0; k < b->count; k++)
            p[k] = (report_point){.x = place(&r->runs[i], &b->at[k].mean, REPORT_STEP),
                                  .y = b->at[k].skipped > 0 ? 1 : (double)NAN};
        if (r->runs[i].skipped > 0) skipped += r->runs[i].skipped;
    }
    if (skipped > 0) {
        add_key(g, "dots", r->count > 1 ? REPORT_RUNS : 0, "below: updates left out");
        add_caption(g, "%.0f update%s left out.", skipped, skipped == 1 ? " was" : "s were");
    } else {
        add_caption(g, "No update was left out.");
    }
}

static void put_norm(FILE *page, const report *r)
{
    report_figure g = {.id = "grad-norm",
                       .title = "Gradient norm",
                       .of_runs = 1,
                       .log_y = 1,
                       .y_label = "norm before clipping (log scale)",
                       .y_words = {"", REPORT_DIGITS, ""}};
    double clip = clip_of(r);
    char name[48];
    add_noisy_curves(&g, r, REPORT_STEP, REPORT_NORM);
    if (clip > 0) add_limit(&g, clip, g.x_end, REPORT_RUNS, "clipped to");
    add_skips(&g, r);
    snprintf(name, sizeof name, "clipped to %g", clip);
    if (clip > 0) add_key(&g, "limit", REPORT_RUNS, name);
    report_put_figure(page, r, &g);
}

static void put_speed(FILE *page, const report *r)
{
    report_figure g = {.id = "speed",
                       .title = "Speed",
                       .caption = "Higher is better.",
                       .of_runs = 1,
                       .zero = 1,
                       .y_label = "tokens per second",
                       .y_words = {"", REPORT_BIG, " tokens/s"}};
    explain_bins(&g, r);
    add_noisy_curves(&g, r, REPORT_STEP, REPORT_SPEED);
    report_put_figure(page, r, &g);
}

static void put_mfu(FILE *page, const report *r)
{
    report_figure g = {.id = "mfu",
                       .title = "MFU",
                       .caption = "Higher is better. Model FLOPs utilization: the share of the "
                                  "device's measured peak speed that goes into the model's own "
                                  "arithmetic.",
                       .of_runs = 1,
                       .zero = 1,
                       .y_unit = .01,
                       .y_label = "% of the peak speed",
                       .y_words = {"", REPORT_PERCENT, ""}};
    add_noisy_curves(&g, r, REPORT_STEP, REPORT_MFU);
    report_put_figure(page, r, &g);
}

/* Draw the time spent waiting for the loader, as a share of all time, because milliseconds alone
 * say little. */
static void put_wait(FILE *page, const report *r)
{
    report_figure g = {.id = "wait",
                       .title = "Waiting for the loader",
                       .of_runs = 1,
                       .zero = 1,
                       .y_unit = .01,
                       .y_room = .01,
                       .y_label = "% of a step's time",
                       .y_words = {"", REPORT_PERCENT, ""}};
    double most = 0;
    add_curves(&g, r, REPORT_STEP, REPORT_WAIT);
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->runs[i].bins.count; k++) {
            const report_bin *bin = &r->runs[i].bins.at[k];
            g.series[i].points[k].y /= bin->mean.v[REPORT_MS];
            most = fmax(most, bin->high.v[REPORT_WAIT]);
        }
    add_caption(&g,
                "Lower is better: near 0, batches are ready before they are asked for. The longest "
                "wait was %.3g ms.",
                most);
    report_put_figure(page, r, &g);
}

/* Draw the peak memory from the log: of the process on a CPU, or of a device with its own
 * memory. */
static void put_peak(FILE *page, const report *r)
{
    report_figure g = {
        .id = "peak", .title = "Peak memory", .of_runs = 1, .y_words = {"", REPORT_BYTES, ""}};
    double most = 0;
    int estimated = 0;
    add_curves(&g, r, REPORT_STEP, REPORT_PEAK);
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        most = fmax(most, run->peak);
        if (!run->estimated) continue;
        add_limit(&g, (double)run->estimate.total, run->steps, (unsigned)i,
                  r->count > 1 ? NULL : "estimate");
        most = fmax(most, (double)run->estimate.total);
        estimated = 1;
    }
    set_bytes_axis(&g, most);
    if (estimated) add_key(&g, "limit", r->count > 1 ? REPORT_RUNS : 0, "estimate");
    add_caption(&g, "The most memory that was in use up to each step%s.",
                estimated ? ", and what was estimated for the run" : "");
    report_put_figure(page, r, &g);
}

void report_put_steps(FILE *page, const report *r)
{
    begin_section(page, "steps", "Steps");
    put_rate(page, r);
    put_norm(page, r);
    put_speed(page, r);
    put_mfu(page, r);
    put_wait(page, r);
    put_peak(page, r);
    fputs("</section>\n", page);
}

/* ---- memory by kind over the parts of a step ---- */

/* Return the estimated bytes of a kind of memory; -1 if there is no estimate of it. */
static double estimate_of(const sgt_train_estimate *e, const char *name)
{
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->kinds[i].name, name) == 0) return (double)e->kinds[i].bytes;
    return -1;
}

/* Return the estimated bytes of the kinds of memory in the chart, summed; 0 if there is no
 * estimate. */
static double estimate_of_kinds(const report_run *run)
{
    double sum = 0;
    for (size_t k = 0; k < run->memory.kind_count; k++)
        sum += fmax(0, estimate_of(&run->estimate, run->memory.kinds[k]));
    return sum;
}

/* Return the largest value in a run's chart, in bytes. */
static double most_shown(const report_run *run)
{
    double most = estimate_of_kinds(run);
    for (size_t i = 0; i < run->memory.count; i++) {
        double sum = 0;
        for (size_t k = 0; k < run->memory.kind_count; k++)
            sum += (double)run->memory.parts[i].used[k];
        most = fmax(most, sum);
    }
    return most;
}

/* Add a kind to the chart, stacked on the one before it. Every part of a step has the same
 * width. */
static void add_kind(report_figure *g, const report_memory *m, size_t kind)
{
    const report_point *below = kind ? g->series[kind - 1].points : NULL;
    report_point *p =
        report_add_series(g, REPORT_AREA, (unsigned)kind, m->kinds[kind], 2 * m->count);
    for (size_t i = 0; i < 2 * m->count; i++) {
        double low = below ? below[i].high : 0, high = low + (double)m->parts[i / 2].used[kind];
        p[i] = (report_point){(double)((i + 1) / 2), high, low, high};
    }
}

/* Add a label in the middle of each pass through the layers, while there is room. */
static void label_passes(report_figure *g, const report_memory *m)
{
    for (size_t i = 0, end; i < m->count && g->x_tick_count < 4; i = end) {
        const char *name = m->parts[i].name;
        for (end = i + 1; end < m->count && strcmp(m->parts[end].name, name) == 0;) end++;
        int forward = strcmp(name, "forward") == 0;
        if (!forward && strcmp(name, "backward") != 0) continue;
        report_tick *t = &g->x_ticks[g->x_tick_count++];
        t->at = (double)(i + end) / 2;
        snprintf(t->text, sizeof t->text, "%s", name);
        snprintf(t->brief, sizeof t->brief, "%s", forward ? "fwd" : "bwd");
    }
}

/* Draw the memory of a run by kind. The charts of all runs have the same scale. */
static void put_kinds(FILE *page, const report *r, const report_run *run)
{
    const report_memory *m = &run->memory;
    const unsigned long long first = m->parts[0].step + 1, last = m->parts[m->count - 1].step + 1;
    const double limit = estimate_of_kinds(run);
    char id[32];
    report_figure g = {.id = id,
                       .title = "In use by kind",
                       .large = r->count == 1,
                       .x_end = (double)m->count,
                       .x_label = "parts of a step",
                       .x_words = {"part ", REPORT_COUNT, " of the step"},
                       .y_words = {"", REPORT_BYTES, ""}};
    snprintf(id, sizeof id, "memory-%zu", (size_t)(run - r->runs));
    if (first == last)
        add_caption(&g, "Memory of the training step, part by part, in step %llu", first);
    else
        add_caption(&g, "Memory of the training step, part by part, in steps %llu to %llu", first,
                    last);
    add_caption(&g, "; all others are alike.");
    for (size_t k = 0; k < m->kind_count; k++) {
        if (r->count == 1) add_key(&g, "area", (unsigned)k, m->kinds[k]);
        add_kind(&g, m, k);
    }
    label_passes(&g, m);
    if (limit > 0) {
        add_limit(&g, limit, (double)m->count, REPORT_RUNS, "estimate");
        add_key(&g, "limit", REPORT_RUNS, "estimate of these kinds");
    }
    for (size_t i = 0; i < r->count; i++) g.y_room = fmax(g.y_room, most_shown(&r->runs[i]));
    set_bytes_axis(&g, g.y_room);
    report_put_figure(page, r, &g);
}

/* ---- the table and the explanations of memory ---- */

/* Write the cell of a number of bytes; a dash if it is negative. */
static void put_bytes(FILE *page, double bytes)
{
    char text[32];
    report_put_cell(page, bytes >= 0 ? sgt_format_bytes(text, sizeof text, (uint64_t)bytes) : NULL);
}

/* Return the most bytes of a kind that were in use at one time. */
static double most_used(const report_memory *m, size_t kind)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->parts[i].used[kind] > most) most = m->parts[i].used[kind];
    return (double)most;
}

static void put_memory_row(FILE *page, unsigned color, const char *name, double used,
                           double estimate)
{
    report_begin_row(page, "area", color, name);
    put_bytes(page, used);
    put_bytes(page, estimate);
    fputs("</tr>\n", page);
}

/* Return whether the run's measured or estimated memory has this kind. */
static int has_kind(const report_run *run, const char *name, int measured)
{
    for (size_t k = 0; k < run->memory.kind_count && measured; k++)
        if (strcmp(run->memory.kinds[k], name) == 0) return 1;
    return !measured && estimate_of(&run->estimate, name) >= 0;
}

static void put_memory_table(FILE *page, const report_run *run)
{
    static const char *const titles[] = {"Kind", "Most in use", "Estimate"};
    const report_memory *m = &run->memory;
    const report_table t = {NULL, "numbers", "Memory by kind", titles, 3, 0};
    report_begin_table(page, &t);
    for (size_t k = 0; k < m->kind_count; k++)
        put_memory_row(page, (unsigned)k, m->kinds[k], most_used(m, k),
                       estimate_of(&run->estimate, m->kinds[k]));
    for (size_t i = 0; i < run->estimate.count; i++)
        if (!has_kind(run, run->estimate.kinds[i].name, 1))
            put_memory_row(page, SGT_MEMORY_KINDS, run->estimate.kinds[i].name, -1,
                           (double)run->estimate.kinds[i].bytes);
    fputs("</tbody>\n<tfoot><tr><th scope=\"row\">Peak of the run</th>", page);
    put_bytes(page, run->peak > 0 ? run->peak : -1);
    put_bytes(page, run->estimated ? (double)run->estimate.total : -1);
    fputs("</tr></tfoot>\n</table>\n", page);
    if (!run->estimated && run->log.count) {
        fputs("<p class=\"none\">No estimate: ", page);
        report_put_text(page, run->why_not);
        fputs("</p>\n", page);
    }
}

static void put_gloss(FILE *page, const report *r)
{
    static const struct {
        const char *name, *meaning;
    } kinds[] = {
        {"weights", "the model's parameters, 4 bytes each"},
        {"16-bit copies", "the weights rounded to 16 bits, for matrix products"},
        {"rounded weights", "the weights rounded to the precision of the products"},
        {"moments", "the optimizer's running means: two for each parameter with AdamW, one "
                    "for each with SGD, and for the matrices with Muon"},
        {"gradients", "the loss's derivative for each parameter"},
        {"gradients received", "room for the gradients that other ranks send"},
        {"activations", "what the forward pass computes and the backward pass needs again"},
        {"activation gradients", "derivatives on their way back through the layers"},
        {"attention", "working space of attention"},
        {"products", "working space of matrix products: packed operands"},
        {"Muon", "working space of the optimizer Muon: the matrix that it makes orthogonal"},
        {"workspace", "working space of the library that computes matrix products"},
        {"head",
         "the scores of the next token, one for each id of the vocabulary, and their gradients"},
        {"scratch", "working space that several kernels share"},
        {"data", "the batch: token ids"},
        {"page rest", "the rest of the last huge page of 2 MiB"},
        {"loader", "shards and batches that the loader keeps in memory"},
        {"checkpoint", "the copy that is written to disk while training goes on"},
        {"program", "the program itself and its libraries"},
    };
    fputs("<dl class=\"gloss\">\n", page);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        int any = 0;
        for (size_t i = 0; i < r->count; i++)
            any |=
                has_kind(&r->runs[i], kinds[k].name, 0) || has_kind(&r->runs[i], kinds[k].name, 1);
        if (any)
            fprintf(page, "<div><dt>%s</dt><dd>%s</dd></div>\n", kinds[k].name, kinds[k].meaning);
    }
    fputs("<div><dt>peak of the run</dt><dd>the most memory that the process, or the GPU, had in "
          "use at any time</dd></div>\n</dl>\n",
          page);
}

/* Write a run's figures and table. Those of several runs are in a card each, side by side. */
static void put_run_memory(FILE *page, const report *r, const report_run *run)
{
    if (r->count > 1) {
        fputs("<div class=\"card run\">\n<h3>", page);
        report_put_swatch(page, "line", (unsigned)(run - r->runs));
        report_put_text(page, run->name);
        fputs("</h3>\n", page);
    }
    if (run->memory.count) put_kinds(page, r, run);
    if (r->count == 1) fputs("<div class=\"card\">\n", page);
    put_memory_table(page, run);
    fputs("</div>\n", page);
}

void report_put_memory(FILE *page, const report *r)
{
    begin_section(page, "memory", "Memory");
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        if (run->memory.count || run->estimated || run->peak > 0) put_run_memory(page, r, run);
    }
    put_gloss(page, r);
    fputs("</section>\n", page);
}
