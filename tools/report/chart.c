/* chart.c: writes a <figure>, which consists of a legend, a chart in SVG, and a caption. The code
 * finds the ranges and ticks of the axes, draws the series, and adds tooltips. Coordinates are in
 * pixels from the top left corner of the chart. The CSS class of a shape determines its colour. */
#include <math.h>
#include <stdlib.h>

#include "loader/base/memory.h"
#include "tools/cli/process.h"
#include "tools/report/report.h"

/* Sizes of charts in pixels, indexed by report_size. If a chart is not small, it is also written in
 * the small size, for narrow screens, and the style sheet shows one of the two charts, so that the
 * text in charts need not be scaled. All coordinates are below 1000, so they are written with four
 * significant digits. */
static const struct {
    int wide, high;
    const char *class; /* CSS class of the figure */
} sizes[] = {[REPORT_SMALL] = {360, 252, "small"},
             [REPORT_LARGE] = {760, 590, "large"},
             [REPORT_WIDE] = {990, 300, "large whole"}};
/* Margins in pixels around the plotted area, with room for the labels of the ticks. LABEL is an
 * additional margin at the top or the bottom if there is an axis label. */
enum { LEFT = 46, RIGHT = 12, TOP = 10, BOTTOM = 27, LABEL = 17 };

/* space above the highest point of the curves, as a fraction of the range of the y axis */
#define ROOM 0.04

report_point *report_add_series(report_figure *g, report_kind kind, unsigned color,
                                const char *name, size_t points)
{
    report_series s = {.kind = kind, .color = color, .name = name, .count = points};
    s.points = calloc(points + !points, sizeof *s.points);
    if (!s.points || sgt_reserve(&g->series, &g->room, g->count + 1, sizeof s, NULL, NULL) < 0)
        sgt_no_memory();
    g->series[g->count++] = s;
    return s.points;
}

static int is_gap(const report_point *p) { return isnan(p->x) || isnan(p->y); }

static int is_empty(const report_figure *g)
{
    for (size_t i = 0; i < g->count; i++)
        for (size_t p = 0; p < g->series[i].count && g->series[i].kind != REPORT_LIMIT; p++)
            if (!is_gap(&g->series[i].points[p])) return 0;
    return 1;
}

/* ---- axes ---- */

#define TICKS 16

typedef struct tick {
    double at;
    char text[24];
} tick;

typedef struct axis {
    double low, high;  /* lowest and highest value on the axis */
    double start, end; /* positions of the ends of the axis, in pixels */
    char label[80];
    tick ticks[TICKS];
    size_t count;
} axis;

typedef struct frame {
    axis x, y; /* y.start is the bottom edge of the plotted area, and y.end the top edge */
    int wide, high;
} frame;

/* A unit for the numbers on an axis. Of the units for a number format, the chart uses the largest
 * one in which the highest number on the axis is at least `least`. For example, `least` is 3 for
 * hours, so an axis that ends at 2 hours is labelled in minutes. */

typedef struct axis_unit {
    report_number number; /* number format that the unit is for */
    double size, least;
    char name[24];
} axis_unit;

/* Return the unit for an axis with the number format `number` and the highest number `most`. If the
 * format is REPORT_DIGITS and `most` is less than 0.1, the unit is a power of ten, such as
 * 10^-4. */
