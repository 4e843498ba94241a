/* figures.c: writes one <figure> of the page. */
#include "tools/page/page.h"
#include "tools/report/figures.h"

#include <stdarg.h>
#include <string.h>

/* Sizes of charts in pixels. A large chart is written in both sizes, and the style shows one of
 * them, so that its text keeps the usual size. */
enum { LARGE = 760, LARGE_HIGH = 590, SMALL = 360, SMALL_HIGH = 252 };

void report_figure_key(report_figure *g, const char *class, unsigned color, const char *name)
{
    if (g->key_count < REPORT_KEYS) g->keys[g->key_count++] = (report_key){class, color, name};
}

void report_figure_say(report_figure *g, const char *fmt, ...)
{
    size_t n = strlen(g->caption);
    va_list args;
    va_start(args, fmt);
    vsnprintf(g->caption + n, sizeof g->caption - n, fmt, args);
    va_end(args);
}

void report_put_swatch(FILE *page, const char *class, unsigned color)
{
    fprintf(page, "<i class=\"key %s %c%u\"></i>", class, strcmp(class, "area") == 0 ? 'm' : 's',
            color);
}

static void put_legend(FILE *page, const report *r, const report_figure *g)
{
    int runs = g->of_runs && r->count > 1;
    if (!runs && !g->key_count) return;
    fputs("<ul class=\"legend\">\n", page);
    for (size_t i = 0; i < r->count && runs; i++) {
        fputs("<li>", page);
        report_put_swatch(page, "line", (unsigned)i);
        sgt_page_text(page, r->runs[i].name);
        fputs("</li>\n", page);
    }
    for (size_t i = 0; i < g->key_count; i++) {
        fputs("<li>", page);
        report_put_swatch(page, g->keys[i].class, g->keys[i].color);
        sgt_page_text(page, g->keys[i].name);
        fputs("</li>\n", page);
    }
    fputs("</ul>\n", page);
}

int report_figure_put(FILE *page, const report *r, report_figure *g, sgt_error *err)
{
    int rc = sgt_stopped(r->stop) ? sgt_fail(err, SGT_ESTOPPED, "interrupted") : SGT_OK;
    fprintf(page, "<figure id=\"%s\"%s>\n<h3>%s", g->id, g->large ? " class=\"large\"" : "",
            g->title);
    fputs("</h3>\n", page);
    if (report_chart_empty(&g->chart)) {
        fputs("<p class=\"none\">The log has no number to show here.</p>\n", page);
    } else {
        put_legend(page, r, g);
        if (rc == SGT_OK && g->large)
            rc = report_chart_draw(page, &g->chart, LARGE, LARGE_HIGH, "chart wide", g->title, err);
        if (rc == SGT_OK)
            rc = report_chart_draw(page, &g->chart, SMALL, SMALL_HIGH,
                                   g->large ? "chart narrow" : "chart", g->title, err);
        if (*g->caption) {
            fputs("<figcaption>", page);
            sgt_page_text(page, g->caption);
            fputs("</figcaption>\n", page);
        }
    }
    fputs("</figure>\n", page);
    report_chart_free(&g->chart);
    return rc;
}
