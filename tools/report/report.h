/* report.h: the parts of sgt-report. run.c reads a run's folder, log.c its log.jsonl, thin.c makes
 * a few hundred points of it, whatever their number, smooth.c a smooth line of these, memory.c
 * reads its memory.jsonl, sample.c has its checkpoint write a few words; advice.c says what the
 * numbers ask for. chart.c finds a picture's axes and draws it, hover.c adds what a reader sees
 * under the pointer. figures.c writes a picture with its caption, charts.c knows which there are
 * (memory's: occupancy.c), head.c says what the runs are, options.c has the table of options,
 * page.c the whole page; its looks are tools/page's, and shapes are written by tools/page/svg.h.
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

/* that one page sets beside each other: colours and dashes tell no more apart */
#define REPORT_RUNS 24
#define REPORT_BINS 240  /* points of a curve at most; */
#define REPORT_DOTS 60   /* with a dot each */
#define REPORT_ADVICE 12 /* lines of one run */

/* ---- what a run has logged ---- */

/* Columns of the log. report_names (log.c) has what they are called there; seconds are the sum of
 * ms_per_step. */
enum {
    REPORT_STEP,
    REPORT_LOSS,
    REPORT_VAL,
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
    double v[REPORT_COLUMNS]; /* NAN: not there, or not a number */
} report_row;

typedef struct report_log {
    report_row *rows; /* steps rise */
    size_t count, room;
    uint64_t repeated; /* lines that later ones of the same steps replaced */
    uint64_t damaged;  /* lines that are none of a log */
    /* the last line has no end: it is being written, or was when the run was killed */
    int half;
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
    char name[24]; /* "forward" */
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
    char validation[1040];       /* "NAME, validation" */
    json_t *options;             /* options.json, or NULL */
    sgt_settings settings;       /* what it says */
    int settings_known;
    char device[200];   /* what computed, "" where no checkpoint says */
    char *checkpoint;   /* the newest, malloc'd; NULL: none */
    uint64_t data_hash; /* of the training data, where `checkpoint` says */
    char host[80], machine[128], command[4096], begun[32],
        resumed[32]; /* as starts.jsonl has them, "" where not;
                                                                           times of the first start and the last */
    uint64_t starts; /* how many times it was started or gone on with; 0: not known */
    /* a text that the checkpoint wrote, or why there is none; malloc'd, NULL: neither */
    char *sample, *no_sample;
    report_log log; /* the last row alone stays once it is thinned */
    report_bins bins, evaluations;
    report_memory memory;
    sgt_train_estimate estimate;
    int estimated;
    char why_not[1024];  /* there is no estimate */
    uint64_t parameters; /* 0: not known */
    /* headline figures; NAN: none */
    double loss_noise; /* standard error of `loss`, which is a mean of so many last steps; */
    size_t loss_steps;
    double steps, loss, val_loss, best_val, best_step, tokens, seconds, speed, mfu, skipped, wait,
        peak;
    int broken; /* a loss or a gradient norm was not a number */
    char *advice[REPORT_ADVICE];
    size_t advice_count;
    int grave[REPORT_ADVICE]; /* that line of advice says that the run is lost: shown in red */
} report_run;

int report_run_open(report_run *r, const char *path, const sgt_notice *notice, sgt_error *err);
void report_read_starts(report_run *r); /* starts.jsonl */

/* Lets the newest checkpoint write REPORT_SAMPLE_TOKENS tokens as sgt-sample's defaults draw them,
 * without a prompt: into r->sample, or why not into r->no_sample. Models of more than
 * REPORT_SAMPLE_PARAMETERS are left out: of that size, one core takes two seconds and 256 MiB.
 * Negative: SGT_ESTOPPED alone. */
#define REPORT_SAMPLE_TOKENS 40
#define REPORT_SAMPLE_PARAMETERS 64000000
int report_sample(report_run *r, const sgt_stop *stop, sgt_error *err);
void report_run_close(report_run *r);
void report_advise(report_run *r); /* while the whole log is there */

/* ---- charts ---- */

typedef enum report_kind {
    REPORT_LINE,  /* a line, and a band from low to high behind it where `band` */
    REPORT_RAW,   /* the same, faint: a smooth line lies over it */
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
    unsigned color; /* 0 ..: the page's classes s0 ..; of areas m0 .. */
    int band;
    /* under the pointer, before the value; NULL: the value is not shown there */
    const char *name;
    report_point *points; /* x rises */
    size_t count;
} report_series;

