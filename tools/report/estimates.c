/* estimates.c: what the steps of a run would hold with other batch sizes: a chart. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/figures.h"

#define LEAST (-3) /* batch sizes from the run's times 2^-3 ... */
#define MOST 2     /* ... to the run's times 2^2 */
#define SIZES (MOST - LEAST + 1)

typedef struct estimate {
    uint64_t batch, activations, total;
} estimate;

/* Return the bytes of the program alone, which are those of this process now: sgt-report's. */
static uint64_t program(const sgt_train_estimate *e)
{
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->kinds[i].name, "program") == 0) return e->kinds[i].bytes;
    return 0;
}

/* Estimate for batch sizes from an eighth of the run's to four times as many. Return how many there
 * are, in rising order; 0: the run has no estimate. */
static size_t estimate_sizes(const report_run *r, estimate e[SIZES])
{
    const uint64_t own = r->settings.batch;
    const sgt_train_options o = {.run = r->path};
    sgt_settings s = r->settings; /* its texts stay the run's */
    size_t n = 0;
    if (!r->estimated || !own || own == SGT_DEFAULT_COUNT) return 0;
    for (int k = LEAST; k <= MOST; k++) {
        sgt_train_estimate got;
        if (k < 0 && own % (1u << -k)) continue;
        s.batch = k < 0 ? own >> -k : own << k;
        if (sgt_train_estimate_memory(&s, &o, &got, NULL) < 0) break;
        /* as when the run's own estimate was made, before there was a page in memory */
        const uint64_t total = got.total - program(&got) + program(&r->estimate);
        e[n++] = (estimate){s.batch, sgt_train_estimate_activations(&got), total};
    }
    return n;
}

static char *says_rows(char *buf, size_t n, double v)
{
    snprintf(buf, n, "%.0f rows", v);
    return buf;
}

static int add(report_chart *c, const estimate *e, size_t n, int total, sgt_error *err)
{
    report_point *p = report_chart_add(c, REPORT_MARKS, (unsigned)!total, n);
    if (!p) return sgt_fail_memory(err, "a picture");
    c->series[c->count - 1].name = total ? "in all" : "grows with the rows";
    for (size_t i = 0; i < n; i++)
        p[i] = (report_point){.x = (double)e[i].batch,
                              .y = (double)(total ? e[i].total : e[i].activations)};
    return SGT_OK;
}

/* Add the peak that the run had, at its own batch size. */
static int add_peak(report_figure *g, const report_run *run, sgt_error *err)
{
    if (!(run->peak > 0)) return SGT_OK;
    report_point *p = report_chart_add(&g->chart, REPORT_MARKS, 2, 1);
    if (!p) return sgt_fail_memory(err, "a picture");
    g->chart.series[g->chart.count - 1].name = "measured";
    p[0] = (report_point){.x = (double)run->settings.batch, .y = run->peak};
    report_figure_key(g, "dots", 2, "measured: the run's peak");
    return SGT_OK;
}

int report_put_estimates(FILE *page, const report *r, const report_run *run, sgt_error *err)
{
    estimate e[SIZES];
    const size_t n = estimate_sizes(run, e);
    report_figure g = {.id = "memory-batch", .title = "Estimate by batch size"};
    const char *unit;
    if (n < 2) return SGT_OK;
    const double most = fmax((double)e[n - 1].total, run->peak > 0 ? run->peak : 0);
    g.chart.zero = 1;
    g.chart.x_end = (double)e[n - 1].batch;
    g.chart.y_unit = report_bytes_unit(most, &unit);
    g.chart.x_says = says_rows;
    g.chart.y_says = report_says_bytes;
    snprintf(g.chart.x_label, sizeof g.chart.x_label, "rows a micro-step");
    snprintf(g.chart.y_label, sizeof g.chart.y_label, "%s", unit);
    report_figure_key(&g, "dots", 0, "in all");
    report_figure_key(&g, "dots", 1, "activations, their gradients and logits");
    report_figure_say(&g,
                      "What the run's steps would hold with other batch sizes, as sgt-train "
                      "--estimate-memory says. The run has %llu rows.",
                      (unsigned long long)run->settings.batch);
    int rc = add(&g.chart, e, n, 1, err);
    if (rc == SGT_OK) rc = add(&g.chart, e, n, 0, err);
    if (rc == SGT_OK) rc = add_peak(&g, run, err);
    if (rc == SGT_OK) return report_figure_put(page, r, &g, err);
    report_chart_free(&g.chart);
    return rc;
}
