/* charts.h: the curves of all runs in one chart, over steps, tokens or time (charts.c). */
#ifndef SGT_TOOLS_REPORT_CHARTS_H
#define SGT_TOOLS_REPORT_CHARTS_H

#include "tools/report/figures.h"

/* Add a column of a run as a curve over the column x: REPORT_STEP, REPORT_TOKENS or
 * REPORT_SECONDS. */
int report_add_curve(report_chart *c, const report_bins *b, report_kind kind, unsigned color,
                     const char *name, int x, int column, int band, sgt_error *err);
/* Add a noisy column as a faint line and a smooth line over it. */
int report_add_smooth(report_chart *c, const report *r, size_t run, int x, int column,
                      sgt_error *err);
/* Add the column of all runs, and label the x axis. */
int report_add_curves(report_chart *c, const report *r, int x, int column, int noisy,
                      sgt_error *err);

/* Append to the caption how steps were averaged. */
void report_say_thinning(report_figure *g, const report *r, int band);
/* Write the factor of an axis's numbers, such as "× 10⁻⁴"; "" if it is 1. Return buf. */
char *report_label_power(char *buf, size_t n, int power);

#endif
