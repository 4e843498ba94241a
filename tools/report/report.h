/* report.h: functions and types that the source files of sgt-report share. run.c reads a run's
 * folder, computes its numbers and advice, and generates a text sample with its checkpoint.
 * figures.c defines the figures of a page and writes the tables of memory. chart.c draws a figure.
 * page.c writes the page, and style.c its style sheet. Functions that return int return 0, or a
 * negative SGT_E* with *err filled in. If memory runs out in a small allocation, the program
 * ends. */
#ifndef SGT_TOOLS_REPORT_H
#define SGT_TOOLS_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "train/sgt_train.h"

/* maximum number of runs on a page; the colours and dash patterns of more curves could not be told
 * apart */
#define REPORT_RUNS 24
#define REPORT_ADVICE 12 /* maximum number of lines of advice per run */
/* length in tokens of the text sample that a run's model generates */
#define REPORT_SAMPLE_TOKENS 40

/* ---- a run: run.c ---- */

/* Columns of the log, used as indices into report_row.v. The array `names` in run.c has their names
 * in log.jsonl. REPORT_SECONDS is not in log.jsonl: it is computed as the sum of ms_per_step over
 * all rows up to this one, in seconds. */
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
    /* rows of the log in ascending order of steps; freed before report_run_open returns */
    report_row *rows;
    size_t count, room;
    /* number of log lines that were dropped, because the run was resumed and logged the same steps
     * again */
    uint64_t repeated;
    uint64_t damaged; /* number of lines that are not valid log entries */
    /* 1 if the last line is incomplete, because it is still being written or the run was killed;
     * otherwise 0 */
    int half;
} report_log;

/* A few consecutive rows of the log, combined into one point of each curve: for each column, the
 * mean, the lowest and the highest value of the rows. */
typedef struct report_bin {
    report_row mean, low, high;
    size_t n[REPORT_COLUMNS]; /* n[c] is the number of these rows that have a value in column c */
    double skipped;           /* number of steps among these rows whose update was skipped */
} report_bin;

typedef struct report_bins {
    report_bin *at;
    size_t count;
    uint64_t steps; /* number of log rows per bin; the last bin may have fewer */
} report_bins;

/* A kind of memory. */
typedef struct report_memory {
    char name[32];
    double used;     /* peak number of bytes in use, from memory.jsonl; -1 if unknown */
    double estimate; /* estimated bytes; -1: unknown */
} report_memory;

typedef struct report_run {
    /* `path` is the run's path as given on the command line; `name` is the path made safe to
     * print */
    char path[1024], name[1024];
    char validation[1040]; /* "NAME, validation" */
    json_t *options;       /* contents of options.json; NULL if they are not available */
    sgt_config settings;   /* parsed from options */
    int settings_known;
    /* device on which the run was trained, according to its checkpoint; "" if unknown */
    char device[200];
    /* path of the newest checkpoint, in malloc'd memory; NULL if there is none */
    char *checkpoint;
    uint64_t data_hash; /* hash of the training data, from the checkpoint; 0 if unknown */
    /* array of the JSON objects in starts.jsonl, one for each time that the run was started or
     * resumed */
    json_t *starts;
    /* `going` is 1 if the run seems to be still training, because it has steps left and its log has
     * grown recently. `idle` is the number of seconds since the log last grew. */
    int going;
    double idle;
    /* `sample` is a text that the run's model generated, in malloc'd memory, or NULL. It has no
     * control characters, but may contain invalid UTF-8. If `sample` is NULL, `no_sample` is the
     * reason, or "" if no sample was requested. */
    char *sample, no_sample[1024];
    report_log log;
    /* `bins` holds the points of all curves except validation losses, made from all steps.
     * `evaluations` holds the points of validation losses, made only from the steps with an
     * evaluation. */
    report_bins bins, evaluations;
    report_memory memory[2 * SGT_MEMORY_KINDS];
    size_t memory_count;
    /* estimated total memory in bytes, which is the sum over all kinds of memory; 0 if there is no
     * estimate */
    double estimate;
    char no_estimate[1024]; /* reason why there is no estimate */
    uint64_t parameters;    /* 0: unknown */
    /* `loss_noise` is the standard error of `loss`, and `val_noise` that of `val_loss`.
     * `loss_steps` is the number of steps over which `loss` is the mean; they are the last steps of
     * the run. */
    double loss_noise, val_noise;
    size_t loss_steps;
    report_row last; /* last row of the log */
    /* Headline numbers, which are NAN if unknown. `val_bits` is the validation loss `val_loss`,
     * converted from nats per token to bits per byte of text. */
    double steps, loss, val_loss, val_bits, best_val, best_step, tokens, seconds, speed, mfu,
        skipped, wait, peak;
    char *advice[REPORT_ADVICE];
    size_t advice_count;
    /* grave[i] is 1 if advice[i] says that the run has failed, so the page shows this advice in
     * red */
    int grave[REPORT_ADVICE];
} report_run;

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err);
/* Generate a text sample with the run's newest checkpoint: REPORT_SAMPLE_TOKENS tokens after the
 * end-of-text token, with the default options of sgt-sample. If this fails, or if the model has too
 * many parameters, r->sample stays NULL, and r->no_sample is set to the reason. Returns 0, or
 * SGT_ESTOPPED after an interrupt. */
int report_run_sample(report_run *r, const sgt_stop *stop, sgt_error *err);
void report_run_close(report_run *r);

/* Fit a straight line to the n values y[0], y[stride], y[2 * stride], ..., ignoring values that are
 * NAN. Return the sum of the squared residuals (differences between the values and the line). Set
 * *changes to the sum of the squared differences between successive residuals. *changes divided by
 * the returned sum is the Durbin-Watson statistic. */
