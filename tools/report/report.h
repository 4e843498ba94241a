/* report.h: the parts of sgt-report. run.c reads a run's folder, computes its numbers and its
 * advice, and generates a sample of text with its checkpoint. figures.c defines the figures of a
 * page and writes the tables of memory, chart.c draws one figure, and page.c writes the page, in
 * the style of style.c. Functions that return int return 0 or a negative SGT_E* with *err filled
 * in. Small allocations end the program if memory runs out. */
#ifndef SGT_TOOLS_REPORT_H
#define SGT_TOOLS_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "train/sgt_train.h"

/* The most runs on one page: more could not be distinguished by colour and dash pattern. */
#define REPORT_RUNS 24
#define REPORT_ADVICE 12 /* the most lines of advice per run */
/* length in tokens of the sample of text that a checkpoint generates */
#define REPORT_SAMPLE_TOKENS 40

/* ---- a run: run.c ---- */

/* Columns of the log. `names` in run.c has their keys in log.jsonl; REPORT_SECONDS is the sum of
 * ms_per_step so far. */
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
    report_row *rows; /* in rising order of steps; freed before report_run_open returns */
    size_t count, room;
    uint64_t repeated; /* number of lines replaced by later lines of the same steps */
    uint64_t damaged;  /* number of lines that are not valid log entries */
    /* 1: the last line is incomplete, because it is being written or the run was killed */
    int half;
} report_log;

/* Mean, lowest and highest values over some consecutive steps. */
typedef struct report_bin {
    report_row mean, low, high;
    size_t n[REPORT_COLUMNS]; /* how many numbers each column has */
    double skipped;           /* number of updates skipped in these steps */
} report_bin;

typedef struct report_bins {
    report_bin *at;
    size_t count;
    uint64_t steps; /* steps per bin; the last bin may have fewer */
} report_bins;

/* A kind of memory. */
typedef struct report_memory {
    char name[32];
    double used;     /* peak bytes in use, from memory.jsonl; -1: unknown */
    double estimate; /* estimated bytes; -1: unknown */
} report_memory;

typedef struct report_run {
    char path[1024], name[1024]; /* path: as given on the command line; name: the same, printable */
    char validation[1040];       /* "NAME, validation" */
    json_t *options;             /* contents of options.json, or NULL */
    sgt_config settings;         /* parsed from options */
    int settings_known;
    char device[200];   /* device that trained the run; "": no checkpoint names it */
    char *checkpoint;   /* newest checkpoint, malloc'd; NULL: none */
    uint64_t data_hash; /* hash of the training data from `checkpoint`; 0: unknown */
    json_t *starts;     /* array of the objects in starts.jsonl */
    /* going: 1: the run still seems to be training: steps are missing, and its log grew `idle`
     * seconds ago */
    int going;
    double idle;
    /* sample: malloc'd text that the checkpoint generated: any bytes except control characters, not
     * always UTF-8. NULL: there is none; then no_sample is the reason ("": none was requested) */
    char *sample, no_sample[1024];
    report_log log;
    report_bins bins, evaluations; /* bins of all steps, and bins of the steps with an evaluation */
    report_memory memory[2 * SGT_MEMORY_KINDS];
    size_t memory_count;
    double estimate;        /* estimated bytes of all kinds of memory; 0: no estimate */
    char no_estimate[1024]; /* reason why there is no estimate */
    uint64_t parameters;    /* 0: unknown */
    /* standard errors of `loss` (the mean over the last loss_steps steps) and of val_loss */
    double loss_noise, val_noise;
    size_t loss_steps;
    report_row last; /* last row of the log */
    /* val_bits: val_loss in bits per byte of text */
    double steps, loss, val_loss, val_bits, best_val, best_step, tokens, seconds, speed, mfu,
        skipped, wait, peak;
    char *advice[REPORT_ADVICE];
    size_t advice_count;
    /* 1: this line of advice says that the run has failed, and is shown in red */
    int grave[REPORT_ADVICE];
} report_run;

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err);
/* Generate REPORT_SAMPLE_TOKENS tokens after the end-of-text token with the newest checkpoint and
 * sgt-sample's defaults. Models with too many parameters are skipped. A failure leaves r->sample
 * NULL; the only error returned is SGT_ESTOPPED. */
int report_run_sample(report_run *r, const sgt_stop *stop, sgt_error *err);
void report_run_close(report_run *r);

/* Fit a straight line to the n numbers y[0], y[stride], y[2 stride], ..., without those that are
 * NAN. Return the sum of the squared residuals, and set *changes to the sum of the squared
 * differences between consecutive residuals. */
double report_residuals(const double *y, size_t stride, size_t n, double *changes);

typedef struct report {
    report_run *runs;
    size_t count;
    /* after a request to stop, figures are left out, and the caller discards the page */
    const sgt_stop *stop;
} report;

/* ---- a figure: chart.c ---- */

typedef enum report_kind {
    REPORT_LINE,  /* a line; if `band` is set, with a band from low to high behind it */
    REPORT_RAW,   /* a faint line behind a smooth one, with a band like REPORT_LINE */
    REPORT_MARKS, /* a line with a dot at every point */
    REPORT_RUG,   /* dots at the bottom */
    REPORT_LIMIT  /* a dashed line */
} report_kind;

