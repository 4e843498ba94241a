/* log.c: log.jsonl, as it is: a run that goes on, that was killed, that was resumed, or whose disk
 * was full. Whatever is not a whole line of a step is counted and left out. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/report/report.h"

#define LINE 65536     /* bytes of a line at most: ours have 400 */
#define MOST_STEP 1e15 /* exact as a double */
/* larger values are taken to be no numbers: pictures could not be scaled to them */
#define MOST 1e100

static const char *const names[REPORT_COLUMNS] = {
    [REPORT_STEP] = "step",      [REPORT_LOSS] = "loss",
    [REPORT_VAL] = "val_loss",   [REPORT_LR] = "lr",
    [REPORT_NORM] = "grad_norm", [REPORT_SKIPPED] = "skipped",
    [REPORT_TOKENS] = "tokens",  [REPORT_SPEED] = "tokens_per_s",
    [REPORT_MS] = "ms_per_step", [REPORT_WAIT] = "data_wait_ms",
    [REPORT_MFU] = "mfu",        [REPORT_PEAK] = "peak_bytes"};

/* A line of at most LINE - 1 bytes into buf; longer ones are cut. 1: there was one, 0: none;
 * *whole: it had an end. */
static int next_line(FILE *f, char *buf, size_t *n, int *whole)
{
    int c = EOF;
    *n = 0;
    while ((c = getc_unlocked(f)) != EOF && c != '\n')
        if (*n < LINE) buf[(*n)++] = (char)c;
    *whole = c == '\n';
    return c == '\n' || *n;
}

static double number(const json_t *line, const char *name)
{
    const json_t *x = json_object_get(line, name);
    double v = json_is_number(x) ? json_number_value(x) : (double)NAN;
    return fabs(v) <= MOST ? v : (double)NAN;
}

/* Whether the bytes are a step's line, and which. */
static int parse(report_row *row, const char *text, size_t n)
{
    json_t *line = n < LINE ? json_loadb(text, n, 0, NULL) : NULL;
    for (size_t i = 0; i < REPORT_COLUMNS; i++)
        row->v[i] = names[i] ? number(line, names[i]) : (double)NAN;
    json_decref(line);
    double step = row->v[REPORT_STEP];
    return step >= 0 && step <= MOST_STEP && floor(step) == step;
}

/* A step that comes again was begun again from a checkpoint before it: what followed then is no
 * part of the run. */
static int add(report_log *l, const report_row *row)
{
    while (l->count && l->rows[l->count - 1].v[REPORT_STEP] >= row->v[REPORT_STEP]) {
        l->count--;
        l->repeated++;
    }
    if (l->count == l->room) {
        size_t room = 2 * l->room + 1024;
        report_row *more = realloc(l->rows, room * sizeof *more);
        if (!more) return -1;
        l->rows = more;
        l->room = room;
    }
    l->rows[l->count++] = *row;
    return 0;
}

static void add_up_time(report_log *l)
{
    double seconds = 0;
    for (size_t i = 0; i < l->count; i++) {
        double ms = l->rows[i].v[REPORT_MS];
        if (ms > 0) seconds += ms / 1e3;
        l->rows[i].v[REPORT_SECONDS] = seconds;
    }
}

static int read_lines(report_log *l, FILE *f, const char *path, sgt_error *err)
{
    size_t n;
    int whole, rc = SGT_OK;
    char *buf = malloc(LINE);
    if (!buf) return sgt_fail_memory(err, path);
    while (rc == SGT_OK && next_line(f, buf, &n, &whole)) {
        report_row row;
        if (!whole) l->half = 1;
        else if (!parse(&row, buf, n)) l->damaged++;
        else if (add(l, &row) < 0) rc = sgt_fail_memory(err, path);
    }
    if (rc == SGT_OK && ferror(f)) rc = sgt_fail_errno(err, "%s", path);
    free(buf);
    return rc;
}

int report_log_read(report_log *l, const char *path, sgt_error *err)
{
    struct stat st;
    *l = (report_log){0};
    /* a pipe of that name would keep us waiting */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? SGT_OK : sgt_fail_errno(err, "%s", path);
    FILE *f = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (!f) {
        close(fd);
        return sgt_fail(err, SGT_EFORMAT, "%s: no plain file", path);
    }
    int rc = read_lines(l, f, path, err);
    fclose(f);
    add_up_time(l);
    return rc;
}

void report_log_free(report_log *l)
{
    free(l->rows);
    *l = (report_log){0};
}
