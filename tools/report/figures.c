/* figures.c: writes the sections of a page that contain figures. The figures with curves of all
 * runs over steps, tokens, time or compute are defined in the arrays `losses` and `steps`. Memory
 * is printed as a table for each run. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "train/log/metrics.h"
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

/* ---- smooth lines ---- */

#define LEAST_SMOOTHED 20 /* minimum number of points of a curve that is smoothed */
/* The smoothing window of a point extends over 1 / PART of the points of the curve on each side of
 * the point, but at least over LEAST_SIDE points. */
#define PART 12
#define LEAST_SIDE 3
/* Near an end of the curve, the smoothing window has fewer points on one side. To make up for this,
 * it can have up to END_SIDES times as many points as usual on the other side. */
#define END_SIDES 5

/* Fit a straight line to the points p[first] to p[last], and return the value of the line at p[at]
 * (LOESS of degree 1, Cleveland 1979). The farther a point is from p[at], the smaller is its weight
 * (tricube function). If `rest` is 0, the line is fitted to the values y. If `rest` is 1, it is
 * fitted to the residuals y - low, where `low` contains the result of the first fit. The value at
 * p[at] is subtracted before the fit and added to the result, so that rounding cannot change a
 * constant curve. */
static double fit(const report_point *p, size_t first, size_t last, size_t at, int rest)
{
    double w0 = 0, w1 = 0, w2 = 0, d0 = 0, d1 = 0, own = rest ? p[at].y - p[at].low : p[at].y;
    size_t side = at - first > last - at ? at - first : last - at;
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

/* minimum Durbin-Watson statistic of points that count as a straight line plus noise
 * (is_straight) */
#define NOISE 1.5

/* Return 1 if the first `count` points of a curve are a straight line plus noise, otherwise 0. The
 * test fits a line and computes the Durbin-Watson statistic of the residuals, which is about 2 if
 * they are independent, and near 0 if the points follow a curve. */
static int is_straight(const report_point *p, size_t count)
{
    double changes, squares = report_residuals(&p->y, sizeof *p / sizeof p->y, count, &changes);
    return changes >= NOISE * squares;
}

/* Smooth each point of a curve with `fit`, over a window of `side` points on each side. Near an end
 * of the curve, the window has fewer points on the side of that end and more points on the other
 * side, because the smooth curve would otherwise follow the noise of the few points at the end. The
 * window of the last point has END_SIDES * side points, and the window of the first point has
 * `begin` points. */
static void fit_all(report_point *p, size_t count, size_t side, size_t begin, int rest)
{
    const size_t end = END_SIDES * side;
    for (size_t i = 0; i < count; i++) {
        size_t after = count - 1 - i, left = i < side ? i : side,
               right = after < side ? after : side;
        if (after < side) left = after + end * (side - after) / side;
        if (i < side && begin > side) right = i + begin * (side - i) / side;
        else if (i < side) right = i > begin ? i : begin;
        double y = isnan(p[i].y) ? p[i].y : fit(p, i - left, i + right, i, rest);
        if (rest) p[i].high = p[i].low + y;
        else p[i].low = y;
    }
}

/* Set each to[i].y to the smoothed value of from[i].y. Straight lines stay straight, and NaN stays
 * NaN.
 *
 * A single fit would flatten the bend of a loss curve. Therefore, the residuals of the first fit
 * are also smoothed, and added to its result (Tukey's twicing). Results are clamped to the range of
 * the values from[i].y, because a fitted line can overshoot next to a jump. A long window would
 * also flatten the steep beginning of a loss curve. Therefore, the window of the first point is
 * shortened to a length over which the curve is straight. */
static void smooth(report_point *to, const report_point *from, size_t count)
{
    size_t side = count / PART > LEAST_SIDE ? count / PART : LEAST_SIDE, begin = END_SIDES * side;
    double low = NAN, high = NAN;
    for (size_t i = 0; i < count; i++) {
        low = fmin(low, from[i].y);
        high = fmax(high, from[i].y);
        to[i] = (report_point){.x = from[i].x, .y = from[i].y};
    }
    while (!is_straight(to, begin + 1)) begin--;
    for (int rest = 0; rest < 2; rest++) fit_all(to, count, side, begin, rest);
    for (size_t i = 0; i < count; i++) {
        double y = to[i].high;
        to[i].y = to[i].low = to[i].high = isnan(y) ? y : fmin(fmax(y, low), high);
    }
}

/* ---- curves of all runs ---- */

/* Value of report_figure.x for an x axis that shows compute, in PF-days. All other values are
 * columns of the log. Compute is not in the log, because it depends on the size of the model. */
#define COMPUTE REPORT_COLUMNS

/* Return the position of a row of the log on the x axis: the number of completed steps, tokens,
 * seconds or PF-days, as chosen by x (report_figure.x). */
static double x_of(const report_run *run, const report_row *row, int x)
{
    if (x == COMPUTE) return sgt_pf_days(run->parameters, 1) * row->v[REPORT_TOKENS];
    return row->v[x] + (x == REPORT_STEP);
}

/* Set the label, the number format and the end of the x axis. The axis ends where the longest run
 * ends. */
static void set_x_axis(report_figure *g, const report *r)
{
    static const struct {
        const char *label;
        report_words words;
    } axes[] = {[REPORT_STEP] = {"steps", {"step ", REPORT_COUNT, ""}},
                [REPORT_TOKENS] = {"tokens", {"after ", REPORT_BIG, " tokens"}},
                [REPORT_SECONDS] = {"", {"after ", REPORT_TIME, ""}},
                [COMPUTE] = {"PF-days", {"after ", REPORT_DIGITS, " PF-days"}}};
    g->x_label = axes[g->x].label;
    g->x_words = axes[g->x].words;
    for (size_t i = 0; i < r->count; i++)
        g->x_end = fmax(g->x_end, x_of(&r->runs[i], &r->runs[i].last, g->x));
}

/* Return the value that is plotted for y: its decimal logarithm if the y axis is logarithmic,
 * otherwise y itself. */
static double y_of(const report_figure *g, double y)
{
    if (g->y_words.number != REPORT_LOG) return y;
    return y > 0 ? log10(y) : (double)NAN;
}

/* Add the curve of a run in a column of the log to the figure, and return its points. */
static report_point *add_curve(report_figure *g, const report *r, size_t run, report_kind kind,
                               int column)
{
    const report_run *of = &r->runs[run];
    const int validation = column == REPORT_VAL;
    const report_bins *b = validation ? &of->evaluations : &of->bins;
    const char *name = r->count > 1            ? (validation ? of->validation : of->name)
                       : validation            ? "validation"
                       : column == REPORT_LOSS ? "training"
                                               : "value";
    unsigned color = r->count == 1 && validation ? 1 : (unsigned)run;
    report_point *p = report_add_series(g, kind, color, name, b->count);
    for (size_t i = 0; i < b->count; i++)
        p[i] = (report_point){x_of(of, &b->at[i].mean, g->x), y_of(g, b->at[i].mean.v[column]),
                              y_of(g, b->at[i].low.v[column]), y_of(g, b->at[i].high.v[column])};
    return p;
}

/* Add the curves of all runs to a figure. If the column is noisy and a curve has enough points, the
 * curve becomes a faint line, with a smooth line in front of it. A band shows the lowest and the
 * highest values. */
static void add_curves(report_figure *g, const report *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const report_bins *b = &r->runs[i].bins;
        int smoothed = g->noisy && b->count >= LEAST_SMOOTHED;
        report_point *p = add_curve(g, r, i, smoothed ? REPORT_RAW : REPORT_LINE, g->column);
        g->series[g->count - 1].band = g->noisy && b->steps > 1;
        const char *name = r->count > 1 ? NULL : "smoothed";
        if (smoothed)
            smooth(report_add_series(g, REPORT_LINE, (unsigned)i, name, b->count), p, b->count);
    }
}

