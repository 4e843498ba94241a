/* report.h: functions and types that the source files of sgt-report share. run.c reads the folder
 * of a training run, computes its numbers and advice, and generates a text sample with its
 * checkpoint. figures.c defines the figures of a page, and writes the tables of memory. chart.c
 * draws a figure. page.c writes the page, and style.c its style sheet. Functions that return int
 * return 0, or a negative SGT_E* with a message in *err. If a small allocation fails, the program
 * ends. */
#ifndef SGT_TOOLS_REPORT_H
#define SGT_TOOLS_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "train/sgt_train.h"

/* maximum number of runs on a page; more curves could not be told apart by colour and line style */
#define REPORT_RUNS 24
#define REPORT_ADVICE 12 /* maximum number of lines of advice per run */
/* length in tokens of the text sample that the model of a run generates */
#define REPORT_SAMPLE_TOKENS 40

/* ---- a run: run.c ---- */

/* Columns of a run's log, as indices into report_row.v. Their names in log.jsonl are in the array
 * `names` in run.c. REPORT_SECONDS is not in log.jsonl, but is computed: it is the sum of
 * ms_per_step over all rows up to and including this row, in seconds. */
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
    double v[REPORT_COLUMNS]; /* value in each column; NaN if it is missing or not a number */
} report_row;

typedef struct report_log {
    /* rows of the log in ascending order of steps; freed before report_run_open returns */
    report_row *rows;
    size_t count, room;
    /* number of lines in log.jsonl that were dropped, because the run was resumed and logged the
     * same steps again */
    uint64_t repeated;
    uint64_t damaged; /* number of lines in log.jsonl that are not valid entries */
    /* 1 if the last line of log.jsonl is incomplete, because it is still being written or the run
     * was killed; otherwise 0 */
    int half;
} report_log;

/* consecutive rows of the log, combined into one point of each curve */
typedef struct report_bin {
    /* mean, lowest and highest value of the rows, in each column */
    report_row mean, low, high;
    size_t n[REPORT_COLUMNS]; /* n[c] is the number of rows that have a value in column c */
    double skipped;           /* number of rows for whose steps the update was skipped */
} report_bin;

typedef struct report_bins {
    report_bin *at;
    size_t count;
    uint64_t steps; /* number of log rows per bin; the last bin can have fewer */
} report_bins;

/* a kind of memory, such as activations */
typedef struct report_memory {
    char name[32];
    double used;     /* peak number of bytes in use, from memory.jsonl; -1 if unknown */
    double estimate; /* estimated number of bytes; -1 if unknown */
} report_memory;

typedef struct report_run {
    /* path: path of the run, as given on the command line. name: the same path, safe to print. */
    char path[1024], name[1024];
    char validation[1040]; /* "NAME, validation" */
    json_t *options;       /* contents of options.json; NULL if they are not available */
    sgt_config settings;   /* options parsed from options.json */
    int settings_known;    /* 1 if `settings` is valid, otherwise 0 */
    /* device on which the run was trained, from its checkpoint; "" if unknown */
    char device[200];
    /* path of the newest checkpoint, allocated with malloc; NULL if there is none */
    char *checkpoint;
    uint64_t data_hash; /* hash of the training data, from the checkpoint; 0 if unknown */
    /* array of the JSON objects in starts.jsonl, one for each time that the run was started or
     * resumed */
    json_t *starts;
    /* going: 1 if the run seems to be still training, because steps are left and its log has grown
     * recently; otherwise 0. idle: number of seconds since the log last grew. */
    int going;
    double idle;
    /* sample: text that the model of the run has generated, allocated with malloc, or NULL. It
     * contains no control characters, but can contain invalid UTF-8. no_sample: reason why `sample`
     * is NULL; "" if no sample was requested. */
    char *sample, no_sample[1024];
    report_log log;
    /* bins: points of all curves except the validation losses, from all steps. evaluations: points
     * of the curves of validation losses, from the steps with an evaluation. */
    report_bins bins, evaluations;
    report_memory memory[2 * SGT_MEMORY_KINDS];
    size_t memory_count;
    /* estimated total memory in bytes, the sum of all kinds of memory; 0 if there is no estimate */
    double estimate;
    char no_estimate[1024]; /* reason why there is no estimate */
    uint64_t parameters;    /* number of parameters of the model; 0 if unknown */
    /* loss_noise, val_noise: standard errors of `loss` and of `val_loss`. loss_steps: number of
     * steps, the last ones of the run, over which `loss` is the mean. */
    double loss_noise, val_noise;
    size_t loss_steps;
    report_row last; /* last row of the log */
    /* Headline numbers, each NaN if unknown. val_bits: `val_loss` converted from nats per token to
     * bits per byte of text. */
    double steps, loss, val_loss, val_bits, best_val, best_step, tokens, seconds, speed, mfu,
        skipped, wait, peak;
    char *advice[REPORT_ADVICE];
    size_t advice_count;
    /* grave[i] is 1 if advice[i] says that the run has failed, so that it is printed in red;
     * otherwise 0 */
    int grave[REPORT_ADVICE];
} report_run;

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err);
/* Generate a text sample with the newest checkpoint of the run: REPORT_SAMPLE_TOKENS tokens after
 * the end-of-text token, with the default options of sgt-sample. If this fails, or if the model has
 * too many parameters, leave r->sample NULL, and set r->no_sample to the reason. Return 0, or
 * SGT_ESTOPPED after an interrupt. */
