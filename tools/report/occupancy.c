/* occupancy.c: shows memory by kind over the parts of a step, beside the estimate: a chart and a
 * table for each run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/talk.h"
#include "tools/page/page.h"
#include "tools/report/figures.h"

/* Return the index of the kind with this name in the estimate; -1 if there is none. */
static int estimated_as(const report_run *run, const char *name)
{
    for (size_t i = 0; i < run->estimate.count && run->estimated; i++)
        if (strcmp(run->estimate.kinds[i].name, name) == 0) return (int)i;
    return -1;
}

/* Add a kind to the chart, stacked on those below it. Every part of a step has the same width. */
static int add_kind(report_chart *c, const report_memory *m, size_t kind, double *below,
                    sgt_error *err)
{
    report_point *p = report_chart_add(c, REPORT_AREA, (unsigned)kind, 2 * m->count);
    if (!p) return sgt_fail_memory(err, "a picture");
    c->series[c->count - 1].name = m->kinds[kind];
    for (size_t i = 0; i < m->count; i++) {
        double above = below[i] + (double)m->parts[i].used[kind];
        p[2 * i] = (report_point){(double)i, above, below[i], above};
        p[2 * i + 1] = (report_point){(double)i + 1, above, below[i], above};
        below[i] = above;
    }
    return SGT_OK;
}

/* Add a label in the middle of each pass through the layers, while there is room. */
static void put_passes(report_chart *c, const report_memory *m)
{
    for (size_t i = 0, end; i < m->count && c->x_tick_count < 4; i = end) {
        for (end = i + 1; end < m->count && strcmp(m->parts[end].name, m->parts[i].name) == 0;)
            end++;
        if (strcmp(m->parts[i].name, "forward") != 0 && strcmp(m->parts[i].name, "backward") != 0)
            continue;
        report_tick *t = &c->x_ticks[c->x_tick_count++];
        t->at = (double)(i + end) / 2;
        snprintf(t->text, sizeof t->text, "%s", m->parts[i].name);
        snprintf(t->brief, sizeof t->brief, "%s", *t->text == 'f' ? "fwd" : "bwd");
    }
}

/* Return the estimated bytes of the kinds of memory in the chart, summed; 0 if there is no
 * estimate. */
static double estimate_of_kinds(const report_run *run)
{
    double sum = 0;
    for (size_t k = 0; k < run->memory.kind_count; k++) {
        int i = estimated_as(run, run->memory.kinds[k]);
        if (i >= 0) sum += (double)run->estimate.kinds[i].bytes;
    }
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
        if (sum > most) most = sum;
    }
    return most;
}

static char *says_part(char *buf, size_t n, double x)
{
    snprintf(buf, n, "part %.0f of the step", floor(x) + 1);
    return buf;
}

/* Fill in a run's chart of memory. The charts of all runs have the same scale. */
static int fill(report_figure *g, const report *r, const report_run *run, sgt_error *err)
{
    const report_memory *m = &run->memory;
    double *below = calloc(m->count, sizeof *below), limit = estimate_of_kinds(run), most = 0;
    const char *unit;
    int rc = below ? SGT_OK : sgt_fail_memory(err, "a picture");
    for (size_t k = 0; k < m->kind_count && rc == SGT_OK; k++) {
        if (r->count == 1) report_figure_key(g, "area", (unsigned)k, m->kinds[k]);
        rc = add_kind(&g->chart, m, k, below, err);
    }
    free(below);
    put_passes(&g->chart, m);
    report_point *p = rc == SGT_OK && limit > 0
                          ? report_chart_add(&g->chart, REPORT_LIMIT, REPORT_RUNS, 2)
                          : NULL;
    if (p)
        p[0] = (report_point){.x = 0, .y = limit},
        p[1] = (report_point){.x = (double)m->count, .y = limit};
    if (p) g->chart.series[g->chart.count - 1].name = "estimate";
    if (p) report_figure_key(g, "limit", REPORT_RUNS, "estimate of these kinds");
    for (size_t i = 0; i < r->count; i++) most = fmax(most, most_shown(&r->runs[i]));
    g->chart.y_room = most;
    g->chart.y_unit = report_bytes_unit(most, &unit);
    g->chart.y_says = report_says_bytes;
    g->chart.x_says = says_part;
    snprintf(g->chart.y_label, sizeof g->chart.y_label, "%s", unit);
    snprintf(g->chart.x_label, sizeof g->chart.x_label, "parts of a step");
    snprintf(g->title, sizeof g->title, "In use by kind");
    return rc;
}