/* Append a sentence to the caption that says how many steps a point combines, such as "Each point
 * is the mean of 12 steps, and the shaded band shows the lowest and highest of them." */
static void explain_bins(report_figure *g, const report *r)
{
    uint64_t most = 0;
    int smoothed = 0;
    for (size_t i = 0; i < r->count; i++) {
        most = r->runs[i].bins.steps > most ? r->runs[i].bins.steps : most;
        smoothed |= r->runs[i].bins.count >= LEAST_SMOOTHED;
    }
    if (smoothed) add_caption(g, " The strong line is smoothed, the faint line behind it is not.");
    if (most > 1)
        add_caption(g,
                    " Each point is the mean of %s%llu steps, and the shaded band shows the lowest "
                    "and highest of them.",
                    r->count > 1 ? "up to " : "", (unsigned long long)most);
}

/* ---- losses ---- */

/* Upper limit of the y axis in figures of losses, as a multiple of the highest initial loss of all
 * runs. Usually, only a run that has diverged has losses above it. If no loss is above the limit,
 * the axis ends at the highest loss. */
#define MOST_RISE 1.5

/* Set the upper limit of the y axis, at which the curves of losses are clipped, because a single
 * diverged run would otherwise squeeze all other curves into the bottom of the chart. Return the
 * number of points above the limit. */