double report_residuals(const double *y, size_t stride, size_t n, double *changes);

typedef struct report {
    report_run *runs;
    size_t count;
    /* request to stop, or NULL. After such a request, the remaining figures are not written, so the
     * caller must discard the incomplete page */
    const sgt_stop *stop;
} report;

/* ---- a figure: chart.c ---- */

typedef enum report_kind {
    REPORT_LINE, /* a line; if `band` is 1, with a band from `low` to `high` behind the line */
    /* a faint line that shows unsmoothed values behind a smooth line; if `band` is 1, with a
     * band */
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
    unsigned color; /* index i of the colour; the CSS class "s" followed by i defines it */
    int band;
    /* name of the series in tooltips; NULL if tooltips omit the series */
    const char *name;
    report_point *points; /* in rising order of x */
    size_t count;
} report_series;

typedef struct report_key {
    const char *class; /* CSS class of the symbol in the legend: "line", "dots" or "limit" */
    /* index of the colour; REPORT_RUNS stands for grey, for a symbol that is not about a single
     * run */
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
    /* four significant digits of 10^x, where the value x is a decimal logarithm, as on a
     * logarithmic axis */
    REPORT_LOG,
    REPORT_TIME /* "3 h 20 min" */
} report_number;

/* How a tooltip shows a value: a text, the number, another text. Example: "after 2.50 k tokens". */
typedef struct report_words {
    const char *before;
    report_number number;
    const char *after;
} report_words;

/* Sizes of a figure, in columns x rows of the page's grid: 1 x 1 (small), 2 x 2 (large) and 3 x 1
 * (wide). On a narrow screen, the grid has fewer columns. */
typedef enum report_size { REPORT_SMALL, REPORT_LARGE, REPORT_WIDE } report_size;

/* A figure of the page, which consists of a title, a legend, a chart and a caption. */
typedef struct report_figure report_figure;
struct report_figure {
    const char *id; /* id of the figure's HTML element, such as "loss-steps" */
    const char *title;
    char caption[640];
    /* `column` is the column of the log on the y axis. `x` is the column on the x axis, or COMPUTE
     * (see figures.c). `noisy` is 1 if each curve gets a smooth line on top. */
    int column, x, noisy;
    /* function that completes the figure after its curves have been added, for example with a
     * caption; NULL if there is none */
    void (*complete)(report_figure *g, const report *r);
    report_size size;
    int unnamed; /* 1 if the legend never names the runs, even if there are several; otherwise 0 */
    report_key keys[REPORT_KEYS];
    size_t key_count;
    int zero; /* 1: the y axis begins at 0 */
    /* end of the x axis, which then begins at 0; if x_end is 0, the axis covers the range of the
     * points */
    double x_end;
    /* upper limit of the y axis, at which curves are clipped; 0 if there is no limit */
    double y_most;
    /* minimum difference between the highest and the lowest value on the y axis, so that tiny
     * changes are not magnified to the full height of the chart */
    double y_room;
    /* Labels of the axes, such as "steps" and "nats per token". If an axis has a unit, such as
     * "GiB" or "%", the chart puts the unit in front of the label. The chart chooses the unit by
     * the number format and by the highest value on the axis. */
    const char *x_label, *y_label;
    /* how tooltips show the values of x and y, for example "step 12" and "5.43 nats" */
    report_words x_words, y_words;
    report_series *series;
    size_t count, room;
};

/* Append a series with `points` points to the figure. Return the array of these points, which is
 * zeroed. The figure owns the array. */
report_point *report_add_series(report_figure *g, report_kind kind, unsigned color,
                                const char *name, size_t points);

/* Write the figure as HTML, and free its series. If no point has a value, write a sentence that
 * there is nothing to show instead of a chart. */
void report_put_figure(FILE *page, const report *r, report_figure *g);

/* ---- page.c, figures.c, style.c ---- */

/* report_put_page writes the entire page, and report_put_figures its sections with figures. */
void report_put_figures(FILE *page, const report *r);
void report_put_page(FILE *page, const report *r);

void report_put_style(FILE *page);

/* Write to the page as fprintf does, but with only three conversions: %s (escaped for HTML, and
 * without control characters except newline), %u, and %g (with four digits). */
void report_put(FILE *page, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Format strings for report_put. REPORT_SWATCH is a coloured symbol, with two arguments: the CSS
 * class of the symbol, such as "line", and the index of its colour. REPORT_RUN_ROW begins a table
 * row with such a symbol and a title; REPORT_ROW begins a row with only a title. The caller ends
 * the row with "</tr>
 * ". */
#define REPORT_SWATCH "<i class=\"key %s s%u\"></i>"
#define REPORT_RUN_ROW "<tr><th scope=\"row\">" REPORT_SWATCH "%s</th>"
#define REPORT_ROW "<tr><th scope=\"row\">%s</th>"

/* Begin a <section> with a heading. */
void report_begin_section(FILE *page, const char *class, const char *id, const char *title);

typedef struct report_table {
    /* CSS class of a scrolling <div> around the table; NULL if the table is not in such a <div> */
    const char *scroll;
    const char *class, *caption;
    /* titles of the columns, of which the first is that of the column with the row titles */
    const char *const *titles;
    size_t count;
    /* 1 if column titles[1 + i] is preceded by a symbol in the colour of run i; otherwise 0 */
    int swatches;
} report_table;

/* Begin a table by writing its caption and the row of column titles. The caller writes the other
 * rows, and ends the table. */
void report_begin_table(FILE *page, const report_table *t);
void report_put_cell(FILE *page, const char *text); /* NULL: a dash */

/* write x to buf; return buf */
char *report_format(char *buf, size_t n, report_number number, double x);

#endif