typedef struct report_point {
    double x, y, low, high; /* y is NAN: a gap */
} report_point;

typedef struct report_series {
    report_kind kind;
    unsigned color; /* number of the colour, which is the CSS class s0, s1, ... */
    int band;
    /* label before the value in a tooltip; NULL: no tooltip */
    const char *name;
    report_point *points; /* in rising order of x */
    size_t count;
} report_series;

typedef struct report_key {
    const char *class; /* CSS class of the mark: "line", "dots", "limit" */
    /* number of the colour; REPORT_RUNS: grey, for marks that several runs share */
    unsigned color;
    char name[48];
} report_key;

#define REPORT_KEYS 4

/* The format of a number. */
typedef enum report_number {
    REPORT_DIGITS,  /* four digits */
    REPORT_COUNT,   /* "1,234" */
    REPORT_BIG,     /* "1.23 k" */
    REPORT_PERCENT, /* "12.34 %" */
    REPORT_BYTES,
    REPORT_LOG, /* x is a decimal logarithm; 10^x is written in four digits */
    REPORT_TIME /* "3 h 20 min" */
} report_number;

/* How a tooltip writes a value: a number between two texts, as in "after 2.50 k tokens". */
typedef struct report_words {
    const char *before;
    report_number number;
    const char *after;
} report_words;

/* Size of a figure in cells of the page's grid, in columns x rows: 1 x 1, 2 x 2, 3 x 1. A narrow
 * page has fewer columns. */
typedef enum report_size { REPORT_SMALL, REPORT_LARGE, REPORT_WIDE } report_size;

/* A <figure>: its title, legend, chart and caption. */
typedef struct report_figure report_figure;
struct report_figure {
    const char *id; /* id within the page, such as "loss-steps" */
    const char *title;
    char caption[640];
    /* the curves show column `column` of the log over column `x` (figures.c); noisy: 1: with smooth
     * lines over them */
    int column, x, noisy;
    /* completes the figure once its curves are added, for example with limits or a caption; NULL:
     * nothing to do */
    void (*complete)(report_figure *g, const report *r);
    report_size size;
    int unnamed; /* 1: the legend does not name the runs, even if there are several */
    report_key keys[REPORT_KEYS];
    size_t key_count;
    int zero;      /* 1: the y axis begins at 0 */
    double x_end;  /* end of an x axis that begins at 0; 0: the axis spans the points */
    double y_most; /* upper limit of the y axis; larger values are cut off; 0: no limit */
    double y_room; /* least difference between the ends of the y axis */
    /* axis labels: "steps", "nats per token". The unit that is put before them, such as "GiB" or
     * "%", depends on the number format and on the highest value */
    const char *x_label, *y_label;
    report_words x_words, y_words; /* how tooltips write x and y: "step 12", "5.43 nats" */
    report_series *series;
    size_t count, room;
};

/* Append a series of `points` points, and return its points, which are zero and are owned by the
 * figure. */
report_point *report_add_series(report_figure *g, report_kind kind, unsigned color,
                                const char *name, size_t points);

/* Write the figure as HTML, and free its series. If no point has a number, the figure says that
 * there is nothing to show. */
void report_put_figure(FILE *page, const report *r, report_figure *g);

/* ---- the page: page.c, figures.c, style.c ---- */

/* report_put_page writes the whole page; report_put_figures writes its sections with figures. */
void report_put_figures(FILE *page, const report *r);
void report_put_page(FILE *page, const report *r);

void report_put_style(FILE *page);

/* Like fprintf, but with %s, %u and %g only. %s is escaped for HTML, and control characters other
 * than newline are removed; %g has four digits. */
void report_put(FILE *page, const char *fmt, ...) SGT_PRINTF(2, 3);
/* Format strings for report_put. REPORT_SWATCH is a coloured mark; its arguments are a key's class,
 * such as "line", and the colour. REPORT_RUN_ROW begins a table row with a mark and a title;
 * "</tr>\n" ends the row. */
#define REPORT_SWATCH "<i class=\"key %s s%u\"></i>"
#define REPORT_RUN_ROW "<tr><th scope=\"row\">" REPORT_SWATCH "%s</th>"
#define REPORT_ROW "<tr><th scope=\"row\">%s</th>"

/* Begin a <section> with a heading. */
void report_begin_section(FILE *page, const char *class, const char *id, const char *title);

typedef struct report_table {
    const char *scroll; /* class of a surrounding <div> that scrolls; NULL: none */
    const char *class, *caption;
    const char *const *titles; /* of the columns, the first of which has the titles of rows */
    size_t count;
    int swatches; /* 1: the colours of runs are before the titles from the second on */
} report_table;

/* Begin a table with its caption and its row of titles. The caller then writes the other rows and
 * ends the table. */
void report_begin_table(FILE *page, const report_table *t);
void report_put_cell(FILE *page, const char *text); /* NULL: a dash */
void report_end_table(FILE *page, const report_table *t);

/* write x to buf; return buf */
char *report_format(char *buf, size_t n, report_number number, double x);

#endif