static size_t limit_losses(report_figure *g, const report *r)
{
    size_t above = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->runs[i].bins.count)
            g->y_most = fmax(g->y_most, MOST_RISE * r->runs[i].bins.at[0].high.v[REPORT_LOSS]);
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->runs[i].bins.count; k++)
            above += g->y_most > 0 && r->runs[i].bins.at[k].mean.v[REPORT_LOSS] > g->y_most;
    return above;
}

/* Complete a figure of losses: add the curves of the validation losses and, in the large figure,
 * the legend and the caption, which apply to all figures of losses. */
static void complete_loss(report_figure *g, const report *r)
{
    size_t above = limit_losses(g, r);
    for (size_t i = 0; i < r->count; i++) add_curve(g, r, i, REPORT_MARKS, REPORT_VAL);
    if (g->size != REPORT_LARGE) return;
    /* highest number of evaluations of which a dot shows the mean, in all runs; 0 if no run was
     * evaluated */
    uint64_t most = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->runs[i].evaluations.steps > most) most = r->runs[i].evaluations.steps;
    if (r->count == 1) add_key(g, "line", 0, "training");
    if (most && r->count == 1) add_key(g, "dots", 1, "validation");
    if (most && r->count > 1) add_key(g, "dots", REPORT_RUNS, "with dots: validation");
    explain_bins(g, r);
    if (most > 1)
        add_caption(g, " A dot is the mean of up to %llu evaluations.", (unsigned long long)most);
    if (above) add_caption(g, " Cut off above: %zu point%s.", above, above == 1 ? "" : "s");
    if (!most) add_caption(g, " There were no evaluations.");
}

#define LOSS                                                                                   \
    .column = REPORT_LOSS, .noisy = 1, .complete = complete_loss, .y_label = "nats per token", \
    .y_words = {"", REPORT_DIGITS, " nats"}

static const report_figure losses[] = {
    {LOSS, .id = "loss-steps", .title = "Loss over steps", .x = REPORT_STEP, .size = REPORT_LARGE,
     .caption = "Lower is better. The loss is in nats per token (1 nat is 1.44 bits). A model "
                "that gives each of n tokens the same probability has a loss of ln n: 10.8 for "
                "GPT-2's 50,257 tokens."},
    {LOSS, .id = "loss-tokens", .title = "Loss over tokens", .x = REPORT_TOKENS, .unnamed = 1,
     .caption = "Lower is better. At the same number of tokens, runs with different batch sizes "
                "can be compared."},
    {LOSS, .id = "loss-time", .title = "Loss over time", .x = REPORT_SECONDS, .unnamed = 1,
     .caption = "Lower is better. The time counts only training steps, not evaluations, "
                "checkpoints and interruptions."},
    {LOSS, .id = "loss-compute", .title = "Loss over compute", .x = COMPUTE, .unnamed = 1,
     .size = REPORT_WIDE,
     .caption = "Lower is better. A PF-day is 10\u00b9\u2075 operations a second for a day. "
                "Training takes 6 operations per parameter and token."}};

