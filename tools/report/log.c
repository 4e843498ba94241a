/* log.c: reads log.jsonl of a run in any state: one that continues, was killed or resumed, or
 * filled its disk. Anything but a complete line of a step is counted and skipped. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/report/report.h"

#define LINE 65536     /* most bytes of a line; ours have 400 */
#define MOST_STEP 1e15 /* highest step; a double represents it exactly */
/* Larger values are read as NAN, because charts could not be scaled to them. */
#define MOST 1e100

static const char *const names[REPORT_COLUMNS] = {[REPORT_STEP] = "step",
                                                  [REPORT_LOSS] = "loss",
                                                  [REPORT_VAL] = "val_loss",
                                                  [REPORT_BITS] = "val_bits_per_byte",
                                                  [REPORT_LR] = "lr",
                                                  [REPORT_NORM] = "grad_norm",
                                                  [REPORT_SKIPPED] = "skipped",
                                                  [REPORT_TOKENS] = "tokens",
                                                  [REPORT_SPEED] = "tokens_per_s",
                                                  [REPORT_MS] = "ms_per_step",
                                                  [REPORT_WAIT] = "data_wait_ms",
                                                  [REPORT_MFU] = "mfu",
                                                  [REPORT_PEAK] = "peak_bytes"};

/* Read a line to buf, without its newline; a line longer than LINE bytes is cut. Returns 1, or 0 at
 * the end of the file. *whole: whether the line had a newline. */
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

/* Parse a line of the log to *row. Return whether it is the line of a step. */
static int parse(report_row *row, const char *text, size_t n)
{
    json_t *line = n < LINE ? json_loadb(text, n, 0, NULL) : NULL;
    for (size_t i = 0; i < REPORT_COLUMNS; i++)
        row->v[i] = names[i] ? number(line, names[i]) : (double)NAN;
    json_decref(line);
    double step = row->v[REPORT_STEP];
    return step >= 0 && step <= MOST_STEP && floor(step) == step;
}

/* Append a row. If its step was logged before, the run was resumed from an earlier checkpoint: rows
 * from that step on no longer belong to the run. */
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
    /* without O_NONBLOCK, opening a pipe of that name would wait for a writer */
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
