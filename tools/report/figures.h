/* figures.h: writes a <figure> of the page: title, legend, chart and caption. */
#ifndef SGT_TOOLS_REPORT_FIGURES_H
#define SGT_TOOLS_REPORT_FIGURES_H

#include "tools/report/report.h"

#define REPORT_KEYS 20

typedef struct report_key {
    const char *class; /* how it is drawn: "line", "dots", "band", "limit", "area" */
    unsigned color;
    const char *name;
} report_key;

typedef struct report_figure {
    const char *id; /* id within the page, such as "loss-steps" */
    char title[64], caption[640];
    int large;   /* 1: two columns wide, if there is room */
    int of_runs; /* 1: the legend begins with the runs, if there are several */
    report_key keys[REPORT_KEYS];
    size_t key_count;
    report_chart chart; /* freed by report_figure_put */
} report_figure;

void report_figure_key(report_figure *g, const char *class, unsigned color, const char *name);
/* Append to the caption. */
void report_figure_say(report_figure *g, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Write the figure, and free its chart. If the chart has no point, the figure says that there is
 * nothing to show. */
int report_figure_put(FILE *page, const report *r, report_figure *g, sgt_error *err);

/* explain the kinds of memory that are on the page */
void report_put_gloss(FILE *page, const report *r);
void report_put_swatch(FILE *page, const char *class, unsigned color);

#endif