/* Return 1 if the figure of loss over compute, which compares models of different sizes, must be
 * drawn; otherwise 0. It is drawn if there are several runs and the compute of all runs is
 * known. */
static int has_compute(const report *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!(x_of(&r->runs[i], &r->runs[i].last, COMPUTE) > 0)) return 0;
    return r->count > 1;
}

/* ---- steps ---- */

/* Add a dashed horizontal line at the value y, from x = 0 to x = `end`. */
static void add_limit(report_figure *g, double y, double end, unsigned color, const char *name)
{
    report_point *p = report_add_series(g, REPORT_LIMIT, color, name, 2);
    p[0] = (report_point){.x = 0, .y = y};
    p[1] = (report_point){.x = end, .y = y};
}

/* Return the norm to which all runs clip gradients, or NaN if the runs clip to different norms, or
 * if the norm of a run is unknown. */
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
            p[k] = (report_point){.x = x_of(&r->runs[i], &b->at[k].mean, REPORT_STEP),
                                  .y = b->at[k].skipped > 0 ? 1 : (double)NAN};
        if (r->runs[i].skipped > 0) skipped += r->runs[i].skipped;
    }
    if (skipped > 0) add_key(g, "dots", r->count > 1 ? REPORT_RUNS : 0, "below: skipped updates");
    if (skipped > 0)
        add_caption(g, "%.0f update%s skipped.", skipped, skipped == 1 ? " was" : "s were");
    else add_caption(g, "No update was skipped.");
}

static void complete_norm(report_figure *g, const report *r)
{
    double clip = clip_of(r);
    char name[48];
    if (clip > 0) add_limit(g, y_of(g, clip), g->x_end, REPORT_RUNS, "clipped to");
    add_skips(g, r);
    snprintf(name, sizeof name, "clipped to %g", clip);
    if (clip > 0) add_key(g, "limit", REPORT_RUNS, name);
}

/* Complete the figure about waiting for the loader: divide the waiting time at each point by the
 * time of the steps, which gives the fraction of the time that a faster loader could save. */
static void complete_wait(report_figure *g, const report *r)
{
    double most = 0;
    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->runs[i].bins.count; k++) {
            const report_bin *bin = &r->runs[i].bins.at[k];
            g->series[i].points[k].y /= bin->mean.v[REPORT_MS];
            most = fmax(most, bin->high.v[REPORT_WAIT]);
        }
    add_caption(g,
                "Lower is better: near 0, batches are ready before a step needs them. The longest "
                "wait was %.3g ms.",
                most);
}

/* Complete the figure of peak memory: add the estimate for each run as a dashed line. The log
 * contains the peak memory of the device or, if the device has no memory of its own, of the
 * process. */
static void complete_peak(report_figure *g, const report *r)
{
    double estimated = 0;
    for (size_t i = 0; i < r->count; i++) {
        const report_run *run = &r->runs[i];
        if (run->estimate > 0)
            add_limit(g, run->estimate, run->steps, (unsigned)i, r->count > 1 ? NULL : "estimate");
        estimated = fmax(estimated, run->estimate);
    }
    if (estimated > 0) add_key(g, "limit", r->count > 1 ? REPORT_RUNS : 0, "estimate");
    add_caption(g, "The peak memory up to each step%s.",
                estimated > 0 ? ", and the estimate for the run" : "");
}