typedef struct report_tick {
    double at;
    char text[24];
    char brief[8]; /* where there is little room; "": the same */
} report_tick;

#define REPORT_TICKS 16
#define REPORT_SERIES ((size_t)4 * REPORT_RUNS)

/* A number for people, with its unit, into buf, which is returned. */
typedef char *(*report_say)(char *buf, size_t n, double v);

typedef struct report_chart {
    int log_y, zero;                   /* zero: y begins there */
    double x_unit, y_unit;             /* what 1 on the axis is; 0: 1 */
    double x_end;                      /* x begins at 0 and ends there; 0: where the points do */
    double y_most;                     /* above it nothing is shown; 0: no such limit */
    double y_room;                     /* at least so much is shown */
    char x_label[48], y_label[64];     /* "steps", "nats per token": beside the axes */
    report_say x_says, y_says;         /* under the pointer: "step 12", "5.43 nats" */
    report_tick x_ticks[REPORT_TICKS]; /* in place of numbers where there are any */
    size_t x_tick_count;
    report_series series[REPORT_SERIES];
    size_t count;
} report_chart;

/* NULL: no memory */
report_point *report_chart_add(report_chart *c, report_kind kind, unsigned color, size_t points);
void report_chart_free(report_chart *c);
int report_chart_empty(const report_chart *c); /* no point of it has a number */

/* The chart as <svg class="CLASS"> of that size onto the page; `says` is its text for those who do
 * not see it. */
int report_chart_draw(FILE *page, const report_chart *c, int wide, int high, const char *class,
                      const char *says, sgt_error *err);

/* Where numbers lie in a picture. */
typedef struct report_frame {
    double x_low, x_high, y_low, y_high; /* numbers at the edges */
    double left, right, top, bottom;     /* the edges, in pixels */
    int log_y;
} report_frame;

double report_frame_x(const report_frame *f, double x);
double report_frame_y(const report_frame *f, double y);

/* Strips across the picture that say, under the pointer, what each series with a name has there:
 * REPORT_HOVERS at most in a picture of that width, fewer where there are many series. */
#define REPORT_HOVERS(wide) ((wide) > 500 ? 100 : 30)
void report_hover_put(FILE *page, const report_chart *c, const report_frame *f, size_t most);

/* A dot of a REPORT_MARKS series says so itself. */
void report_hover_dot(char *buf, size_t n, const report_chart *c, const report_series *s,
                      const report_point *p);

/* ---- smooth lines ---- */

#define REPORT_SMOOTH_LEAST 20 /* points below which a line is shown as it is */

/* Sets each to[i].y to a local line through the numbers around from[i] (a twelfth of all to both
 * sides, at least 3), which keeps straight lines straight; what is no number stays none. `log`:
 * smooths the logarithms. */
void report_smooth(report_point *to, const report_point *from, size_t count, int log);

/* ---- the page ---- */

typedef struct report {
    report_run *runs;
    size_t count;
    const sgt_stop *stop; /* looked at before every picture */
} report;

/* What the runs are: data, host, date, command, a sample of text. */
void report_put_about(FILE *page, const report *r);   /* of one run, in the page's header */
void report_put_origins(FILE *page, const report *r); /* of several: a table, */
void report_put_samples(FILE *page, const report *r); /* and samples side by side */

/* Whether all runs were trained and evaluated on the same data, as far as is known. */
int report_same_data(const report *r);

/* Sections of figures, onto the page. */
int report_put_loss(FILE *page, const report *r, sgt_error *err);
int report_put_steps(FILE *page, const report *r, sgt_error *err);
int report_put_memory(FILE *page, const report *r, sgt_error *err);
int report_put_page(FILE *page, const report *r, sgt_error *err);

void report_put_options(FILE *page, const report *r);

/* "1.23 M": a number of things; "3 h 20 min": a time. Into buf, which is returned. */
char *report_big(char *buf, size_t n, double x);
char *report_time(char *buf, size_t n, double seconds);
/* its final loss: one more digit than its noise */
char *report_loss(char *buf, size_t n, const report_run *run);
char *report_says_bytes(char *buf, size_t n, double bytes);
/* What bytes are best told in where `most` is the largest number of them: 2^20 and "MiB". */
double report_bytes_unit(double most, const char **name);

#endif
