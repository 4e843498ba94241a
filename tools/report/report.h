/* report.h: the parts of sgt-report. run.c reads the folder of a run, computes its numbers and its
 * advice, and generates a sample of text with its checkpoint. figures.c defines the figures of a
 * page and writes the tables of memory. chart.c draws one figure. page.c writes the page, with the
 * style sheet of style.c. Functions that return int return 0, or a negative SGT_E* with *err filled
 * in. If memory runs out in a small allocation, the program ends. */
#ifndef SGT_TOOLS_REPORT_H
#define SGT_TOOLS_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "train/sgt_train.h"

/* maximum number of runs on one page; more runs could not be distinguished by colour and dash
 * pattern */
#define REPORT_RUNS 24
#define REPORT_ADVICE 12 /* maximum number of lines of advice per run */
/* length in tokens of the sample of text that a run's model generates */
#define REPORT_SAMPLE_TOKENS 40

/* ---- a run: run.c ---- */

/* Columns of the log, as indices in report_row.v. The array `names` in run.c has their names in
 * log.jsonl. REPORT_SECONDS is not in the log: it is computed as the sum of ms_per_step up to the
 * row, in seconds. */
enum {
    REPORT_STEP,
    REPORT_LOSS,
    REPORT_VAL,
    REPORT_VAL_NOISE,
    REPORT_BITS,
    REPORT_LR,
    REPORT_NORM,
    REPORT_SKIPPED,
    REPORT_TOKENS,
    REPORT_SPEED,
    REPORT_MS,
    REPORT_WAIT,
    REPORT_MFU,
    REPORT_PEAK,
    REPORT_SECONDS,
    REPORT_COLUMNS
};

typedef struct report_row {
    double v[REPORT_COLUMNS]; /* NAN: absent, or not a number */
} report_row;

typedef struct report_log {
    report_row *rows; /* rows in ascending order of steps; freed before report_run_open returns */
    size_t count, room;
    /* number of log lines that were dropped because a resumed run wrote lines for the same steps
     * again */
    uint64_t repeated;
    uint64_t damaged; /* number of lines that are not a valid entry of the log */
    /* 1: the last line is incomplete, because it is just being written or because the run was
     * killed */
    int half;
} report_log;

/* A point of the curves of all columns: for each column, the mean, the lowest and the highest value
 * over a few consecutive rows of the log. */
typedef struct report_bin {
    report_row mean, low, high;
    size_t n[REPORT_COLUMNS]; /* n[c]: number of rows in the bin that have a value in column c */
    double skipped;           /* number of steps in the bin whose update was skipped */
} report_bin;

typedef struct report_bins {
    report_bin *at;
    size_t count;
    uint64_t steps; /* number of log rows combined in each bin; the last bin may have fewer */
} report_bins;

/* A kind of memory. */
typedef struct report_memory {
    char name[32];
    double used;     /* peak number of bytes in use, from memory.jsonl; -1: unknown */
    double estimate; /* estimated bytes; -1: unknown */
} report_memory;

