/* loader_plot.c: the table as a picture: a bar a row, and for each part of the loader a bar that ends at its share of
 * the limit. Colours follow the reader's: light, or dark where that is preferred. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/file.h"
#include "tools/bench/loader.h"

enum { LEFT = 250, WIDE = 420, RIGHT = 330, HIGH = 18, GAP = 5, HEADING = 40, BOTTOM = 16 };

static const char style[] =
    "<style>\n"
    "rect.page { fill: #ffffff } text { fill: #1c1e21; font-family: sans-serif; font-size: 13px } text.title { font-size: 16px }\n"
    "text.small { fill: #5c6068 } .ours { fill: #3b73b9 } .limit { fill: #9aa0a8 } .peer { fill: #c9813a }\n"
    "line { stroke: #5c6068; stroke-dasharray: 4 3 }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "rect.page { fill: #15171a } text { fill: #e4e6ea } text.small { fill: #a2a8b1 }\n"
    ".ours { fill: #6ea3e6 } .limit { fill: #767c85 } .peer { fill: #e0a262 } line { stroke: #a2a8b1 } }\n"
    "</style>\n";

typedef struct canvas {
    FILE *f;
    int y; /* where the next row begins */
} canvas;

static void put_escaped(FILE *f, const char *s)
{
    for (; *s; s++) {
        const char *as = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : NULL;
        if (as) fputs(as, f);
        else if ((unsigned char)*s >= ' ') putc(*s, f);
    }
}

static void put_heading(canvas *c, const char *text)
{
    c->y += HEADING;
    fprintf(c->f, "<text x=\"12\" y=\"%d\">", c->y - 12);
    put_escaped(c->f, text);
    fprintf(c->f, "</text>\n");
}

/* A name, a bar that is `part` of the width, and behind it, or behind place `least`, what it means. */
static void put_row(canvas *c, const char *name, const char *kind, double part, int least, const char *value)
{
    int width = (int)(part * WIDE + 0.5), middle = c->y + HIGH - 5, behind;
    if (width < 1) width = 1;
    behind = LEFT + width > least ? LEFT + width : least;
    fprintf(c->f, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8, middle);
    put_escaped(c->f, name);
    fprintf(c->f, "</text>\n<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", kind, LEFT, c->y, width,
            HIGH);
    fprintf(c->f, "<text class=\"small\" x=\"%d\" y=\"%d\">", behind + 8, middle);
    put_escaped(c->f, value);
    fprintf(c->f, "</text>\n");
    c->y += HIGH + GAP;
}

static void put_group(canvas *c, const loader_bench *b, const loader_group *g)
{
    char name[64], value[96], heading[128];
    double most = 0;
    for (size_t i = 0; i < g->count; i++)
        if (!g->results[i].why[0] && loader_tokens_per_s(&g->results[i]) > most) most = loader_tokens_per_s(&g->results[i]);
    snprintf(heading, sizeof heading, "%s, %" PRIu32 " rows of %" PRIu32 ", %s: tokens a second",
             loader_sampling_name(g->results[0].sampling), g->results[0].batch, g->results[0].seq,
             b->o->cold ? "cold" : "warm");
    put_heading(c, heading);
    for (size_t i = 0; i < g->count; i++) {
        const loader_result *r = &g->results[i];
        if (r->why[0]) continue;
        int ours = loader_is_reader(r->who), limit = loader_is_limit(r->who);
        snprintf(name, sizeof name, r->who == LOADER_FIO ? "%s" : "%s, %s", loader_who_name(r->who),
                 loader_output_name(r->output));
        snprintf(value, sizeof value, "%.1f M%s", loader_tokens_per_s(r) * 1e-6, r->best ? ", the fastest" : "");
        put_row(c, name, ours ? "ours" : limit ? "limit" : "peer", loader_tokens_per_s(r) / most, 0, value);
    }
}

static void put_lines(canvas *c, const loader_bench *b)
{
    double most = 1;
    char value[160];
    for (size_t i = 0; i < b->line_count; i++)
        if (loader_line_share(b, &b->lines[i]) > most) most = loader_line_share(b, &b->lines[i]);
    put_heading(c, "Each part beside its limit, which is 1");
    int from = c->y, x = LEFT + (int)(WIDE / most + 0.5);
    for (size_t i = 0; i < b->line_count; i++) {
        double share = loader_line_share(b, &b->lines[i]);
        if (share <= 0) continue;
        snprintf(value, sizeof value, "%.2f \u00d7 %s", share, loader_line_other(&b->lines[i]));
        put_row(c, loader_line_ours(&b->lines[i]), "ours", share / most, x, value);
    }
    if (c->y > from) fprintf(c->f, "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", x, from - 4, x, c->y - GAP + 4);
}

/* How high it is, is known at its end. */
static void put_body(canvas *c, const loader_bench *b)
{
    fprintf(c->f, "<text class=\"title\" x=\"12\" y=\"26\">Batches from ");
    put_escaped(c->f, b->path);
    fprintf(c->f, " (%.2f GB) on ", 2e-9 * (double)b->tokens);
    put_escaped(c->f, sgt_cpu_model());
    fprintf(c->f, ", %d cores</text>\n", sgt_cpu_count());
    c->y = 34;
    for (size_t i = 0; i < b->grid_count; i++) put_group(c, b, &b->groups[i]);
    if (b->line_count) put_lines(c, b);
}

int loader_plot(const loader_bench *b, const char *path, sgt_error *err)
{
    char *body = NULL, *text = NULL;
    size_t n = 0;
    canvas c = {.f = open_memstream(&body, &n)};
    if (!c.f) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", path);
    put_body(&c, b);
    int wide = LEFT + WIDE + RIGHT, high = c.y + BOTTOM, length = -1;
    if (fclose(c.f) == 0)
        length = asprintf(&text,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
                          "%s<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n",
                          wide, high, wide, high, style, body);
    int rc = length < 0 ? sgt_fail(err, SGT_ENOMEM, "%s: out of memory", path)
                        : sgt_file_put(path, text, (size_t)length, err);
    free(body);
    if (length >= 0) free(text);
    return rc;
}
