/* chart.c: lays out a chart, that is, the ranges and ticks of its axes, and draws it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/page/svg.h"
#include "tools/report/report.h"

#define NARROW 500 /* in pixels: narrower charts have fewer and shorter ticks */
#define ROOM 0.04  /* part of the height that stays free above the highest point */
/* Margins around the frame, in pixels. LABEL: additional margin for an axis label. */
enum { LEFT = 46, RIGHT = 12, TOP = 10, BOTTOM = 27, LABEL = 17 };

typedef struct axis {
    double low, high; /* range of values shown */
    report_tick ticks[REPORT_TICKS];
    size_t count;
} axis;

report_point *report_chart_add(report_chart *c, report_kind kind, unsigned color, size_t points)
{
    if (c->count == REPORT_SERIES) return NULL;
    report_series *s = &c->series[c->count];
    *s = (report_series){
        .kind = kind, .color = color, .points = calloc(points + !points, sizeof *s->points)};
    if (!s->points) return NULL;
    s->count = points;
    c->count++;
    return s->points;
}

void report_chart_free(report_chart *c)
{
    for (size_t i = 0; i < c->count; i++) free(c->series[i].points);
    c->count = 0;
}

int report_chart_empty(const report_chart *c)
{
    for (size_t i = 0; i < c->count; i++)
        for (size_t p = 0; p < c->series[i].count && c->series[i].kind != REPORT_LIMIT; p++)
            if (!isnan(c->series[i].points[p].y) && !isnan(c->series[i].points[p].x)) return 0;
    return 1;
}

/* ---- axes ---- */

static void stretch(axis *a, double v, int log)
{
    if (isnan(v) || (log && v <= 0)) return;
    if (!(v >= a->low)) a->low = v;
    if (!(v <= a->high)) a->high = v;
}

/* Widen the range of an axis if it is empty or too small. */
static void widen(axis *a, int log)
{
    if (isnan(a->low)) *a = (axis){.low = log ? 0.1 : 0, .high = 1};
    if (log && a->high < 1.5 * a->low) {
        a->low /= 1.5;
        a->high *= 1.5;
    } else if (!log && a->high - a->low <= 1e-9 * fabs(a->high)) {
        double room = a->high != 0 ? 0.1 * fabs(a->high) : 1;
        a->low -= a->low >= room || a->low < 0 ? room : 0;
        a->high += room;
    }
}

/* Return 1, 2 or 5 times a power of ten: the size of a step if `width` has about `count` steps. */
static double nice_step(double width, int count)
{
    double least = width / count, power = pow(10, floor(log10(least)));
    if (least <= power * 1.0001) return power;
    return least <= 2 * power ? 2 * power : least <= 5 * power ? 5 * power : 10 * power;
}

/* Format a tick's value: "500", "1.5k", "2M". A number below 10,000 gets no suffix if the axis has
 * steps below 500. */
static void tick_text(char *buf, size_t n, double v, double step)
{
    static const char *const names[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof *names && fabs(v) >= (i || step >= 500 ? 999.5 : 9999.5)) {
        v /= 1000;
        step /= 1000;
        i++;
    }
    int decimals = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-6);
    if (decimals > 6 || fabs(v) >= 1e6) snprintf(buf, n, "%.3g%s", v, names[i]);
    else snprintf(buf, n, "%.*f%s", decimals, v, names[i]);
    char *end = buf + strcspn(buf, "kMGTP"), *keep = end; /* turn 2.50k into 2.5k */
    if (!i || !memchr(buf, '.', (size_t)(end - buf))) return;
    while (keep[-1] == '0') keep--;
    if (keep[-1] == '.') keep--;
    memmove(keep, end, strlen(end) + 1);
}

