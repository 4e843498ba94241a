/* chart.c: one picture: which part of the numbers it shows, where its axes have numbers, and gnuplot's script for it.
 * Nothing in a script comes from a file or a command line but numbers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"

#define NARROW 500 /* points */
#define ROOM 0.04 /* of the height, above the highest point */

typedef struct axis {
    double low, high; /* shown */
    report_tick ticks[REPORT_TICKS];
    size_t count;
} axis;

report_point *report_chart_add(report_chart *c, report_kind kind, unsigned color, size_t points)
{
    if (c->count == REPORT_SERIES) return NULL;
    report_series *s = &c->series[c->count];
    *s = (report_series){.kind = kind, .color = color, .points = calloc(points + !points, sizeof *s->points)};
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

/* Whatever is shown, it has some width. */
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

/* 1, 2 or 5 times a power of ten, so that there are about `count` of it. */
static double nice_step(double width, int count)
{
    double least = width / count, power = pow(10, floor(log10(least)));
    if (least <= power * 1.0001) return power;
    return least <= 2 * power ? 2 * power : least <= 5 * power ? 5 * power : 10 * power;
}

/* "500", "1.5k", "2M". Below 10,000 numbers stay as they are where an axis has smaller steps than 500. */
static void tick_text(char *buf, size_t n, double v, double step)
{
    static const char *const names[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof *names &&
           fabs(v) >= (i || step >= 500 ? 999.5 : 9999.5)) {
        v /= 1000;
        step /= 1000;
        i++;
    }
    int decimals = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-6);
    if (decimals > 6 || fabs(v) >= 1e6) snprintf(buf, n, "%.3g%s", v, names[i]);
    else snprintf(buf, n, "%.*f%s", decimals, v, names[i]);
    char *end = buf + strcspn(buf, "kMGTP"), *keep = end; /* 2.50k: 2.5k */
    if (!i || !memchr(buf, '.', (size_t)(end - buf))) return;
    while (keep[-1] == '0') keep--;
    if (keep[-1] == '.') keep--;
    memmove(keep, end, strlen(end) + 1);
}

static void put_linear_ticks(axis *a, double unit, int count)
{
    double low = a->low / unit, high = a->high / unit, step = nice_step(high - low, count);
    for (double k = ceil(low / step - 1e-6); k <= high / step + 1e-6 && a->count < REPORT_TICKS; k++) {
        report_tick *t = &a->ticks[a->count++];
        t->at = k * step * unit;
        tick_text(t->text, sizeof t->text, fabs(k) < 0.5 ? 0 : k * step, step);
    }
}

/* Powers of ten, all of them or every few; where there are less than three, 2 and 5 times them too, and where not even
 * of these there would be three, even steps. */
static void put_log_ticks(axis *a, double unit, int count)
{
    if (a->high < 6 * a->low) {
        put_linear_ticks(a, unit, count);
        return;
    }
    int from = (int)ceil(log10(a->low / unit) - 1e-6), to = (int)floor(log10(a->high / unit) + 1e-6);
    int each = (to - from) / count + 1;
    static const double parts[] = {1, 2, 5};
    for (int power = to - from < 2 ? from - 1 : from; power <= to && a->count < REPORT_TICKS; power += each)
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
            if (s->band || s->kind == REPORT_AREA) stretch(y, at->low, c->log_y), stretch(y, at->high, c->log_y);
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
            if (*x->ticks[i].brief) memcpy(x->ticks[i].text, x->ticks[i].brief, sizeof x->ticks[i].brief);
    } else {
        put_linear_ticks(x, x_unit, wide > NARROW ? 8 : 4);
    }
    if (c->log_y) put_log_ticks(y, y_unit, high > 350 ? 8 : 5);
    else put_linear_ticks(y, y_unit, high > 350 ? 8 : 5);
}

/* ---- gnuplot's script ---- */

static void put_ticks(FILE *f, char which, const axis *a)
{
    fprintf(f, "set %ctics nomirror scale 0 textcolor rgb '#%02x0000' (", which, REPORT_IS_AXIS);
    for (size_t i = 0; i < a->count; i++) fprintf(f, "%s'%s' %.15g", i ? ", " : "", a->ticks[i].text, a->ticks[i].at);
    fprintf(f, ")\nset %crange [%.15g:%.15g]\n", which, a->low, a->high);
}

static int is_gap(const report_chart *c, const report_point *p)
{
    return isnan(p->x) || isnan(p->y) || (c->log_y && p->y <= 0);
}

/* Points that are shown: gnuplot has no picture of none, and one alone has no line to be seen by. */
static size_t visible(const report_chart *c, const report_series *s)
{
    size_t n = 0;
    for (size_t p = 0; p < s->count; p++) n += !is_gap(c, &s->points[p]);
    return n;
}