static axis_unit find_unit(report_number number, double most)
{
    static const char *const digits[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    static const axis_unit units[] = {
        {REPORT_TIME, 86400, 3, "days"},  {REPORT_TIME, 3600, 3, "hours"},
        {REPORT_TIME, 60, 3, "minutes"},  {REPORT_TIME, 1, 0, "seconds"},
        {REPORT_BYTES, 0x1p30, 2, "GiB"}, {REPORT_BYTES, 0x1p20, 2, "MiB"},
        {REPORT_BYTES, 0x1p10, 0, "KiB"}, {REPORT_PERCENT, 0.01, 0, "%"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].number == number && most >= units[i].least * units[i].size) return units[i];
    axis_unit u = {number, 1, 0, ""};
    int p = number == REPORT_DIGITS && most > 0 && most < 0.1 ? -(int)floor(log10(most) + 1e-6) : 0;
    if (!p) return u;
    snprintf(u.name, sizeof u.name, "\u00d7 10\u207b%s%s", p > 9 ? digits[p / 10 % 10] : "",
             digits[p % 10]);
    u.size = pow(10, -p);
    return u;
}

static void include(axis *a, double v)
{
    if (isnan(v)) return;
    if (!(v >= a->low)) a->low = v;
    if (!(v <= a->high)) a->high = v;
}

/* Widen the range of values of an axis if it is empty or almost empty. */
static void widen(axis *a)
{
    if (isnan(a->low)) a->low = 0, a->high = 1;
    if (a->high - a->low <= 1e-9 * fabs(a->high)) {
        double room = a->high != 0 ? 0.1 * fabs(a->high) : 1;
        a->low -= a->low >= room || a->low < 0 ? room : 0;
        a->high += room;
    }
}

/* Return a distance between ticks for an axis with a range of `width` and about `count` ticks. It
 * is 1, 2 or 5 times a power of ten. */
static double nice_step(double width, int count)
{
    double least = width / count, power = pow(10, floor(log10(least)));
    if (least <= power * 1.0001) return power;
    return least <= 2 * power ? 2 * power : least <= 5 * power ? 5 * power : 10 * power;
}

/* Format the value of a tick, for example as "500", "1.5k" or "2M". step: distance between ticks;
 * if it is less than 500, numbers below 10,000 get no suffix. */
static void format_tick(char *buf, size_t n, double v, double step)
{
    static const char *const names[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    for (; i < 5 && fabs(v) >= (i || step >= 500 ? 999.5 : 9999.5); i++) v /= 1000;
    snprintf(buf, n, "%.9g%s", v, names[i]);
}

static void add_ticks(axis *a, report_number number, double unit, int count)
{
    double low = a->low / unit, high = a->high / unit, step = nice_step(high - low, count);
    for (double k = ceil(low / step - 1e-6); k <= high / step + 1e-6 && a->count < TICKS; k++) {
        tick *t = &a->ticks[a->count++];
        t->at = k * step * unit;
        if (number == REPORT_LOG) snprintf(t->text, sizeof t->text, "%.2g", pow(10, t->at));
        else format_tick(t->text, sizeof t->text, fabs(k) < 0.5 ? 0 : k * step, step);
    }
}

/* Set the label of an axis to its unit, followed by `label`, and add about `count` ticks. */
static void label_axis(axis *a, report_number number, const char *label, int count)
{
    axis_unit u = find_unit(number, a->high);
    snprintf(a->label, sizeof a->label, "%s%s%s", u.name, *u.name && *label ? " " : "", label);
    add_ticks(a, number, u.size, count);
}

static void find_ranges(const report_figure *g, axis *x, axis *y)
{
    for (size_t i = 0; i < g->count; i++) {
        const report_series *s = &g->series[i];
        for (size_t p = 0; p < s->count; p++) {
            const report_point *at = &s->points[p];
            include(x, at->x);
            if (s->kind == REPORT_RUG) continue;
            include(y, at->y);
            if (s->band) include(y, at->low), include(y, at->high);
        }
    }
    if (g->x_end > 0) x->low = 0, x->high = g->x_end;
    if (g->y_most > 0 && y->high > g->y_most) y->high = g->y_most;
    if (g->zero) include(y, 0);
    if (y->high - y->low < g->y_room) y->high = y->low + g->y_room;
    if (g->zero && !(y->high > 0)) y->high = find_unit(g->y_words.number, 0).size;
    widen(x);
    widen(y);
    y->high += ROOM * (y->high - y->low);
    if (g->zero) return;
    y->low -= ROOM * (y->high - y->low);
    if (y->low < 0) y->low = y->low < -ROOM * y->high ? y->low : 0;
}

static frame make_frame(const report_figure *g, report_size size)
{
    const int wide = sizes[size].wide, high = sizes[size].high;
    frame f = {.x = {.low = NAN, .high = NAN, .start = LEFT, .end = wide - RIGHT},
               .y = {.low = NAN, .high = NAN, .start = high - BOTTOM - LABEL},
               .wide = wide,
               .high = high};
    find_ranges(g, &f.x, &f.y);
    label_axis(&f.y, g->y_words.number, g->y_label, size == REPORT_LARGE ? 8 : 5);
    label_axis(&f.x, g->x_words.number, g->x_label, size == REPORT_SMALL ? 4 : 8);
    f.y.end = *f.y.label ? TOP + LABEL : TOP;
    return f;
}

/* Return the position in pixels of the value v on an axis. For a value far outside the range,
 * return a position 9 axis lengths from the start, to avoid huge coordinates. It is also outside
 * the plotted area, to which shapes are clipped. */
static double position(const axis *a, double v)
{
    double part = (v - a->low) / (a->high - a->low);
    return a->start + fmin(fmax(part, -9), 9) * (a->end - a->start);
}

/* ---- shapes ---- */

static void put_label(FILE *page, const char *class, double x, double y, const char *anchor,
                      const char *text)
{
    report_put(page, "<text class=\"%s\" x=\"%g\" y=\"%g\" text-anchor=\"%s\">%s</text>\n", class,
               x, y, anchor, text);
}

static void put_rule(FILE *page, const char *class, const axis *x, double y)
{
    report_put(page, "<line class=\"%s\" x1=\"%g\" y1=\"%g\" x2=\"%g\" y2=\"%g\"/>\n", class,
               x->start, y, x->end, y);
}

static void put_axes(FILE *page, const frame *f)
{
    for (size_t i = 0; i < f->y.count; i++) {
        double at = position(&f->y, f->y.ticks[i].at);
        put_rule(page, "grid", &f->x, at);
        put_label(page, "tick", f->x.start - 7, at + 4, "end", f->y.ticks[i].text);
    }
    put_rule(page, "axis", &f->x, f->y.start);
    for (size_t i = 0; i < f->x.count; i++)
        put_label(page, "tick", position(&f->x, f->x.ticks[i].at), f->y.start + 19, "middle",
                  f->x.ticks[i].text);
    if (*f->y.label) put_label(page, "label", 0, 11, "start", f->y.label);
    put_label(page, "label", (f->x.start + f->x.end) / 2, f->high - 4, "middle", f->x.label);
}

/* ---- series ---- */

/* Draw a line through the points of a series or, if `band` is 1, the band between their lowest and
 * highest values. Both are interrupted at the gaps of the series. The outline of a band goes along
 * its upper edge and returns along its lower edge. */
static void put_path(FILE *page, const frame *f, const report_series *s, const char *class,
                     int band)
{
    report_put(page, "<path class=\"%s s%u\" d=\"", class, s->color);
    for (size_t i = 0, end; i < s->count; i = end + 1) {
        for (end = i; end < s->count && !is_gap(&s->points[end]);) end++;
        for (size_t k = 0, n = end - i; k < (band ? 2 * n : n); k++) {
            const report_point *p = &s->points[k < n ? i + k : end - 1 - (k - n)];
            report_put(page, k ? "L%g,%g" : "\nM%g,%g", position(&f->x, p->x),
                       position(&f->y, !band   ? p->y
                                       : k < n ? p->high
                                               : p->low));
        }
    }
    fputs("\"/>\n", page);
}

/* Write the value v, between the two texts in *w, to the n bytes at `buf`, and return `buf`. */
static char *format_value(char *buf, size_t n, const report_words *w, double v)
{
    char number[64];
    snprintf(buf, n, "%s%s%s", w->before, report_format(number, sizeof number, w->number, v),
             w->after);
    return buf;
}

/* Write the line of a tooltip with the values of series s at point p. */
static void put_value(FILE *page, const report_figure *g, const report_series *s,
                      const report_point *p)
{
    char value[64], low[64], high[64];
    report_put(page, "\n%s %s", s->name, format_value(value, sizeof value, &g->y_words, p->y));
    if (s->band)
        report_put(page, " (%s to %s)", format_value(low, sizeof low, &g->y_words, p->low),
                   format_value(high, sizeof high, &g->y_words, p->high));
}

/* Return 1 if there is a gap or the end of the series on both sides of point i, otherwise 0. Such a
 * point is drawn as a dot, because a line through a single point is invisible. */
static int is_alone(const report_series *s, size_t i)
{
    return (i == 0 || is_gap(&s->points[i - 1])) &&
           (i + 1 == s->count || is_gap(&s->points[i + 1]));
}

static void put_dots(FILE *page, const frame *f, const report_series *s)
{
    const int rug = s->kind == REPORT_RUG;
    for (size_t i = 0; i < s->count; i++) {
        const report_point *p = &s->points[i];
        if (!is_gap(p) && (s->kind != REPORT_LINE || is_alone(s, i)))
            report_put(page, "<circle class=\"%s s%u\" cx=\"%g\" cy=\"%g\" r=\"%g\"/>\n",
                       rug ? "rug" : "dot", s->color, position(&f->x, p->x),
                       rug ? f->y.start : position(&f->y, p->y), rug ? 1.8 : 2.6);
    }
}

/* ---- tooltips ----
 *
 * Invisible vertical strips of equal width cover the plotted area. Each strip has a <title>, which
 * browsers show as a tooltip without a script. There can be fewer strips than points of a curve. */

/* MOST_LARGE, MOST_SMALL: maximum number of strips, each with a tooltip, in a chart that is wider
 * than a small one, and in a small one. LINES: maximum number of lines in all tooltips of a chart
 * together. */
enum { MOST_LARGE = 100, MOST_SMALL = 30, LINES = 768 };

/* Return the point of a series that is nearest to x on the x axis. Return NULL if tooltips omit the
 * series, because it has no name, or if the series has no point near x, because the nearest one is
 * farther away than the average distance between adjacent points. */
static const report_point *find_nearest(const report_series *s, double x)
{
    const report_point *best = NULL;
    for (size_t i = 0; i < s->count && s->name; i++) {
        const report_point *p = &s->points[i];
        if (!is_gap(p) && (!best || fabs(p->x - x) < fabs(best->x - x))) best = p;
    }
    if (!best || s->kind == REPORT_LIMIT) return best;
    double apart =
        s->count > 1 ? (s->points[s->count - 1].x - s->points[0].x) / (double)(s->count - 1) : 0;
    return fabs(best->x - x) <= apart ? best : NULL;
}

/* Write a strip with its left edge at the position `left`. Its tooltip shows the values at the
 * point nearest to `left + 0.75 * width`, not to the middle of the strip: the point of a strip is
 * near its right edge, because the axis begins at 0, but the first step is 1. */
static void put_strip(FILE *page, const report_figure *g, const frame *f, double left, double width)
{
    const double part = (left + 0.75 * width - f->x.start) / (f->x.end - f->x.start),
                 x = f->x.low + part * (f->x.high - f->x.low);
    const report_point *at = NULL;
    char text[64];
    for (size_t i = 0; i < g->count && !at; i++)
        if (g->series[i].kind != REPORT_LIMIT) at = find_nearest(&g->series[i], x);
    if (!at) return;
    report_put(page, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"><title>%s", left, f->y.end,
               width, f->y.start - f->y.end, format_value(text, sizeof text, &g->x_words, at->x));
    for (size_t i = 0; i < g->count; i++) {
        const report_point *p = find_nearest(&g->series[i], at->x);
        if (p) put_value(page, g, &g->series[i], p);
    }
    report_put(page, "</title></rect>\n");
}

static void put_tooltips(FILE *page, const report_figure *g, const frame *f)
{
    size_t lines = 0, strips = 0, most = f->wide > sizes->wide ? MOST_LARGE : MOST_SMALL;
    for (const report_series *s = g->series; s < g->series + g->count; s++) {
        lines += s->name != NULL;
        if (s->name && s->kind != REPORT_LIMIT && s->count > strips) strips = s->count;
    }
    if (most * lines > LINES) most = LINES / lines;
    if (strips > most) strips = most;
    const double width = (f->x.end - f->x.start) / (double)strips;
    report_put(page, "<g class=\"hits\">\n");
    for (size_t k = 0; k < strips; k++)
        put_strip(page, g, f, f->x.start + (double)k * width, width);
    report_put(page, "</g>\n");
}

/* ---- the figure ---- */

/* Draw the contents of the plotted area, from back to front: bands, faint lines, other lines, the
 * strips for tooltips, dots. */
static void put_series(FILE *page, const report_figure *g, const frame *f)
{
    static const struct {
        report_kind kind;
        const char *class;
    } strokes[] = {{REPORT_RAW, "raw"},
                   {REPORT_LINE, "line"},
                   {REPORT_MARKS, "line"},
                   {REPORT_LIMIT, "limit"}};
    for (size_t i = 0; i < g->count; i++)
        if (g->series[i].band) put_path(page, f, &g->series[i], "band", 1);
    for (size_t k = 0; k < sizeof strokes / sizeof *strokes; k++)
        for (size_t i = 0; i < g->count; i++)
            if (g->series[i].kind == strokes[k].kind && g->series[i].count > 1)
                put_path(page, f, &g->series[i], strokes[k].class, 0);
    put_tooltips(page, g, f);
    for (size_t i = 0; i < g->count; i++) {
        report_kind kind = g->series[i].kind;
        if (kind == REPORT_MARKS || kind == REPORT_RUG || kind == REPORT_LINE)
            put_dots(page, f, &g->series[i]);
    }
}

/* Write a chart in this size. A nested <svg> clips the series to the plotted area. It extends 3
 * pixels beyond the top and the bottom of the area, so that lines and dots on the border of the
 * area are not cut in half. */
static void put_chart(FILE *page, const report_figure *g, report_size size, const char *class)
{
    const frame f = make_frame(g, size);
    const double top = f.y.end - 3, height = f.y.start + 3 - top;
    fprintf(page, "<svg class=\"%s\" role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"%s\">\n",
            class, f.wide, f.high, g->title);
    put_axes(page, &f);
    report_put(page, "<svg y=\"%g\" width=\"%u\" height=\"%g\" viewBox=\"0 %g %u %g\">\n", top,
               (unsigned)f.wide, height, top, (unsigned)f.wide, height);
    put_series(page, g, &f);
    fputs("</svg>\n</svg>\n", page);
}

static void put_key(FILE *page, const char *class, unsigned color, const char *name)
{
    report_put(page, "<li>" REPORT_SWATCH "%s</li>\n", class, color, name);
}

static void put_legend(FILE *page, const report *r, const report_figure *g)
{
    size_t runs = !g->unnamed && r->count > 1 ? r->count : 0;
    if (!runs && !g->key_count) return;
    fputs("<ul class=\"legend\">\n", page);
    for (size_t i = 0; i < runs; i++) put_key(page, "line", (unsigned)i, r->runs[i].name);
    for (size_t i = 0; i < g->key_count; i++)
        put_key(page, g->keys[i].class, g->keys[i].color, g->keys[i].name);
    fputs("</ul>\n", page);
}

/* ---- notes about hidden curves ---- */

/* maximum relative difference between two points that look equal on the page */
#define SAME 1e-3

/* Return the curve of run i in a figure, which is the first series with the colour of the run. */
static const report_series *curve_of(const report_figure *g, size_t i)
{
    const report_series *s = g->series;
    while (s->color != i) s++;
    return s;
}

/* Return 1 if two curves look equal on the page, otherwise 0. If one curve has more points than the
 * other, its additional points are not compared. */
static int coincide(const report_series *a, const report_series *b)
{
    size_t n = a->count < b->count ? a->count : b->count, numbers = 0;
    for (const report_point *p = a->points, *q = b->points; p < a->points + n; p++, q++) {
        if (isnan(p->y) && isnan(q->y)) continue;
        if (!(fabs(p->x - q->x) <= SAME * fabs(q->x) && fabs(p->y - q->y) <= SAME * fabs(q->y)))
            return 0;
        numbers++;
    }
    return numbers > 0;
}

/* For each run whose curve looks equal to that of an earlier run, and therefore hides it, write a
 * sentence that names both runs. */
static void put_coinciding(FILE *page, const report *r, const report_figure *g)
{
    for (size_t i = 1; i < r->count; i++) {
        size_t k = 0;
        while (k < i && !coincide(curve_of(g, k), curve_of(g, i))) k++;
        if (k < i)
            report_put(page, " " REPORT_SWATCH "%s coincides with " REPORT_SWATCH "%s.", "line",
                       (unsigned)i, r->runs[i].name, "line", (unsigned)k, r->runs[k].name);
    }
}

static void put_content(FILE *page, const report *r, const report_figure *g)
{
    if (is_empty(g)) {
        fputs("<p class=\"none\">The log has no values for this chart.</p>\n", page);
        return;
    }
    put_legend(page, r, g);
    if (g->size) put_chart(page, g, g->size, "chart wide");
    put_chart(page, g, REPORT_SMALL, g->size ? "chart narrow" : "chart");
    report_put(page, "<figcaption>%s", g->caption);
    put_coinciding(page, r, g);
    fputs("</figcaption>\n", page);
}

void report_put_figure(FILE *page, const report *r, report_figure *g)
{
    fprintf(page, "<figure id=\"%s\" class=\"%s\">\n<h3>%s</h3>\n", g->id, sizes[g->size].class,
            g->title);
    if (!sgt_stopped(r->stop)) put_content(page, r, g);
    fputs("</figure>\n", page);
    for (size_t i = 0; i < g->count; i++) free(g->series[i].points);
    free(g->series);
}