typedef struct report_run {
    /* path: as given on the command line; name: the same path, safe to print */
    char path[1024], name[1024];
    char validation[1040]; /* "NAME, validation" */
    json_t *options;       /* contents of options.json; NULL: not available */
    sgt_config settings;   /* parsed from options */
    int settings_known;
    /* device on which the run was trained, as its checkpoint states; "": unknown */
    char device[200];
    char *checkpoint;   /* path of the newest checkpoint, malloc'd; NULL: none */
    uint64_t data_hash; /* hash of the training data, from the checkpoint; 0: unknown */
    /* array of the objects in starts.jsonl, one for each start or resume of the run */
    json_t *starts;
    /* going: 1 if the run seems to be still training: it has steps left, and its log has grown
     * recently; idle: seconds since the log last grew */
    int going;
    double idle;
    /* sample: malloc'd text that the run's model generated. It has no control characters, but may
     * not be valid UTF-8. If it is NULL, no_sample has the reason, or "" if no sample was
     * requested */
    char *sample, no_sample[1024];
    report_log log;
    /* bins: points of the curves, from all steps; evaluations: points of the validation loss, from
     * the steps with an evaluation */
    report_bins bins, evaluations;
    report_memory memory[2 * SGT_MEMORY_KINDS];
    size_t memory_count;
    /* estimated total memory in bytes, the sum over all kinds; 0: no estimate */
    double estimate;
    char no_estimate[1024]; /* reason why there is no estimate */
    uint64_t parameters;    /* 0: unknown */
    /* loss_noise: standard error of `loss`; val_noise: standard error of val_loss; loss_steps:
     * number of steps at the end of the run over which `loss` is the mean */
    double loss_noise, val_noise;
    size_t loss_steps;
    report_row last; /* last row of the log */
    /* Headline numbers. NAN means unknown. val_bits is the validation loss val_loss, converted from
     * nats per token to bits per byte of text */
    double steps, loss, val_loss, val_bits, best_val, best_step, tokens, seconds, speed, mfu,
        skipped, wait, peak;
    char *advice[REPORT_ADVICE];
    size_t advice_count;
    /* grave[i]: 1 if advice[i] states that the run has failed, so that the page shows it in red */
    int grave[REPORT_ADVICE];
} report_run;

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err);
/* Let the newest checkpoint generate a sample of text: REPORT_SAMPLE_TOKENS tokens after the
 * end-of-text token, with the defaults of sgt-sample. Models with too many parameters are skipped.
 * On a failure, r->sample stays NULL and r->no_sample has the reason. Returns 0, or SGT_ESTOPPED if
 * interrupted. */
int report_run_sample(report_run *r, const sgt_stop *stop, sgt_error *err);
void report_run_close(report_run *r);

/* Fit a straight line to the n values y[0], y[stride], y[2 * stride], ..., ignoring NAN. A residual
 * is a value minus the line. Return the sum of the squared residuals. Set *changes to the sum of
 * the squared differences between successive residuals. The ratio *changes / sum is the
 * Durbin-Watson statistic. */
double report_residuals(const double *y, size_t stride, size_t n, double *changes);

typedef struct report {
    report_run *runs;
    size_t count;
    /* request to stop, or NULL. Once a stop is requested, the remaining figures are not written, so
     * the caller must discard the page */
    const sgt_stop *stop;
} report;

/* ---- a figure: chart.c ---- */

typedef enum report_kind {
    REPORT_LINE, /* a line; if `band` is 1, with a band from `low` to `high` behind it */
    /* a faint line of the values themselves, behind a smoothed line; if `band` is 1, with a band */
    REPORT_RAW,
    REPORT_MARKS, /* a line with a dot at every point */
    REPORT_RUG,   /* dots at the bottom */
    REPORT_LIMIT  /* a dashed line */
} report_kind;

typedef struct report_point {
    double x, y, low, high; /* y is NAN: a gap */
} report_point;

typedef struct report_series {
    report_kind kind;
    unsigned color; /* index i of the colour, which the CSS class "s<i>" defines: s0, s1, ... */
    int band;
    /* name of the series in tooltips; NULL: tooltips leave the series out */
    const char *name;
    report_point *points; /* in rising order of x */
    size_t count;
} report_series;

typedef struct report_key {
    const char *class; /* CSS class of the mark in the legend: "line", "dots" or "limit" */
    /* index of the colour. REPORT_RUNS is grey, for a mark that stands for several runs */
    unsigned color;
    char name[48];
} report_key;

#define REPORT_KEYS 4

/* The format of a number. */
typedef enum report_number {
    REPORT_DIGITS,  /* four digits */
    REPORT_COUNT,   /* "1,234" */
    REPORT_BIG,     /* "1.23 k" */
    REPORT_PERCENT, /* "12.3 %" */
    REPORT_BYTES,
    /* the value is a decimal logarithm, as logarithms are plotted; show four digits of 10^value */
    REPORT_LOG,
    REPORT_TIME /* "3 h 20 min" */
} report_number;

/* How a tooltip shows a value: as a number between two texts, for example "after 2.50 k tokens". */
typedef struct report_words {
    const char *before;
    report_number number;
    const char *after;
} report_words;

