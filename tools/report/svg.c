/* svg.c: of what gnuplot wrote, the lines, areas, dots and words, each with a class of the page in the place of its
 * colour: what is drawn then follows the page's theme, and has no names that two pictures could share. chart.c gives
 * everything a colour that says what it is: #KKSS00, a REPORT_IS_ kind and a series. */
#include <stdlib.h>
#include <string.h>

#include "tools/page/page.h"
#include "tools/report/report.h"

#define POINTS_A_LINE 8 /* of an outline, so that the page's lines stay readable */

static const char *const classes[] = {[REPORT_IS_AXIS] = "axis", [REPORT_IS_GRID] = "grid", [REPORT_IS_LINE] = "line",
                                      [REPORT_IS_BAND] = "band", [REPORT_IS_DOT] = "dot",   [REPORT_IS_RUG] = "rug",
                                      [REPORT_IS_LIMIT] = "limit", [REPORT_IS_AREA] = "area"};

/* The value of NAME = 'value' in the tag that begins at `tag`, after blanks; NULL: none. *n: its bytes. */
static const char *attribute(const char *tag, const char *name, size_t *n)
{
    const char *end = strchr(tag, '>');
    size_t length = strlen(name);
    for (const char *at = tag; end && (at = strstr(at, name)) && at < end; at += length) {
        const char *p = at + length;
        if (at[-1] != ' ' && at[-1] != '\t') continue;
        p += strspn(p, " ");
        if (*p++ != '=') continue;
        p += strspn(p, " ");
        const char *close = *p == '\'' || *p == '"' ? strchr(p + 1, *p) : NULL;
        if (!close) return NULL;
        *n = (size_t)(close - p - 1);
        return p + 1;
    }
    return NULL;
}

/* Of "rgb( 3, 1, 0)" kind and series; 0: no colour of ours. */
static unsigned kind_of(const char *tag, const char *name, unsigned *series)
{
    size_t n;
    unsigned kind = 0;
    const char *rgb = attribute(tag, name, &n);
    if (!rgb || sscanf(rgb, "rgb( %u , %u", &kind, series) != 2) return 0;
    return kind < sizeof classes / sizeof *classes ? kind : 0;
}

static void put_class(FILE *page, unsigned kind, unsigned series)
{
    fprintf(page, " class=\"%s", classes[kind]);
    if (kind == REPORT_IS_AREA) fprintf(page, " m%u", series);
    else if (kind > REPORT_IS_GRID) fprintf(page, " s%u", series);
    fputs("\"", page);
}

/* Coordinates to a tenth of a point: pairs of numbers, each after what moves the pen there. */
static void put_points(FILE *page, const char *at, const char *end, int path)
{
    int count = 0;
    while (at < end) {
        char *after, command = *at;
        if ((command >= '0' && command <= '9') || command == '-') {
            double x = strtod(at, &after);
            double y = *after == ',' ? strtod(after + 1, &after) : 0;
            fprintf(page, "%s%.1f,%.1f", !path && count ? " " : "", x, y);
            at = after;
            if (++count % POINTS_A_LINE == 0) fputc('\n', page);
        } else {
            if (path && (command == 'M' || command == 'L')) fputc(command, page);
            at++;
        }
    }
}

static void put_shape(FILE *page, const char *tag, const char *element, const char *color, const char *points)
{
    size_t n;
    unsigned series = 0, kind = kind_of(tag, color, &series);
    const char *p = attribute(tag, points, &n);
    int path = strcmp(points, "d") == 0;
    if (!kind || !p || (path && !memchr(p, 'L', n))) return; /* ticks of no length are paths too */
    fprintf(page, "<%s", element);
    put_class(page, kind, series);
    fprintf(page, " %s=\"", points);
    put_points(page, p, p + n, path);
    fputs("\"/>\n", page);
}

static void put_dot(FILE *page, const char *tag)
{
    size_t n;
    double x, y;
    unsigned series = 0, kind = kind_of(tag, "color", &series);
    const char *p = attribute(tag, "transform", &n);
    if (!kind || !p || sscanf(p, "translate(%lf,%lf)", &x, &y) != 2) return;
    fputs("<circle", page);
    put_class(page, kind, series);
    fprintf(page, " cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"/>\n", x, y, kind == REPORT_IS_RUG ? "1.8" : "2.6");
}

/* <g transform="translate(x,y)" ... text-anchor="end"><text>words</text>, or words within a <tspan> of that: they are
 * chart.c's own, numbers and units. */
static void put_words(FILE *page, const char *group)
{
    size_t n, anchor_n;
    double x, y;
    const char *p = attribute(group, "transform", &n), *anchor = attribute(group, "text-anchor", &anchor_n);
    const char *words = strstr(group, "<text"), *end;
    if (!p || !anchor || !words || sscanf(p, "translate(%lf,%lf)", &x, &y) != 2) return;
    do {
        if (!(words = strchr(words, '>'))) return;
        words++;
        words += strspn(words, " \n\t");
    } while (strncmp(words, "<tspan", 6) == 0);
    if (!(end = strchr(words, '<'))) return;
    fprintf(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%.*s\">%.*s</text>\n", x, y, (int)anchor_n, anchor,
            (int)(end - words), words);
}

void report_svg_put(FILE *page, const char *svg, int wide, int high, const char *class, const char *says)
{
    const char *at = strstr(svg, "</defs>");
    fprintf(page, "<svg class=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", class, wide, high);
    sgt_page_text(page, says);
    fputs("\">\n", page);
    for (at = at ? at : svg; (at = strchr(at, '<')); at++) {
        if (strncmp(at, "<path ", 6) == 0) put_shape(page, at, "path", "stroke", "d");
        else if (strncmp(at, "<polygon ", 9) == 0) put_shape(page, at, "polygon", "fill", "points");
        else if (strncmp(at, "<use ", 5) == 0) put_dot(page, at);
        else if (strncmp(at, "<g transform", 12) == 0) put_words(page, at);
    }
    fputs("</svg>\n", page);
}
