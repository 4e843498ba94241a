/* report.h: the parts of sgt-report. run.c reads a run's folder, log.c its log.jsonl, memory.c its
 * memory.jsonl. thin.c reduces a log to a few hundred points, smooth.c smooths them, sample.c lets
 * the checkpoint generate a few words, and advice.c gives advice on the numbers. chart.c lays out
 * and draws a chart, hover.c adds its tooltips, and figures.c its caption. charts.c lists the
 * charts (losses.c those of the loss, occupancy.c and estimates.c those of memory), head.c
 * describes the runs, options.c makes the table of options, and page.c the whole page. tools/page
 * has the style, and tools/page/svg.h the shapes. All functions that return int return 0 or a
 * negative SGT_E* with *err filled in. */
#ifndef SGT_TOOLS_REPORT_H
#define SGT_TOOLS_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "train/sgt_train.h"

/* Most runs on one page: more could not be distinguished by colours and dashes. */
#define REPORT_RUNS 24
#define REPORT_BINS 240  /* most points of a curve */
#define REPORT_DOTS 60   /* most points of a curve that has a dot at each point */
#define REPORT_ADVICE 12 /* most lines of advice per run */

/* ---- a run's log ---- */

/* Columns of the log. `names` in log.c has their keys in log.jsonl; REPORT_SECONDS is the sum of
 * ms_per_step so far. */
enum {
    REPORT_STEP,
    REPORT_LOSS,
    REPORT_VAL,
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
    report_row *rows; /* in rising order of steps */
    size_t count, room;
    uint64_t repeated; /* number of lines that later lines of the same steps replaced */
    uint64_t damaged;  /* number of lines that are not log entries */
    /* 1: the last line is incomplete: it is being written, or the run was killed */
    int half;
} report_log;

/* Read a log; if there is no file, it is empty. */
int report_log_read(report_log *l, const char *path, sgt_error *err);
void report_log_free(report_log *l);

/* Mean, lowest and highest values over some consecutive steps. */
typedef struct report_bin {
    report_row mean, low, high;
    double skipped; /* number of updates skipped in these steps */
} report_bin;

typedef struct report_bins {
    report_bin *at;
    size_t count;
    uint64_t steps; /* steps per bin; the last may have fewer */
} report_bins;

/* Reduce the log to bins. `evaluated`: use only the rows with a validation loss. `at` is NULL if
 * there are no rows. */
int report_thin(report_bins *b, const report_log *l, int evaluated, sgt_error *err);

/* ---- memory.jsonl ---- */

typedef struct report_part {
    char name[24]; /* name of a part of a step, such as "forward" */
    uint64_t step, micro_step;
    uint64_t used[SGT_MEMORY_KINDS];
} report_part;

typedef struct report_memory {
    char kinds[SGT_MEMORY_KINDS][32];
    size_t kind_count;
    report_part *parts;
    size_t count;
} report_memory;

/* Read memory.jsonl. If it is damaged, *m is empty, because the page can do without it. */
int report_memory_read(report_memory *m, const char *path, sgt_error *err);
/* Return the most bytes of a kind that were in use at one time. */
uint64_t report_memory_most(const report_memory *m, size_t kind);

/* ---- a run ---- */

typedef struct report_run {
    char path[1024], name[1024]; /* path: as given on the command line; name: the same, printable */
    char validation[1040];       /* "NAME, validation" */
    json_t *options;             /* object in options.json, or NULL */
    sgt_settings settings;       /* parsed from options */
    int settings_known;
    char device[200];   /* device that trained the run; "" if no checkpoint tells */
    char *checkpoint;   /* newest checkpoint, malloc'd; NULL: none */
    uint64_t data_hash; /* hash of the training data, if `checkpoint` has it; else 0 */
    /* from starts.jsonl, or ""; begun and resumed are the times of the first and the last start */
    char host[80], machine[128], command[4096], begun[32], resumed[32];
    uint64_t starts; /* how often the run was started or resumed; 0: unknown */
    /* sample: text that the checkpoint wrote; no_sample: reason why there is none; both malloc'd or
     * NULL */
    char *sample, *no_sample;
    report_log log; /* the log; its rows are freed after thinning */
    report_bins bins, evaluations;
    report_memory memory;
    sgt_train_estimate estimate;
    int estimated;
    char why_not[1024];  /* reason why there is no estimate */
    uint64_t parameters; /* 0: unknown */
    /* standard error of `loss`, which is the mean over the last loss_steps steps */
    double loss_noise;
    size_t loss_steps;
    /* val_bits: val_loss in bits per byte of text */
    double steps, loss, val_loss, val_bits, best_val, best_step, tokens, seconds, speed, mfu,
        skipped, wait, peak;
    int broken; /* 1: a loss or a gradient norm was not a number */
    char *advice[REPORT_ADVICE];
    size_t advice_count;
    /* 1: this line of advice says that the run is lost, and is shown in red */
    int grave[REPORT_ADVICE];
} report_run;

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err);

/* Let the newest checkpoint generate REPORT_SAMPLE_TOKENS tokens without a prompt, with
 * sgt-sample's defaults, and put the text into r->sample; on failure, put the reason into
 * r->no_sample. Models with more than REPORT_SAMPLE_PARAMETERS are skipped: one of that size takes
 * a core two seconds, and 256 MiB. The only error returned is SGT_ESTOPPED. */
#define REPORT_SAMPLE_TOKENS 40
#define REPORT_SAMPLE_PARAMETERS 64000000
int report_sample(report_run *r, const sgt_stop *stop, sgt_error *err);
void report_run_close(report_run *r);
void report_advise(report_run *r); /* add advice; call this before the rows of the log are freed */