/* Sizes of a figure in columns x rows of the page's grid: small 1 x 1, large 2 x 2, wide 3 x 1. A
 * narrow page has fewer columns. */
typedef enum report_size { REPORT_SMALL, REPORT_LARGE, REPORT_WIDE } report_size;

/* A figure of the page, with title, legend, chart and caption. */
typedef struct report_figure report_figure;
struct report_figure {
    const char *id; /* id of the figure in the page, such as "loss-steps" */
    const char *title;
    char caption[640];
    /* column: column of the log on the y axis; x: column on the x axis, or COMPUTE (figures.c);
     * noisy: 1 if a smooth line is drawn over each curve */
    int column, x, noisy;
    /* function that completes the figure after its curves are added, for example with limits or a
     * caption; NULL: none */
    void (*complete)(report_figure *g, const report *r);
    report_size size;
    int unnamed; /* 1: the legend never names the runs, even if there are several */
    report_key keys[REPORT_KEYS];
    size_t key_count;
    int zero; /* 1: the y axis begins at 0 */
    /* end of the x axis, which then begins at 0; 0: the axis covers the range of the points */
    double x_end;
    double y_most; /* upper limit of the y axis, at which curves are clipped; 0: no limit */
    /* minimum length of the y axis's range (highest minus lowest value), so that tiny changes are
     * not magnified to the chart's full height */
    double y_room;
    /* axis labels, such as "steps" and "nats per token". The chart prefixes a label with the axis's
     * unit, such as "GiB" or "%", if it has one. The chart chooses the unit by the number format
     * and by the highest value on the axis */
    const char *x_label, *y_label;
    /* how tooltips show x and y, for example "step 12" and "5.43 nats" */
    report_words x_words, y_words;
    report_series *series;
    size_t count, room;
};

/* Append a series to the figure, and return its `points` points, which are zeroed. The figure owns
 * the points. */
report_point *report_add_series(report_figure *g, report_kind kind, unsigned color,
                                const char *name, size_t points);

/* Write the figure as HTML, and free its series. If no point has a value, the figure states that
 * there is nothing to show. */
void report_put_figure(FILE *page, const report *r, report_figure *g);

/* ---- the page: page.c, figures.c, style.c ---- */

/* report_put_page writes the entire page. report_put_figures writes the sections of the page that
 * have figures. */
void report_put_figures(FILE *page, const report *r);
void report_put_page(FILE *page, const report *r);

void report_put_style(FILE *page);

/* Write to the page like fprintf, but with only three conversions: %s (escaped for HTML, without
 * control characters other than newline), %u, and %g (with four digits). */
void report_put(FILE *page, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Format strings for report_put. REPORT_SWATCH is a coloured mark; its arguments are the CSS class
 * of a legend's mark, such as "line", and the index of the colour. REPORT_RUN_ROW begins a table
 * row with such a mark and a title, and REPORT_ROW with only a title. "</tr>\n" ends a row. */
#define REPORT_SWATCH "<i class=\"key %s s%u\"></i>"
#define REPORT_RUN_ROW "<tr><th scope=\"row\">" REPORT_SWATCH "%s</th>"
#define REPORT_ROW "<tr><th scope=\"row\">%s</th>"

/* Begin a <section> with a heading. */
void report_begin_section(FILE *page, const char *class, const char *id, const char *title);

typedef struct report_table {
    /* CSS class of a scrolling <div> around the table; NULL: no such <div> */
    const char *scroll;
    const char *class, *caption;
    /* column titles. The first one is the title of the column that holds the row titles */
    const char *const *titles;
    size_t count;
    /* 1: column titles from the second on have the colours of runs in front of them */
    int swatches;
} report_table;

/* Begin a table: write its caption and the row of column titles. The caller then writes the other
 * rows and ends the table. */
void report_begin_table(FILE *page, const report_table *t);
void report_put_cell(FILE *page, const char *text); /* NULL: a dash */

/* write x to buf; return buf */
char *report_format(char *buf, size_t n, report_number number, double x);

#endif