static const report_figure steps[] = {
    {.id = "lr",
     .title = "Learning rate",
     .caption = "The learning rate of each step, according to the schedule.",
     .column = REPORT_LR,
     .zero = 1,
     .y_label = "",
     .y_words = {"", REPORT_DIGITS, ""}},
    {.id = "grad-norm",
     .title = "Gradient norm",
     .column = REPORT_NORM,
     .noisy = 1,
     .complete = complete_norm,
     .y_room = .3,
     .y_label = "norm before clipping (log scale)",
     .y_words = {"", REPORT_LOG, ""}},
    {.id = "speed",
     .title = "Speed",
     .caption = "Higher is better.",
     .column = REPORT_SPEED,
     .noisy = 1,
     .complete = explain_bins,
     .zero = 1,
     .y_label = "tokens per second",
     .y_words = {"", REPORT_BIG, " tokens/s"}},
    {.id = "mfu",
     .title = "MFU",
     .caption = "Higher is better. Model FLOPs utilization: the share of the device's measured "
                "peak speed that the model's own arithmetic reaches.",
     .column = REPORT_MFU,
     .noisy = 1,
     .zero = 1,
     .y_label = "share of the peak speed",
     .y_words = {"", REPORT_PERCENT, ""}},
    {.id = "wait",
     .title = "Waiting for the loader",
     .column = REPORT_WAIT,
     .complete = complete_wait,
     .zero = 1,
     .y_room = .01,
     .y_label = "share of a step's time",
     .y_words = {"", REPORT_PERCENT, ""}},
    {.id = "peak",
     .title = "Peak memory",
     .column = REPORT_PEAK,
     .complete = complete_peak,
     .zero = 1,
     .y_label = "",
     .y_words = {"", REPORT_BYTES, ""}}};

/* Write a section with the `count` figures that are defined in rows[]. */
static void put_curves(FILE *page, const report *r, const char *id, const char *title,
                       const report_figure *rows, size_t count)
{
    report_begin_section(page, "figures", id, title);
    for (size_t i = 0; i < count; i++) {
        report_figure g = rows[i];
        set_x_axis(&g, r);
        add_curves(&g, r);
        if (g.complete) g.complete(&g, r);
        report_put_figure(page, r, &g);
    }
    fputs("</section>\n", page);
}

/* ---- the tables of memory ---- */

/* Write a table cell with a number of bytes, or with a dash if `bytes` is negative, which stands
 * for an unknown number. */
static void put_bytes(FILE *page, double bytes)
{
    char text[32];
    report_put_cell(page,
                    bytes >= 0 ? report_format(text, sizeof text, REPORT_BYTES, bytes) : NULL);
}

/* Write a card (a box on the page) with the table of a run's memory. If the page has several runs,
 * the card also has the name of the run. */
static void put_memory_table(FILE *page, const report *r, const report_run *run)
{
    static const char *const titles[] = {"Kind", "Peak use", "Estimate"};
    const report_table t = {NULL, "numbers", "Memory by kind", titles, 3, 0};
    if (r->count > 1)
        report_put(page, "<div class=\"card run\">\n<h3>" REPORT_SWATCH "%s</h3>\n", "line",
                   (unsigned)(run - r->runs), run->name);
    else report_put(page, "<div class=\"card\">\n");
    report_begin_table(page, &t);
    for (size_t i = 0; i < run->memory_count; i++) {
        report_put(page, REPORT_ROW, run->memory[i].name);
        put_bytes(page, run->memory[i].used);
        put_bytes(page, run->memory[i].estimate);
        fputs("</tr>\n", page);
    }
    fputs("</tbody>\n<tfoot><tr><th scope=\"row\">Peak of the run</th>", page);
    put_bytes(page, run->peak > 0 ? run->peak : -1);
    put_bytes(page, run->estimate > 0 ? run->estimate : -1);
    fputs("</tr></tfoot>\n</table>\n", page);
    if (!(run->estimate > 0))
        report_put(page, "<p class=\"none\">No estimate: %s</p>\n", run->no_estimate);
    fputs("</div>\n", page);
}

static void put_memory(FILE *page, const report *r)
{
    report_begin_section(page, "cards", "memory", "Memory");
    for (size_t i = 0; i < r->count; i++)
        if (r->runs[i].memory_count || r->runs[i].peak > 0) put_memory_table(page, r, &r->runs[i]);
    fputs("</section>\n", page);
}

void report_put_figures(FILE *page, const report *r)
{
    const size_t over = sizeof losses / sizeof *losses - !has_compute(r);
    put_curves(page, r, "loss", "Loss", losses, over);
    put_curves(page, r, "steps", "Steps", steps, sizeof steps / sizeof *steps);
    put_memory(page, r);
}
