/* report.h: the parts of sgt-report. run.c reads a run's folder, log.c its log.jsonl, thin.c makes a few hundred points
 * of it, whatever their number, memory.c its memory.jsonl; advice.c says what the numbers ask for. chart.c lays a
 * picture out for gnuplot.c, and svg.c makes what comes back part of the page: with classes in place of colours, which
 * follow the reader's theme. figures.c writes a picture with its caption, charts.c knows which there are (memory's:
 * occupancy.c), options.c has the table of options, page.c the whole page; its looks are tools/page's.
 *
 * All functions that return int give 0 or a negative SGT_E* with *err filled in. */
#ifndef SGT_TOOLS_REPORT_H
#define SGT_TOOLS_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "sgt_train.h"

#define REPORT_RUNS 24   /* that one page sets beside each other: colours and dashes tell no more apart */
#define REPORT_BINS 240  /* points of a curve at most; */
#define REPORT_DOTS 60   /* with a dot each */
#define REPORT_ADVICE 12 /* lines of one run */

/* ---- what a run has logged ---- */

/* Columns of the log. report_names (log.c) has what they are called there; seconds are the sum of ms_per_step. */
enum {
    REPORT_STEP, REPORT_LOSS, REPORT_VAL, REPORT_LR, REPORT_NORM, REPORT_SKIPPED, REPORT_TOKENS, REPORT_SPEED,
    REPORT_MS, REPORT_WAIT, REPORT_MFU, REPORT_PEAK, REPORT_SECONDS, REPORT_COLUMNS
};

typedef struct report_row {
    double v[REPORT_COLUMNS]; /* NAN: not there, or not a number */
} report_row;

typedef struct report_log {
    report_row *rows; /* steps rise */
    size_t count, room;
    uint64_t repeated; /* lines that later ones of the same steps replaced */
    uint64_t damaged;  /* lines that are none of a log */
    int half;          /* the last line has no end: it is being written, or was when the run was killed */
} report_log;

int report_log_read(report_log *l, const char *path, sgt_error *err); /* no file: an empty log */
void report_log_free(report_log *l);

/* Of so many steps in a row: what they have on average, lowest and highest. */
typedef struct report_bin {
    report_row mean, low, high;
    double skipped; /* updates left out within */
} report_bin;

typedef struct report_bins {
    report_bin *at;
    size_t count;
    uint64_t steps; /* of a bin; the last may have fewer */
} report_bins;

/* `evaluated`: of the rows with a validation loss alone. NULL in `at` where there are none. */
int report_thin(report_bins *b, const report_log *l, int evaluated, sgt_error *err);

/* ---- memory.jsonl ---- */

typedef struct report_part {
    char name[24];             /* "forward" */
    uint64_t step, micro_step;
    uint64_t used[SGT_MEMORY_KINDS];
} report_part;

typedef struct report_memory {
    char kinds[SGT_MEMORY_KINDS][32];
    size_t kind_count;
    report_part *parts;
    size_t count;
} report_memory;

/* Damage leaves it empty: the page can do without. */
int report_memory_read(report_memory *m, const char *path, sgt_error *err);
uint64_t report_memory_most(const report_memory *m, size_t kind); /* bytes of it in use at once */

/* ---- a run ---- */

typedef struct report_run {
    char path[1024], name[1024]; /* as given; for people, printable */
    json_t *options;             /* options.json, or NULL */
    sgt_settings settings;       /* what it says */
    int settings_known;
    char device[200];            /* what computed, "" where no checkpoint says */
    report_log log;              /* the last row alone stays once it is thinned */
    report_bins bins, evaluations;
    report_memory memory;
    sgt_train_estimate estimate;
    int estimated;
    char why_not[1024];          /* there is no estimate */
    uint64_t parameters;         /* 0: not known */
    /* headline figures; NAN: none */
    double steps, loss, val_loss, best_val, best_step, tokens, seconds, speed, mfu, skipped, wait, peak;
    int broken; /* a loss or a gradient norm was not a number */
    char *advice[REPORT_ADVICE];
    size_t advice_count;
} report_run;

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err);
void report_run_close(report_run *r);
void report_advise(report_run *r); /* while the whole log is there */

/* ---- charts ---- */

typedef enum report_kind {
    REPORT_LINE,  /* a line, and a band from low to high behind it where `band` */
    REPORT_MARKS, /* a line with a dot at every point */
    REPORT_RUG,   /* dots on the bottom */
    REPORT_LIMIT, /* a dashed line */
    REPORT_AREA   /* filled from low to high */
} report_kind;

typedef struct report_point {
    double x, y, low, high; /* y NAN: a gap */
} report_point;

typedef struct report_series {
    report_kind kind;
    unsigned color;     /* 0 ..: the page's classes s0 ..; of areas m0 .. */
    int band;
    report_point *points;
    size_t count;
} report_series;

typedef struct report_tick {
    double at;
    char text[24];
    char brief[8]; /* where there is little room; "": the same */
} report_tick;

#define REPORT_TICKS 16
#define REPORT_SERIES ((size_t)4 * REPORT_RUNS)

typedef struct report_chart {
    int log_y, zero;    /* zero: y begins there */
    double x_unit, y_unit; /* what 1 on the axis is; 0: 1 */
    double x_end;       /* x begins at 0 and ends there; 0: where the points do */
    double y_most;      /* above it nothing is shown; 0: no such limit */
    double y_room;      /* at least so much is shown */
    report_tick x_ticks[REPORT_TICKS]; /* in place of numbers where there are any */
    size_t x_tick_count;
    report_series series[REPORT_SERIES];
    size_t count;
} report_chart;

report_point *report_chart_add(report_chart *c, report_kind kind, unsigned color, size_t points); /* NULL: no memory */
void report_chart_free(report_chart *c);
int report_chart_empty(const report_chart *c); /* no point of it has a number */

/* The chart as <svg class="CLASS"> of that size onto the page; `says` is its text for those who do not see it. */
int report_chart_draw(FILE *page, const report_chart *c, int wide, int high, const char *class, const char *says,
                      sgt_error *err);

/* Runs gnuplot on a script; what it wrote, malloc'd. No shell, no files, none of the user's settings. */
int report_gnuplot(char **svg, const char *script, size_t n, sgt_error *err);
/* gnuplot's SVG with the page's classes: its colours are REPORT_COLOR's. */
void report_svg_put(FILE *page, const char *svg, int wide, int high, const char *class, const char *says);
enum {
    REPORT_IS_AXIS = 1, REPORT_IS_GRID, REPORT_IS_LINE, REPORT_IS_BAND, REPORT_IS_DOT, REPORT_IS_RUG, REPORT_IS_LIMIT,
    REPORT_IS_AREA
};

/* ---- the page ---- */

typedef struct report {
    report_run *runs;
    size_t count;
    const sgt_stop *stop; /* looked at before every picture */
} report;

/* Sections of figures, onto the page. */
int report_put_loss(FILE *page, const report *r, sgt_error *err);
int report_put_steps(FILE *page, const report *r, sgt_error *err);
int report_put_memory(FILE *page, const report *r, sgt_error *err);
int report_put_page(FILE *page, const report *r, sgt_error *err);

void report_put_options(FILE *page, const report *r);

/* "1.23 M": a number of things; "3 h 20 min": a time. Into buf, which is returned. */
char *report_big(char *buf, size_t n, double x);
char *report_time(char *buf, size_t n, double seconds);
/* What bytes are best told in where `most` is the largest number of them: 2^20 and "MiB". */
double report_bytes_unit(double most, const char **name);

#endif
