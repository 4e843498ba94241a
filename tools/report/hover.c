/* hover.c: adds a chart's tooltips. Strips across its whole height have a <title>, which browsers
 * show without a script. However many points a chart has, the number of strips is limited. */
#include <math.h>
#include <string.h>

#include "tools/page/svg.h"
#include "tools/report/report.h"

/* Most tooltip lines in a chart; if there are many runs, the chart may have a few more. */
#define LINES 512
#define LEAST 16   /* least number of strips */
#define TITLE 2048 /* most bytes of a tooltip */

static int has_number(const report_point *p) { return !isnan(p->x) && !isnan(p->y); }

/* Return the middle of points first .. end - 1 on the x axis. In a chart of areas, points come in
 * pairs, one at each end of a part of a step. */
static double middle(const report_series *s, size_t first, size_t end)
{
    if (s->kind == REPORT_AREA) return (s->points[first].x + s->points[end - 1].x) / 2;
    return s->points[first + (end - first) / 2].x;
}

/* Return the series whose points determine the strips: the one that reaches farthest, and of
 * several such the one with the most points. */
static const report_series *find_ruler(const report_chart *c)
{
    const report_series *best = NULL;
    for (size_t i = 0; i < c->count; i++) {
        const report_series *s = &c->series[i];
        if (!s->name || !s->count || s->kind == REPORT_LIMIT || s->kind == REPORT_RUG) continue;
        double end = s->points[s->count - 1].x, far = best ? best->points[best->count - 1].x : 0;
        if (!best || end > far || (end == far && s->count > best->count)) best = s;
    }
    return best;
}

/* Return the series' point nearest to x if it is no farther away than the series' points are from
 * each other; else NULL. */
static const report_point *nearest(const report_series *s, double x)
{
    const report_point *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (has_number(&s->points[i]) && (!best || fabs(s->points[i].x - x) < fabs(best->x - x)))
            best = &s->points[i];
    if (!best || s->kind == REPORT_LIMIT) return best;
    double apart =
        s->count > 1 ? (s->points[s->count - 1].x - s->points[0].x) / (double)(s->count - 1) : 0;
    return fabs(best->x - x) <= apart ? best : NULL;
}

static size_t put_value(char *title, size_t at, const report_chart *c, const report_series *s,
                        const report_point *p)
{
    char value[64], low[64], high[64];
    c->y_says(value, sizeof value, s->kind == REPORT_AREA ? p->high - p->low : p->y);
    int n = s->band ? snprintf(title + at, TITLE - at, "\n%s %s (%s to %s)", s->name, value,
                               c->y_says(low, sizeof low, p->low),
                               c->y_says(high, sizeof high, p->high))
                    : snprintf(title + at, TITLE - at, "\n%s %s", s->name, value);
    return n > 0 && at + (size_t)n < TITLE ? at + (size_t)n : at;
}

static void put_strip(FILE *page, const report_chart *c, const report_frame *f, double x,
                      double from, double to)
{
    char title[TITLE];
    size_t said = 0, at;
    c->x_says(title, sizeof title, x);
    at = strlen(title);
    for (size_t i = 0; i < c->count; i++) {
        const report_series *s = &c->series[i];
        const report_point *p = s->name && s->kind != REPORT_RUG ? nearest(s, x) : NULL;
        if (!p) continue;
        at = put_value(title, at, c, s, p);
        said += s->kind != REPORT_LIMIT;
    }
    title[at] = '\0';
    double left = fmax(report_frame_x(f, from), f->left),
           right = fmin(report_frame_x(f, to), f->right);
    if (said && right > left)
        sgt_svg_rect(page, "", left, f->top, right - left, f->bottom - f->top, title);
}

void report_hover_put(FILE *page, const report_chart *c, const report_frame *f, size_t most)
{
    const report_series *r = find_ruler(c);
    size_t names = 0;
    if (!r || !c->x_says || !c->y_says) return;
    for (size_t i = 0; i < c->count; i++) names += c->series[i].name != NULL;
    size_t room = LINES / (names ? names : 1);
    if (most > room) most = room > LEAST ? room : LEAST;
    size_t pair = r->kind == REPORT_AREA ? 2 : 1, points = r->count / pair,
           each = pair * ((points + most - 1) / most);
    const report_point *p = r->points;
    fputs("<g class=\"hits\">\n", page);
    for (size_t i = 0; i < r->count; i += each) {
        size_t end = i + each < r->count ? i + each : r->count;
        double x = middle(r, i, end);
        double from = i ? (p[i - 1].x + p[i].x) / 2 : pair == 2 ? p[0].x : f->x_low;
        double to = end < r->count ? (p[end - 1].x + p[end].x) / 2
                    : pair == 2    ? p[end - 1].x
                                   : f->x_high;
        put_strip(page, c, f, x, from, to);
    }
    fputs("</g>\n", page);
}

void report_hover_dot(char *buf, size_t n, const report_chart *c, const report_series *s,
                      const report_point *p)
{
    char x[64], y[64];
    *buf = '\0';
    if (c->x_says && c->y_says && s->name)
        snprintf(buf, n, "%s\n%s %s", c->x_says(x, sizeof x, p->x), s->name,
                 c->y_says(y, sizeof y, p->y));
}