int report_run_sample(report_run *r, const sgt_stop *stop, sgt_error *err);
void report_run_close(report_run *r);

/* Fit a straight line to the n values y[0], y[stride], y[2 * stride], ... Values that are NaN are
 * ignored. Return the sum of the squared residuals (the differences between the values and the
 * line). Set *changes to the sum of the squared differences between successive residuals. *changes
 * divided by the result is the Durbin-Watson statistic. */
double report_residuals(const double *y, size_t stride, size_t n, double *changes);

typedef struct report {
    report_run *runs;
    size_t count;
    /* Flag that requests a stop, or NULL. After such a request, the remaining figures are not
     * written, so the caller must discard the page. */
    const sgt_stop *stop;
} report;

/* ---- a figure: chart.c ---- */

typedef enum report_kind {
    REPORT_LINE, /* a line; if `band` is 1, with a band from `low` to `high` behind it */
    /* a faint line for the values behind a smooth line; if `band` is 1, with a band */
    REPORT_RAW,
    REPORT_MARKS, /* a line with a dot at every point */
    REPORT_RUG,   /* dots at the bottom */
    REPORT_LIMIT  /* a dashed line */
} report_kind;

typedef struct report_point {
    double x, y, low, high; /* y is NaN for a gap in the curve */
} report_point;

typedef struct report_series {
    report_kind kind;
    unsigned color; /* index i of the colour, which is defined by the CSS class "s" followed by i */
    int band;
    /* name of the series in tooltips; NULL if tooltips omit the series */
    const char *name;
    report_point *points; /* array in ascending order of x */
    size_t count;
} report_series;

typedef struct report_key {
    const char *class; /* CSS class of the symbol in the legend: "line", "dots" or "limit" */
    /* index of the colour; REPORT_RUNS, which is grey, for a symbol that does not stand for a
     * single run */
    unsigned color;
    char name[48];
} report_key;

#define REPORT_KEYS 4

/* format of a number */
typedef enum report_number {
    REPORT_DIGITS,  /* four significant digits */
    REPORT_COUNT,   /* "1,234" */
    REPORT_BIG,     /* "1.23 k" */
    REPORT_PERCENT, /* "12.3 %" */
    REPORT_BYTES,
    /* four significant digits of 10^x, for a value x that is a decimal logarithm */
    REPORT_LOG,
    REPORT_TIME /* "3 h 20 min" */
} report_number;

/* A value in a tooltip, such as "after 2.50 k tokens": the text before the number, the format of
 * the number, and the text after it. */
typedef struct report_words {
    const char *before;
    report_number number;
    const char *after;
} report_words;

/* Size of a figure in the grid of the page, in columns x rows: 1 x 1 (small), 2 x 2 (large) or 3 x
 * 1 (wide). On a narrow screen, the grid has fewer columns. */
