/* picture.c: draws bars as SVG. A group is drawn once it is complete, because its scale is unknown
 * before. */
#include "tools/bench/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tools/bench/bench.h"
#include "tools/page/svg.h"

enum {
    LEFT = 290,
    WIDE = 400,
    RIGHT = 310,
    HIGH = 18,
    GAP = 5,
    TOP = 52,
    HEADING = 34,
    BOTTOM = 16,
    MOST = 64
};

/* All styles apply within class "bars" only, so that one page can hold several pictures. */
static const char style[] =
    "<style>\n"
    ".bars .page { fill: #ffffff } .bars text { fill: #1c1e21; font: 13px sans-serif }\n"
    ".bars .title { font-size: 16px } .bars .small { fill: #5c6068 }\n"
    ".bars .ours { fill: #3b73b9 } .bars .light { fill: #9db9dc }\n"
    ".bars .limit { fill: #9aa0a8 } .bars .peer { fill: #c9813a }\n"
    ".bars line { stroke: #5c6068; stroke-dasharray: 4 3 }\n"
    "@media (prefers-color-scheme: dark) {\n"
    ".bars .page { fill: #15171a } .bars text { fill: #e4e6ea } .bars .small { fill: #a2a8b1 }\n"
    ".bars .ours { fill: #6ea3e6 } .bars .light { fill: #44638c } .bars .limit { fill: #767c85 }\n"
    ".bars .peer { fill: #e0a262 } .bars line { stroke: #a2a8b1 } }\n"
    "</style>\n";

typedef struct bar {
    bench_bar kind;
    double value;
    char name[64], text[128];
} bar;

struct bench_picture {
    FILE *f; /* stream that writes to `body` */
    char *body;
    char title[256];
    size_t n;
    int y; /* y of the next row */
    bar bars[MOST];
    int count;
    double limit; /* value at the line across the current group; 0: no line */
};

bench_picture *bench_picture_new(const char *fmt, ...)
{
    char machine[256];
    va_list args;
    bench_picture *p = calloc(1, sizeof *p);
    if (p && !(p->f = open_memstream(&p->body, &p->n))) {
        free(p);
        p = NULL;
    }
    if (!p) return NULL;
    va_start(args, fmt);
    vsnprintf(p->title, sizeof p->title, fmt, args);
    va_end(args);
    sgt_svg_text(p->f, "title", 12, 26, "start", p->title);
    sgt_svg_text(p->f, "small", 12, 46, "start", bench_machine(machine, sizeof machine));
    p->y = TOP;
    return p;
}

static void put_bar(bench_picture *p, const bar *b, double most, int least)
{
    static const char *const kinds[] = {"ours", "limit", "peer", "light"};
    int width = (int)(b->value / most * WIDE + 0.5), middle = p->y + HIGH - 5;
    if (width < 1) width = 1;
    sgt_svg_text(p->f, "", LEFT - 8, middle, "end", b->name);
    sgt_svg_rect(p->f, kinds[b->kind], LEFT, p->y, width, HIGH, NULL);
    sgt_svg_text(p->f, "small", (LEFT + width > least ? LEFT + width : least) + 8, middle, "start",
                 b->text);
    p->y += HIGH + GAP;
}

/* Draw the bars of the current group, and the line of its limit. Texts stand to the right of the
 * bars, and never on that line. */
static void end_group(bench_picture *p)
{
    double most = p->limit;
    int from = p->y;
    for (int i = 0; i < p->count; i++)
        if (p->bars[i].value > most) most = p->bars[i].value;
    int x = LEFT + (most > 0 ? (int)(p->limit / most * WIDE + 0.5) : 0);
    for (int i = 0; i < p->count; i++)
        put_bar(p, &p->bars[i], most > 0 ? most : 1, p->limit > 0 ? x : 0);
    if (p->limit > 0 && p->count) sgt_svg_line(p->f, "", x, from - 4, x, p->y - GAP + 4);
    p->count = 0;
    p->limit = 0;
}

void bench_picture_group(bench_picture *p, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (!p) return;
    end_group(p);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    p->y += HEADING;
    sgt_svg_text(p->f, "", 12, p->y - 10, "start", text);
}

void bench_picture_bar(bench_picture *p, bench_bar kind, double value, const char *name,
                       const char *fmt, ...)
{
    va_list args;
    if (!p || p->count == MOST) return;
    bar *b = &p->bars[p->count++];
    b->kind = kind;
    b->value = value;
    snprintf(b->name, sizeof b->name, "%s", name);
    va_start(args, fmt);
    vsnprintf(b->text, sizeof b->text, fmt, args);
    va_end(args);
}

void bench_picture_limit(bench_picture *p, double value)
{
    if (p) p->limit = value;
}

static int put_file(const bench_picture *p, const char *path, sgt_error *err)
{
    int wide = LEFT + WIDE + RIGHT, high = p->y + BOTTOM;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return sgt_fail_memory(err, path);
    sgt_svg_begin(f, "bars", wide, high, p->title, 1);
    fputs(style, f);
    sgt_svg_rect(f, "page", 0, 0, wide, high, NULL);
    fwrite(p->body, 1, p->n, f);
    sgt_svg_end(f);
    int rc = ferror(f) | fclose(f) ? sgt_fail_memory(err, path) : sgt_file_put(path, text, n, err);
    free(text);
    return rc;
}

int bench_picture_write(bench_picture *p, const char *path, sgt_error *err)
{
    if (!p) return sgt_fail_memory(err, path);
    end_group(p);
    int rc = fclose(p->f) == 0 ? put_file(p, path, err) : sgt_fail_memory(err, path);
    free(p->body);
    free(p);
    return rc;
}
