/* losses.c: makes the charts of the loss: over steps, tokens, time and, for several runs,
 * compute. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/log/metrics.h"
#include "tools/report/charts.h"

/* percentage of all losses that the chart of losses always shows, besides each run's first loss */
#define MOST_SHOWN 98

static char *says_nats(char *buf, size_t n, double v)
{
    snprintf(buf, n, "%.4g nats", v);
    return buf;
}

static void say_evaluations(report_figure *g, const report *r)
{
    uint64_t most = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->runs[i].evaluations.steps > most) most = r->runs[i].evaluations.steps;
    if (most > 1)
        report_figure_say(g, " A dot is the mean of up to %llu evaluations.",
                          (unsigned long long)most);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Set the upper limit of the chart: above the first losses and nearly all others, so that one
 * diverged curve does not flatten the rest. *above: how many losses are higher. */
static int find_most(report_chart *c, const report *r, size_t *above, sgt_error *err)
{
    size_t n = 0;
    double *all = malloc(sizeof *all * REPORT_RUNS * REPORT_BINS), most = 0;
    if (!all) return sgt_fail_memory(err, "a picture");
    for (size_t i = 0; i < r->count; i++) {
        const report_bins *b = &r->runs[i].bins;
        if (b->count && b->at[0].mean.v[REPORT_LOSS] > most) most = b->at[0].high.v[REPORT_LOSS];
        for (size_t k = 0; k < b->count; k++)
            if (!isnan(b->at[k].mean.v[REPORT_LOSS])) all[n++] = b->at[k].mean.v[REPORT_LOSS];
    }
    qsort(all, n, sizeof *all, rising);
    if (n && all[n * MOST_SHOWN / 100] > most) most = all[n * MOST_SHOWN / 100];
    *above = 0;
    for (size_t i = 0; i < n; i++) *above += all[i] > most;
    c->y_most = most;
    free(all);
    return SGT_OK;
}

static int add_losses(report_chart *c, const report *r, int x, sgt_error *err)
{
    int rc = report_add_curves(c, r, x, REPORT_LOSS, 1, err);
    for (size_t i = 0; i < c->count && r->count == 1 && rc == SGT_OK; i++)
        if (!c->series[i].color && c->series[i].kind != REPORT_LINE) c->series[i].name = "training";
    for (size_t i = 0; i < r->count && rc == SGT_OK; i++)
        rc = report_add_curve(
            c, &r->runs[i].evaluations, REPORT_MARKS, r->count > 1 ? (unsigned)i : 1,
            r->count > 1 ? r->runs[i].validation : "validation", x, REPORT_VAL, 0, err);
    c->y_says = says_nats;
    snprintf(c->y_label, sizeof c->y_label, "nats per token");
    return rc;
}

static int any_evaluation(const report *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->runs[i].evaluations.count) return 1;
    return 0;
}

static void loss_keys(report_figure *g, const report *r)
{
    g->of_runs = 1;
    if (r->count == 1) report_figure_key(g, "line", 0, "training");
    if (r->count == 1 && any_evaluation(r)) report_figure_key(g, "dots", 1, "validation");
    if (r->count > 1 && any_evaluation(r))
        report_figure_key(g, "dots", REPORT_RUNS, "with dots: validation");
}

/* Return the unit for the x axis of times, in seconds, and set its name. */
static double time_unit(const report *r, const char **name)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};
    double most = 0;
    size_t i = 0;
    for (size_t k = 0; k < r->count; k++)
        if (r->runs[k].seconds > most) most = r->runs[k].seconds;
    while (i + 1 < sizeof units / sizeof *units && most < 3 * units[i].seconds) i++;
    *name = units[i].name;
    return units[i].seconds;
}