static void put_linear_ticks(axis *a, double unit, int count)
{
    double low = a->low / unit, high = a->high / unit, step = nice_step(high - low, count);
    for (double k = ceil(low / step - 1e-6); k <= high / step + 1e-6 && a->count < REPORT_TICKS;
         k++) {
        report_tick *t = &a->ticks[a->count++];
        t->at = k * step * unit;
        tick_text(t->text, sizeof t->text, fabs(k) < 0.5 ? 0 : k * step, step);
    }
}

/* Put ticks at powers of ten, or at every few of them. If fewer than three powers are in the range,
 * also put ticks at 2 and 5 times them. If the range is less than a factor of 6, put ticks in even
 * steps. */
static void put_log_ticks(axis *a, double unit, int count)
{
    if (a->high < 6 * a->low) {
        put_linear_ticks(a, unit, count);
        return;
    }
    int from = (int)ceil(log10(a->low / unit) - 1e-6),
        to = (int)floor(log10(a->high / unit) + 1e-6);
    int each = (to - from) / count + 1;
    static const double parts[] = {1, 2, 5};
    for (int power = to - from < 2 ? from - 1 : from; power <= to && a->count < REPORT_TICKS;
         power += each)
        for (int i = 0; i < (to - from < 2 ? 3 : 1) && a->count < REPORT_TICKS; i++) {
            double v = parts[i] * pow(10, power);
            if (v * unit < a->low / 1.0001 || v * unit > a->high * 1.0001) continue;
            report_tick *t = &a->ticks[a->count++];
            t->at = v * unit;
            if (v >= 1e4 || v < 1e-3) snprintf(t->text, sizeof t->text, "%.0e", v);
            else snprintf(t->text, sizeof t->text, "%g", v);
        }
}

static void find_axes(const report_chart *c, axis *x, axis *y, int wide, int high)
{
    *x = *y = (axis){.low = NAN, .high = NAN};
    for (size_t i = 0; i < c->count; i++) {
        const report_series *s = &c->series[i];
        for (size_t p = 0; p < s->count; p++) {
            const report_point *at = &s->points[p];
            stretch(x, at->x, 0);
            if (s->kind == REPORT_RUG) continue;
            stretch(y, at->y, c->log_y);
            if (s->band || s->kind == REPORT_AREA)
                stretch(y, at->low, c->log_y), stretch(y, at->high, c->log_y);
        }
    }
    if (c->x_end > 0) x->low = 0, x->high = c->x_end;
    if (c->y_most > 0 && y->high > c->y_most) y->high = c->y_most;
    if (c->zero) y->low = 0;
    if (c->zero && y->high < c->y_room) y->high = c->y_room;
    if (c->zero && !(y->high > 0)) y->high = c->y_unit > 0 ? c->y_unit : 1;
    widen(x, 0);
    widen(y, c->log_y);
    if (!c->log_y) y->high += ROOM * (y->high - y->low);
    if (!c->log_y && !c->zero) y->low -= ROOM * (y->high - y->low);
    if (!c->log_y && y->low < 0 && !c->zero) y->low = y->low < -ROOM * y->high ? y->low : 0;
    double x_unit = c->x_unit > 0 ? c->x_unit : 1, y_unit = c->y_unit > 0 ? c->y_unit : 1;
    if (c->x_tick_count) {
        memcpy(x->ticks, c->x_ticks, c->x_tick_count * sizeof *x->ticks);
        x->count = c->x_tick_count;
        for (size_t i = 0; i < x->count && wide <= NARROW; i++)
            if (*x->ticks[i].brief)
                memcpy(x->ticks[i].text, x->ticks[i].brief, sizeof x->ticks[i].brief);
    } else {
        put_linear_ticks(x, x_unit, wide > NARROW ? 8 : 4);
    }
    if (c->log_y) put_log_ticks(y, y_unit, high > 350 ? 8 : 5);
    else put_linear_ticks(y, y_unit, high > 350 ? 8 : 5);
}

/* ---- drawing ---- */

static double frame_y(const report_frame *f, double y)
{
    double part = f->log_y ? log(y / f->y_low) / log(f->y_high / f->y_low)
                           : (y - f->y_low) / (f->y_high - f->y_low);
    return f->bottom - part * (f->bottom - f->top);
}