static int put_picture(FILE *page, const report *r, const report_run *run, sgt_error *err)
{
    static const report_figure empty;
    report_figure *g = malloc(sizeof *g); /* on the heap, because it is too large for the stack */
    char id[32];
    if (!g) return sgt_fail_memory(err, "a picture");
    *g = empty;
    snprintf(id, sizeof id, "memory-%zu", (size_t)(run - r->runs));
    g->id = id;
    g->large = r->count == 1;
    g->chart.zero = 1;
    g->chart.x_end = (double)run->memory.count;
    const report_part *first = &run->memory.parts[0],
                      *last = &run->memory.parts[run->memory.count - 1];
    report_figure_say(g, "Memory of the training step, part by part, in step");
    if (first->step == last->step)
        report_figure_say(g, " %llu", (unsigned long long)first->step + 1);
    else
        report_figure_say(g, "s %llu to %llu", (unsigned long long)first->step + 1,
                          (unsigned long long)last->step + 1);
    report_figure_say(g, "; all others are alike.");
    int rc = fill(g, r, run, err);
    if (rc == SGT_OK) rc = report_figure_put(page, r, g, err);
    else report_chart_free(&g->chart);
    free(g);
    return rc;
}

/* ---- the table ---- */

static void put_cell(FILE *page, double bytes)
{
    char text[32];
    if (bytes >= 0)
        fprintf(page, "<td>%s</td>", sgt_format_bytes(text, sizeof text, (uint64_t)bytes));
    else fputs("<td class=\"none\">\u2013</td>", page);
}

static void put_row(FILE *page, int kind, const char *name, double used, double estimate)
{
    fputs("<tr><th scope=\"row\">", page);
    report_put_swatch(page, "area", kind >= 0 ? (unsigned)kind : SGT_MEMORY_KINDS);
    sgt_page_text(page, name);
    fputs("</th>", page);
    put_cell(page, used);
    put_cell(page, estimate);
    fputs("</tr>\n", page);
}

static void put_table(FILE *page, const report_run *run)
{
    const report_memory *m = &run->memory;
    fputs("<table class=\"numbers\">\n<caption>Memory by kind</caption>\n<thead><tr><th "
          "scope=\"col\">Kind</th><th scope=\"col\">Most in use</th><th "
          "scope=\"col\">Estimate</th></tr></thead>\n<tbody>\n",
          page);
    for (size_t k = 0; k < m->kind_count; k++) {
        int i = estimated_as(run, m->kinds[k]);
        put_row(page, (int)k, m->kinds[k], (double)report_memory_most(m, k),
                i >= 0 ? (double)run->estimate.kinds[i].bytes : -1);
    }
    for (size_t i = 0; i < run->estimate.count && run->estimated; i++) {
        size_t k = 0;
        while (k < m->kind_count && strcmp(m->kinds[k], run->estimate.kinds[i].name) != 0) k++;
        if (k == m->kind_count)
            put_row(page, -1, run->estimate.kinds[i].name, -1,
                    (double)run->estimate.kinds[i].bytes);
    }
    fputs("</tbody>\n<tfoot><tr><th scope=\"row\">Peak of the run</th>", page);
    put_cell(page, run->peak > 0 ? run->peak : -1);
    put_cell(page, run->estimated ? (double)run->estimate.total : -1);
    fputs("</tr></tfoot>\n</table>\n", page);
    if (!run->estimated && run->log.count) {
        fputs("<p class=\"none\">No estimate: ", page);
        sgt_page_text(page, run->why_not);
        fputs("</p>\n", page);
    }
}

/* Write one run's card. Cards of several runs are side by side. */
static int put_card(FILE *page, const report *r, const report_run *run, sgt_error *err)
{
    fputs("<div class=\"card run\">\n<h3>", page);
    report_put_swatch(page, "line", (unsigned)(run - r->runs));
    sgt_page_text(page, run->name);
    fputs("</h3>\n", page);
    int rc = run->memory.count ? put_picture(page, r, run, err) : SGT_OK;
    if (rc == SGT_OK) put_table(page, run);
    fputs("</div>\n", page);
    return rc;
}

static int put_alone(FILE *page, const report *r, const report_run *run, sgt_error *err)
{
    int rc = run->memory.count ? put_picture(page, r, run, err) : SGT_OK;
    if (rc == SGT_OK) rc = report_put_estimates(page, r, run, err);
    if (rc < 0) return rc;
    fputs("<div class=\"card\">\n", page);
    put_table(page, run);
    fputs("</div>\n", page);
    return SGT_OK;
}

int report_put_memory(FILE *page, const report *r, sgt_error *err)
{
    int rc = SGT_OK;
    fputs("<section class=\"figures\" aria-labelledby=\"memory\">\n<h2 id=\"memory\">Memory</h2>\n",
          page);
    for (size_t i = 0; i < r->count && rc == SGT_OK; i++) {
        const report_run *run = &r->runs[i];
        if (!run->memory.count && !run->estimated && !(run->peak > 0)) continue;
        rc = r->count > 1 ? put_card(page, r, run, err) : put_alone(page, r, run, err);
    }
    report_put_gloss(page, r);
    fputs("</section>\n", page);
    return rc;
}