static int put_loss_over(FILE *page, const report *r, int x, sgt_error *err)
{
    report_figure g = {.large = x == REPORT_STEP};
    size_t above = 0;
    int rc = find_most(&g.chart, r, &above, err);
    if (rc == SGT_OK) rc = add_losses(&g.chart, r, x, err);
    if (x == REPORT_STEP) {
        g.id = "loss-steps";
        snprintf(g.title, sizeof g.title, "Loss over steps");
        loss_keys(&g, r);
        report_figure_say(&g, "Lower is better. The loss is in nats per token (1 nat is 1.44 "
                              "bits): a model that gives every next token a probability of 1/n has "
                              "a loss of ln n, 10.8 for GPT-2's 50,257.");
        report_say_thinning(&g, r, 1);
        say_evaluations(&g, r);
        if (above)
            report_figure_say(&g, " Cut off: %zu point%s above.", above, above == 1 ? "" : "s");
        if (!any_evaluation(r)) report_figure_say(&g, " Nothing was evaluated.");
    } else if (x == REPORT_TOKENS) {
        g.id = "loss-tokens";
        snprintf(g.title, sizeof g.title, "Loss over tokens");
        report_figure_say(&g, "Lower is better: what the model learns from so much text, however "
                              "large its steps are.");
    } else {
        const char *name;
        g.id = "loss-time";
        g.chart.x_unit = time_unit(r, &name);
        snprintf(g.title, sizeof g.title, "Loss over time");
        snprintf(g.chart.x_label, sizeof g.chart.x_label, "%s", name);
        report_figure_say(&g, "Lower is better. Time within steps: without evaluations, "
                              "checkpoints and interruptions.");
    }
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}

/* ---- over compute ---- */

/* Return the compute of a run's tokens, in PF-days a token; 0: its parameters are not known. */
static double per_token(const report_run *run) { return sgt_pf_days(run->parameters, 1); }

static char *says_compute(char *buf, size_t n, double v)
{
    snprintf(buf, n, "after %.3g PF-days", v);
    return buf;
}

/* Turn the x of the series from `first` on, which are in tokens, into PF-days. */
static void to_compute(report_chart *c, size_t first, double factor)
{
    for (size_t i = first; i < c->count; i++)
        for (size_t k = 0; k < c->series[i].count; k++) c->series[i].points[k].x *= factor;
}

/* Add the losses and evaluations of a run. */
static int add_run(report_chart *c, const report *r, size_t run, sgt_error *err)
{
    const report_run *of = &r->runs[run];
    const size_t first = c->count;
    int rc = report_add_smooth(c, r, run, REPORT_TOKENS, REPORT_LOSS, err);
    if (rc == SGT_OK)
        rc = report_add_curve(c, &of->evaluations, REPORT_MARKS, (unsigned)run, of->validation,
                              REPORT_TOKENS, REPORT_VAL, 0, err);
    to_compute(c, first, per_token(of));
    return rc;
}

/* Runs of models of several sizes: equal tokens are not equal work. */
static int put_loss_over_compute(FILE *page, const report *r, sgt_error *err)
{
    report_figure g = {.id = "loss-compute", .title = "Loss over compute"};
    report_chart *c = &g.chart;
    size_t above = 0;
    char factor[32];
    for (size_t i = 0; i < r->count; i++) {
        double end = per_token(&r->runs[i]) * r->runs[i].tokens;
        if (!(end > 0)) return SGT_OK; /* no parameters, or nothing logged */
        if (end > c->x_end) c->x_end = end;
    }
    int power = c->x_end < 0.1 ? (int)floor(log10(c->x_end) + 1e-6) : 0;
    c->x_unit = pow(10, power);
    report_label_power(factor, sizeof factor, power);
    snprintf(c->x_label, sizeof c->x_label, "%s%sPF-days", factor, *factor ? " " : "");
    snprintf(c->y_label, sizeof c->y_label, "nats per token");
    c->x_says = says_compute;
    c->y_says = says_nats;
    report_figure_say(&g,
                      "Lower is better. A PF-day is 10\u00b9\u2075 operations a second for a day. "
                      "Training takes 6 per parameter and token.");
    int rc = find_most(c, r, &above, err);
    for (size_t i = 0; i < r->count && rc == SGT_OK; i++) rc = add_run(c, r, i, err);
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(c);
    return rc;
}

int report_put_loss(FILE *page, const report *r, sgt_error *err)
{
    static const int over[] = {REPORT_STEP, REPORT_TOKENS, REPORT_SECONDS};
    int rc = SGT_OK;
    fputs("<section class=\"figures\" aria-labelledby=\"loss\">\n<h2 id=\"loss\">Loss</h2>\n",
          page);
    for (size_t i = 0; i < sizeof over / sizeof *over && rc == SGT_OK; i++)
        rc = put_loss_over(page, r, over[i], err);
    if (r->count > 1 && rc == SGT_OK) rc = put_loss_over_compute(page, r, err);
    fputs("</section>\n", page);
    return rc;
}