/* ---- charts ---- */

typedef enum report_kind {
    REPORT_LINE,  /* a line; if `band` is set, with a band from low to high behind it */
    REPORT_RAW,   /* a faint line behind a smooth one, with a band like REPORT_LINE */
    REPORT_MARKS, /* a line with a dot at every point */
    REPORT_RUG,   /* dots at the bottom */
    REPORT_LIMIT, /* a dashed line */
    REPORT_AREA   /* filled from low to high */
} report_kind;

typedef struct report_point {
    double x, y, low, high; /* y NAN means a gap */
} report_point;

typedef struct report_series {
    report_kind kind;
    /* number of the colour: class s0, s1, ... of the page; for areas, m0, m1, ... */
    unsigned color;
    int band;
    /* label before the value in a tooltip; NULL: no tooltip */
    const char *name;
    report_point *points; /* in rising order of x */
    size_t count;
} report_series;

typedef struct report_tick {
    double at;
    char text[24];
    char brief[8]; /* shorter text, for narrow charts; "": use `text` */
} report_tick;

#define REPORT_TICKS 16
#define REPORT_SERIES ((size_t)4 * REPORT_RUNS)

/* A function that formats a number with its unit into buf and returns buf. */
typedef char *(*report_say)(char *buf, size_t n, double v);

typedef struct report_chart {
    int log_y, zero;       /* log_y: the y axis is logarithmic; zero: it begins at 0 */
    double x_unit, y_unit; /* value that an axis shows as 1; 0 means 1 */
    double x_end;  /* end of the x axis, which then begins at 0; 0: the range of the points */
    double y_most; /* upper limit of the y axis, at which larger values are cut off; 0: no limit */
    double y_room; /* least height of the y axis, in values */
    char x_label[48], y_label[64]; /* axis labels: "steps", "nats per token" */
    report_say x_says, y_says;     /* how tooltips write x and y: "step 12", "5.43 nats" */
    /* ticks of the x axis, if there are any, instead of numbers */
    report_tick x_ticks[REPORT_TICKS];
    size_t x_tick_count;
    report_series series[REPORT_SERIES];
    size_t count;
} report_chart;

/* Append a series of `points` points and return them; NULL if memory runs out. */
report_point *report_chart_add(report_chart *c, report_kind kind, unsigned color, size_t points);
void report_chart_free(report_chart *c);
int report_chart_empty(const report_chart *c); /* return whether no point has a number */

/* Draw the chart onto the page as <svg class="CLASS"> of this size; `says` describes it for screen
 * readers. */
int report_chart_draw(FILE *page, const report_chart *c, int wide, int high, const char *class,
                      const char *says, sgt_error *err);

/* Maps values to pixels in a chart. */
typedef struct report_frame {
    double x_low, x_high, y_low, y_high; /* values at the edges of the frame */
    double left, right, top, bottom;     /* positions of the edges, in pixels */
    int log_y;
} report_frame;

static inline double report_frame_x(const report_frame *f, double x)
{
    return f->left + (x - f->x_low) / (f->x_high - f->x_low) * (f->right - f->left);
}

/* Add vertical strips whose tooltips give the value of each named series: at most REPORT_HOVERS in
 * a chart of this width, and fewer if there are many series. */
#define REPORT_HOVERS(wide) ((wide) > 500 ? 100 : 30)
void report_hover_put(FILE *page, const report_chart *c, const report_frame *f, size_t most);

/* Write the tooltip of a dot of a REPORT_MARKS series to buf. */
void report_hover_dot(char *buf, size_t n, const report_chart *c, const report_series *s,
                      const report_point *p);

/* ---- smooth lines ---- */

#define REPORT_SMOOTH_LEAST 20 /* shorter lines are not smoothed */

/* Set each to[i].y to the value of a straight line fitted to the values around from[i]: those to
 * each side are a twelfth of all, at least 3. Straight lines stay straight, and NAN stays NAN.
 * `log`: smooth the logarithms. */
void report_smooth(report_point *to, const report_point *from, size_t count, int log);

/* ---- the page ---- */

typedef struct report {
    report_run *runs;
    size_t count;
    const sgt_stop *stop; /* request to stop, checked before every chart */
} report;

/* Describe a single run in the page's header: data, host, date, command, and a sample of text. */
void report_put_about(FILE *page, const report *r);
void report_put_origins(FILE *page, const report *r); /* describe several runs in a table */
/* write the samples of several runs, side by side */
void report_put_samples(FILE *page, const report *r);

/* Return whether all runs were trained and evaluated on the same data, as far as that is known. */
int report_same_data(const report *r);

/* Write one section of the page each. report_put_page writes the whole page, with all sections. */
int report_put_loss(FILE *page, const report *r, sgt_error *err);
int report_put_steps(FILE *page, const report *r, sgt_error *err);
int report_put_memory(FILE *page, const report *r, sgt_error *err);
/* Write the chart of a run's estimates by batch size, if there are at least two. */
int report_put_estimates(FILE *page, const report *r, const report_run *run, sgt_error *err);
int report_put_page(FILE *page, const report *r, sgt_error *err);

void report_put_options(FILE *page, const report *r);

/* report_big formats a count ("1.23 M"), report_time a time ("3 h 20 min"); both return buf. */
char *report_big(char *buf, size_t n, double x);
char *report_time(char *buf, size_t n, double seconds);
char *report_says_bytes(char *buf, size_t n, double bytes);
/* Return the best unit for byte counts up to `most`, such as 2^20, and set *name, such as to
 * "MiB". */
double report_bytes_unit(double most, const char **name);

#endif