static int is_gap(const report_chart *c, const report_point *p)
{
    return isnan(p->x) || isnan(p->y) || (c->log_y && p->y <= 0);
}

static double inside(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

/* Draw the part of a line segment that is between the chart's top and bottom. */
static void put_segment(FILE *page, const report_frame *f, const double from[2], const double to[2],
                        int *begun)
{
    double part[2] = {0, 1}, x[2], y[2];
    for (int end = 0; end < 2; end++) {
        double v = end ? to[1] : from[1], edge = inside(v, f->top, f->bottom),
               rise = to[1] - from[1];
        if (v != edge && rise != 0) part[end] = (edge - from[1]) / rise;
        else if (v != edge) part[end] = end ? -1 : 2; /* a horizontal segment outside the chart */
    }
    if (part[0] > part[1]) {
        *begun = 0;
        return;
    }
    for (int end = 0; end < 2; end++) {
        x[end] = from[0] + part[end] * (to[0] - from[0]);
        y[end] = from[1] + part[end] * (to[1] - from[1]);
    }
    if (!*begun || part[0] > 0) sgt_svg_path_to(page, 'M', x[0], y[0]);
    sgt_svg_path_to(page, 'L', x[1], y[1]);
    *begun = part[1] >= 1;
}

static void put_line(FILE *page, const report_chart *c, const report_frame *f,
                     const report_series *s, const char *class)
{
    double from[2], to[2];
    int begun = 0, before = 0;
    sgt_svg_path_begin(page, class);
    for (size_t i = 0; i < s->count; i++) {
        const report_point *p = &s->points[i];
        if (is_gap(c, p)) {
            begun = before = 0;
            continue;
        }
        to[0] = report_frame_x(f, p->x);
        to[1] = frame_y(f, p->y);
        if (before) put_segment(page, f, from, to, &begun);
        memcpy(from, to, sizeof from);
        before = 1;
    }
    sgt_svg_path_end(page);
}

/* Draw a filled area. Its outline follows the upper edge, then the lower edge back. Values outside
 * the chart are drawn at its border. After a gap, a new polygon begins. */
static int put_filled(FILE *page, const report_chart *c, const report_frame *f,
                      const report_series *s, const char *class, sgt_error *err)
{
    double(*outline)[2] = malloc(2 * (s->count + 1) * sizeof *outline);
    if (!outline) return sgt_fail_memory(err, "a picture");
    for (size_t i = 0, n; i < s->count; i += n + 1) {
        for (n = 0; i + n < s->count && !is_gap(c, &s->points[i + n]);) n++;
        for (size_t k = 0; k < n; k++) {
            const report_point *p = &s->points[i + k];
            outline[k][0] = outline[2 * n - 1 - k][0] = report_frame_x(f, p->x);
            outline[k][1] = frame_y(f, inside(p->high, f->y_low, f->y_high));
            outline[2 * n - 1 - k][1] = frame_y(f, inside(p->low, f->y_low, f->y_high));
        }
        if (n > 1) sgt_svg_polygon(page, class, (const double(*)[2])outline, 2 * n);
    }
    free(outline);
    return SGT_OK;
}

/* Return whether point i has no neighbour to which a line could connect it. */
static int alone(const report_chart *c, const report_series *s, size_t i)
{
    return (i == 0 || is_gap(c, &s->points[i - 1])) &&
           (i + 1 == s->count || is_gap(c, &s->points[i + 1]));
}

static void put_dots(FILE *page, const report_chart *c, const report_frame *f,
                     const report_series *s)
{
    char class[16], title[128];
    snprintf(class, sizeof class, "%s s%u", s->kind == REPORT_RUG ? "rug" : "dot", s->color);
    for (size_t i = 0; i < s->count; i++) {
        const report_point *p = &s->points[i];
        if (is_gap(c, p) || (s->kind == REPORT_LINE && !alone(c, s, i))) continue;
        if (s->kind == REPORT_RUG) {
            sgt_svg_circle(page, class, report_frame_x(f, p->x), f->bottom, 1.8, NULL);
        } else if (p->y >= f->y_low && p->y <= f->y_high) {
            report_hover_dot(title, sizeof title, c, s, p);
            sgt_svg_circle(page, class, report_frame_x(f, p->x), frame_y(f, p->y), 2.6,
                           *title ? title : NULL);
        }
    }
}

static void put_axes(FILE *page, const report_chart *c, const report_frame *f, const axis *x,
                     const axis *y, int high)
{
    for (size_t i = 0; i < y->count; i++) {
        double at = frame_y(f, y->ticks[i].at);
        sgt_svg_line(page, "grid", f->left, at, f->right, at);
        sgt_svg_text(page, "", f->left - 7, at + 4, "end", y->ticks[i].text);
    }
    sgt_svg_line(page, "axis", f->left, f->bottom, f->right, f->bottom);
    for (size_t i = 0; i < x->count; i++)
        sgt_svg_text(page, "", report_frame_x(f, x->ticks[i].at), f->bottom + 19, "middle",
                     x->ticks[i].text);
    if (*c->y_label) sgt_svg_text(page, "label", 0, 11, "start", c->y_label);
    if (*c->x_label)
        sgt_svg_text(page, "label", (f->left + f->right) / 2, high - 4, "middle", c->x_label);
}

/* Draw all series, from back to front: areas and bands, faint lines, other lines, hover strips,
 * dots. */
static int put_series(FILE *page, const report_chart *c, const report_frame *f, int wide,
                      sgt_error *err)
{
    static const struct {
        report_kind kind;
        const char *class;
    } strokes[] = {{REPORT_RAW, "raw"},
                   {REPORT_LINE, "line"},
                   {REPORT_MARKS, "line"},
                   {REPORT_LIMIT, "limit"}};
    char class[24];
    int rc = SGT_OK;
    for (size_t i = 0; i < c->count && rc == SGT_OK; i++) {
        const report_series *s = &c->series[i];
        if (s->kind != REPORT_AREA && !s->band) continue;
        snprintf(class, sizeof class, s->kind == REPORT_AREA ? "area m%u" : "band s%u", s->color);
        rc = put_filled(page, c, f, s, class, err);
    }
    for (size_t k = 0; k < sizeof strokes / sizeof *strokes; k++)
        for (size_t i = 0; i < c->count; i++) {
            if (c->series[i].kind != strokes[k].kind || c->series[i].count < 2) continue;
            snprintf(class, sizeof class, "%s s%u", strokes[k].class, c->series[i].color);
            put_line(page, c, f, &c->series[i], class);
        }
    report_hover_put(page, c, f, REPORT_HOVERS(wide));
    for (size_t i = 0; i < c->count; i++)
        if (c->series[i].kind == REPORT_MARKS || c->series[i].kind == REPORT_RUG ||
            c->series[i].kind == REPORT_LINE)
            put_dots(page, c, f, &c->series[i]);
    return rc;
}

int report_chart_draw(FILE *page, const report_chart *c, int wide, int high, const char *class,
                      const char *says, sgt_error *err)
{
    axis x, y;
    find_axes(c, &x, &y, wide, high);
    report_frame f = {.x_low = x.low,
                      .x_high = x.high,
                      .y_low = y.low,
                      .y_high = y.high,
                      .log_y = c->log_y,
                      .left = LEFT,
                      .right = wide - RIGHT,
                      .top = *c->y_label ? TOP + LABEL : TOP,
                      .bottom = high - (*c->x_label ? BOTTOM + LABEL : BOTTOM)};
    sgt_svg_begin(page, class, wide, high, says, 0);
    put_axes(page, c, &f, &x, &y, high);
    int rc = put_series(page, c, &f, wide, err);
    sgt_svg_end(page);
    return rc;
}
