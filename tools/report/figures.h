/* figures.h: a <figure> of the page: title, what its colours mean, the picture, a caption. */
#ifndef SGT_TOOLS_REPORT_FIGURES_H
#define SGT_TOOLS_REPORT_FIGURES_H

#include "tools/report/report.h"

#define REPORT_KEYS 20

typedef struct report_key {
    const char *class; /* "line", "dots", "band", "limit", "area" */
    unsigned color;
    const char *name;
} report_key;

typedef struct report_figure {
    const char *id; /* within the page; "loss-steps" */
    char title[64], caption[640];
    int large;   /* two columns wide where there is room */
    int of_runs; /* the legend begins with the runs, where there are several */
    report_key keys[REPORT_KEYS];
    size_t key_count;
    report_chart chart; /* freed by report_figure_put */
} report_figure;

void report_figure_key(report_figure *g, const char *class, unsigned color, const char *name);
/* more of the caption */
void report_figure_say(report_figure *g, const char *fmt, ...) SGT_PRINTF(2, 3);

/* Without a point to show it says so instead. */
int report_figure_put(FILE *page, const report *r, report_figure *g, sgt_error *err);

void report_put_gloss(FILE *page, const report *r); /* the kinds of memory that are on the page */
void report_put_swatch(FILE *page, const char *class, unsigned color);

#endif
