/* svg.c: writes shapes of an SVG. */
#include "tools/page/svg.h"

#include <math.h>

#include "tools/page/page.h"

/* points of an outline in each line of the file, so that lines stay readable */
#define POINTS_A_LINE 8

/* Write a text without its control characters, which XML does not allow. */
static void put_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        char one[2] = {*text, '\0'};
        if ((unsigned char)*text >= ' ' || *text == '\n') sgt_page_text(f, one);
    }
}

/* Write a number rounded to tenths, without ".0", because half of a page's bytes are
 * coordinates. */
static void put_number(FILE *f, double v)
{
    double tenths = floor(10 * v + 0.5);
    fprintf(f, fmod(tenths, 10) != 0 ? "%.1f" : "%.0f", tenths / 10);
}

static void put_attribute(FILE *f, const char *name, double v)
{
    fprintf(f, " %s=\"", name);
    put_number(f, v);
    fputc('"', f);
}

static void begin(FILE *f, const char *element, const char *class)
{
    fprintf(f, "<%s", element);
    if (*class) fprintf(f, " class=\"%s\"", class);
}

static void end(FILE *f, const char *element, const char *title)
{
    if (title) {
        fputs("><title>", f);
        put_text(f, title);
        fprintf(f, "</title></%s>\n", element);
    } else {
        fputs("/>\n", f);
    }
}

void sgt_svg_begin(FILE *f, const char *class, int wide, int high, const char *says, int alone)
{
    fprintf(f, "<svg class=\"%s\" role=\"img\" viewBox=\"0 0 %d %d\"", class, wide, high);
    if (alone)
        fprintf(f, " xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\"", wide, high);
    fputs(" aria-label=\"", f);
    put_text(f, says);
    fputs("\">\n", f);
}

void sgt_svg_end(FILE *f) { fputs("</svg>\n", f); }

void sgt_svg_text(FILE *f, const char *class, double x, double y, const char *anchor,
                  const char *text)
{
    begin(f, "text", class);
    put_attribute(f, "x", x);
    put_attribute(f, "y", y);
    fprintf(f, " text-anchor=\"%s\">", anchor);
    put_text(f, text);
    fputs("</text>\n", f);
}

void sgt_svg_rect(FILE *f, const char *class, double x, double y, double wide, double high,
                  const char *title)
{
    begin(f, "rect", class);
    put_attribute(f, "x", x);
    put_attribute(f, "y", y);
    put_attribute(f, "width", wide);
    put_attribute(f, "height", high);
    end(f, "rect", title);
}

void sgt_svg_circle(FILE *f, const char *class, double x, double y, double r, const char *title)
{
    begin(f, "circle", class);
    put_attribute(f, "cx", x);
    put_attribute(f, "cy", y);
    put_attribute(f, "r", r);
    end(f, "circle", title);
}

void sgt_svg_line(FILE *f, const char *class, double x1, double y1, double x2, double y2)
{
    begin(f, "line", class);
    put_attribute(f, "x1", x1);
    put_attribute(f, "y1", y1);
    put_attribute(f, "x2", x2);
    put_attribute(f, "y2", y2);
    end(f, "line", NULL);
}

static void put_point(FILE *f, double x, double y)
{
    put_number(f, x);
    fputc(',', f);
    put_number(f, y);
}

void sgt_svg_path_begin(FILE *f, const char *class)
{
    begin(f, "path", class);
    fputs(" d=\"", f);
}

void sgt_svg_path_to(FILE *f, char pen, double x, double y)
{
    fprintf(f, pen == 'M' ? "\n%c" : "%c", pen);
    put_point(f, x, y);
}

void sgt_svg_path_end(FILE *f)
{
    fputc('"', f);
    end(f, "path", NULL);
}

void sgt_svg_polygon(FILE *f, const char *class, const double (*points)[2], size_t n)
{
    begin(f, "polygon", class);
    fputs(" points=\"", f);
    for (size_t i = 0; i < n; i++) {
        if (i) fputc(i % POINTS_A_LINE ? ' ' : '\n', f);
        put_point(f, points[i][0], points[i][1]);
    }
    fputc('"', f);
    end(f, "polygon", NULL);
}