/* x y low high a line; an empty line where there is a gap. */
static void put_data(FILE *f, const report_chart *c, const axis *y)
{
    for (size_t i = 0; i < c->count; i++) {
        const report_series *s = &c->series[i];
        fprintf(f, "$d%zu << EOD\n", i);
        for (size_t p = 0; p < s->count; p++) {
            const report_point *at = &s->points[p];
            double v = s->kind == REPORT_RUG ? y->low : at->y;
            double low = c->log_y && at->low < y->low ? y->low : at->low;
            if (is_gap(c, at)) fputs("\n", f);
            else if (s->band || s->kind == REPORT_AREA) fprintf(f, "%.9g %.9g %.9g %.9g\n", at->x, v, low, at->high);
            else fprintf(f, "%.9g %.9g\n", at->x, v);
        }
        fputs("EOD\n", f);
    }
}

static void put_filled(FILE *f, size_t i, int what, unsigned color, const char **sep)
{
    fprintf(f, "%s$d%zu using 1:3:4 with filledcurves lc rgb '#%02x%02x00' fs solid noborder notitle", *sep, i, what,
            color);
    *sep = ", ";
}

static void put_stroke(FILE *f, size_t i, const char *with, int what, unsigned color, const char **sep)
{
    fprintf(f, "%s$d%zu using 1:2 with %s lc rgb '#%02x%02x00' notitle", *sep, i, with, what, color);
    *sep = ", ";
}

static void put_fillings(FILE *f, const report_chart *c, const char **sep)
{
    for (size_t i = 0; i < c->count; i++) {
        const report_series *s = &c->series[i];
        if (!visible(c, s)) continue;
        if (s->kind == REPORT_AREA) put_filled(f, i, REPORT_IS_AREA, s->color, sep);
        else if (s->band) put_filled(f, i, REPORT_IS_BAND, s->color, sep);
    }
}

/* Bands lie behind all lines, and dots on them. */
static void put_plot(FILE *f, const report_chart *c)
{
    const char *sep = "plot ";
    put_fillings(f, c, &sep);
    for (size_t i = 0; i < c->count; i++) {
        const report_series *s = &c->series[i];
        if (!visible(c, s)) continue;
        if (s->kind == REPORT_LINE || s->kind == REPORT_MARKS)
            put_stroke(f, i, "lines", REPORT_IS_LINE, s->color, &sep);
        if (s->kind == REPORT_LIMIT) put_stroke(f, i, "lines", REPORT_IS_LIMIT, s->color, &sep);
        if (s->kind == REPORT_RUG) put_stroke(f, i, "points pt 7", REPORT_IS_RUG, s->color, &sep);
    }
    for (size_t i = 0; i < c->count; i++) {
        const report_series *s = &c->series[i];
        if ((s->kind == REPORT_MARKS && visible(c, s)) || (s->kind == REPORT_LINE && visible(c, s) == 1))
            put_stroke(f, i, "points pt 7", REPORT_IS_DOT, s->color, &sep);
    }
    fputs("\n", f);
}

static void put_script(FILE *f, const report_chart *c, int wide, int high)
{
    axis x, y;
    find_axes(c, &x, &y, wide, high);
    fprintf(f, "set terminal svg size %d,%d dynamic noenhanced font 'sans-serif,12'\n", wide, high);
    fprintf(f, "set lmargin at screen %g\nset rmargin at screen %g\n", 46. / wide, 1 - 12. / wide);
    fprintf(f, "set tmargin at screen %g\nset bmargin at screen %g\n", 1 - 10. / high, 26. / high);
    fprintf(f, "unset key\nset border 1 lc rgb '#%02x0000'\nset grid ytics back lc rgb '#%02x0000' lt 1\n",
            REPORT_IS_GRID, REPORT_IS_GRID);
    if (c->log_y) fputs("set logscale y\n", f);
    put_ticks(f, 'x', &x);
    put_ticks(f, 'y', &y);
    put_data(f, c, &y);
    put_plot(f, c);
}

int report_chart_draw(FILE *page, const report_chart *c, int wide, int high, const char *class, const char *says,
                      sgt_error *err)
{
    char *script = NULL, *svg;
    size_t n;
    FILE *f = open_memstream(&script, &n);
    if (!f) return sgt_fail(err, SGT_ENOMEM, "a picture: out of memory");
    put_script(f, c, wide, high);
    int rc = ferror(f) | fclose(f) ? sgt_fail(err, SGT_ENOMEM, "a picture: out of memory")
                                   : report_gnuplot(&svg, script, n, err);
    free(script);
    if (rc < 0) return rc;
    report_svg_put(page, svg, wide, high, class, says);
    free(svg);
    return SGT_OK;
}