typedef enum report_size { REPORT_SMALL, REPORT_LARGE, REPORT_WIDE } report_size;

/* a figure of the page, which consists of a title, a legend, a chart and a caption */
typedef struct report_figure report_figure;
struct report_figure {
    const char *id; /* id of the figure's HTML element, such as "loss-steps" */
    const char *title;
    char caption[640];
    /* column: column of the log on the y axis. x: column of the log on the x axis, or COMPUTE (see
     * figures.c). noisy: 1 if each curve also gets a smooth line, otherwise 0. */
    int column, x, noisy;
    /* function that completes the figure after its curves have been added, for example with a
     * caption; NULL if there is none */
    void (*complete)(report_figure *g, const report *r);
    report_size size;
    int unnamed; /* 1 if the legend does not name the runs even if there are several; otherwise 0 */
    report_key keys[REPORT_KEYS];
    size_t key_count;
    int zero; /* 1 if the y axis begins at 0, otherwise 0 */
    /* end of the x axis, which begins at 0; if x_end is 0, the axis covers the range of the points
     * instead */
    double x_end;
    /* upper limit of the y axis, at which curves are clipped; 0 if there is no limit */
    double y_most;
    /* Minimum difference between the highest and the lowest value on the y axis. Without it, tiny
     * changes would be magnified to the full height of the chart. */
    double y_room;
    /* Labels of the axes, such as "steps" and "nats per token". If the chart chooses a unit for an
     * axis, such as "GiB" or "%", it prints the unit before the label. */
    const char *x_label, *y_label;
    /* formats of the values of x and y in tooltips, for example "step 12" and "5.43 nats" */
    report_words x_words, y_words;
    report_series *series;
    size_t count, room;
};

/* Append a series with `points` points to the figure. Return the array of its points, which is
 * filled with zeros and owned by the figure. */
report_point *report_add_series(report_figure *g, report_kind kind, unsigned color,
                                const char *name, size_t points);

/* Write the figure as HTML, and free its series. If no point has a value, write a sentence that
 * says so instead of a chart. */
void report_put_figure(FILE *page, const report *r, report_figure *g);

/* ---- page.c, figures.c, style.c ---- */

/* Write the sections of the page that contain figures. */
void report_put_figures(FILE *page, const report *r);
/* Write the entire page. */
void report_put_page(FILE *page, const report *r);

void report_put_style(FILE *page);

/* Write to the page like fprintf, but with only three conversions: %s (escaped for HTML, and
 * without control characters except newline), %u, and %g (four significant digits). */
void report_put(FILE *page, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Format strings for report_put. REPORT_SWATCH writes a coloured symbol. Its arguments are the CSS
 * class of the symbol, such as "line", and the index of the colour. REPORT_RUN_ROW begins a table
 * row with such a symbol and a title, and REPORT_ROW begins a table row with a title. The caller
 * ends the row with "</tr>". */
#define REPORT_SWATCH "<i class=\"key %s s%u\"></i>"
#define REPORT_RUN_ROW "<tr><th scope=\"row\">" REPORT_SWATCH "%s</th>"
#define REPORT_ROW "<tr><th scope=\"row\">%s</th>"

void report_begin_section(FILE *page, const char *class, const char *id, const char *title);

typedef struct report_table {
    /* CSS class of a scrolling <div> around the table; NULL if there is no such <div> */
    const char *scroll;
    const char *class, *caption;
    /* titles of the `count` columns; the first column contains the titles of the rows */
    const char *const *titles;
    size_t count;
    /* 1 if a symbol in the colour of run i is written before titles[1 + i]; otherwise 0 */
    int swatches;
} report_table;

/* Write the beginning of a table: its caption and the row of column titles. The caller writes the
 * other rows and the end of the table. */
void report_begin_table(FILE *page, const report_table *t);
void report_put_cell(FILE *page, const char *text); /* writes a dash if `text` is NULL */

/* Write x in the format `number` to the n bytes at buf, and return buf. */
char *report_format(char *buf, size_t n, report_number number, double x);

#endif
