/* progress.c: draws the progress bar. */
#include "tools/cli/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "tools/cli/talk.h"

#define REDRAW .2  /* seconds between redraws on a terminal */
#define LOGGED 10. /* seconds between lines if there is no terminal */
/* BAR: most columns of the bar; LEAST: fewest; there is no bar if fewer are free */
#define BAR 20
#define LEAST 4

struct sgt_progress {
    pthread_mutex_t lock; /* needed because lines and updates may come from different threads */
    sgt_progress_unit unit;
    const char *name;
    int terminal, quiet, drawn;
    int keep_last; /* 1: without a terminal, print the last state even of a short run */
    double start, last;
    /* drawn_at: value of `done` when the bar was last drawn */
    uint64_t done, total, from, drawn_at;
    char text[256];
    const char *program; /* name that begins a notice */
};

sgt_progress *sgt_progress_new(const char *unit_name, sgt_progress_unit unit, int quiet)
{
    sgt_progress *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->unit = unit;
    p->name = unit_name;
    p->quiet = quiet;
    p->terminal = sgt_can_redraw();
    p->start = p->last = sgt_now();
    return p;
}

static int columns(void)
{
    int n = sgt_columns(STDERR_FILENO);
    return n ? n : 80;
}

/* Which parts of the line are shown, because they fit. */
typedef struct parts {
    int bar, elapsed, rate;
    size_t facts;
} parts;

static size_t count_facts(const char *text)
{
    size_t n = *text != '\0';
    for (; *text; text++) n += *text == '\t';
    return n;
}

static void format_amount(const sgt_progress *p, char *buf, size_t n)
{
    char *(*format)(char *, size_t, uint64_t) =
        p->unit == SGT_PROGRESS_BYTES ? sgt_format_bytes : sgt_format_count;
    char done[32], total[32];
    format(done, sizeof done, p->done);
    format(total, sizeof total, p->total);
    snprintf(buf, n, "%s%s%s", done, p->total ? "/" : "", p->total ? total : "");
}

/* Write the times and the rate to buf: "[00:03<00:04, 25.0 MB/s]", or only some of these parts.
 * Without a total, there is no remaining time. */
static void format_times(const sgt_progress *p, parts with, char *buf, size_t n)
{
    char elapsed[32], left[40] = "", unit[32], rate[64] = "";
    double seconds = sgt_now() - p->start,
           speed = seconds > 0 ? (double)(p->done - p->from) / seconds : 0;
    if (p->total) snprintf(left, sizeof left, "<--:--");
    if (speed > 0 && p->total >= p->done && p->total) {
        left[0] = '<';
        sgt_format_time(left + 1, sizeof left - 1, (double)(p->total - p->done) / speed);
    }
    sgt_format_time(elapsed, sizeof elapsed, seconds);
    snprintf(unit, sizeof unit, "%s/s", p->name);
    sgt_format_rate(rate, sizeof rate, speed, unit);
    if (!with.elapsed) snprintf(buf, n, "%s", left);
    else
        snprintf(buf, n, "[%s%s%s%s]", elapsed, left, with.rate ? ", " : "", with.rate ? rate : "");
}

/* Write the text after the bar to `line`. */
static void format_tail(const sgt_progress *p, parts with, char *line, size_t n)
{
    char size[80], time[128];
    format_amount(p, size, sizeof size);
    format_times(p, with, time, sizeof time);
    size_t at =
        (size_t)snprintf(line, n, "%s%s%s%s", size, *time ? " " : "", time, with.facts ? " " : "");
    for (const char *c = p->text; *c && with.facts && at + 3 < n; c++) {
        if (*c != '\t') line[at++] = *c;
        else if (--with.facts) line[at++] = ',', line[at++] = ' ';
    }
    line[at < n ? at : n - 1] = '\0';
}

/* Leave out one more part of the line; return 0 if none is left to leave out. If the unit is items,
 * facts are more useful than the rate. */
static int leave_out(parts *with, sgt_progress_unit unit)
{
    int items = unit == SGT_PROGRESS_ITEMS && with->facts;
    if (with->rate && items) with->rate = 0;
    else if (with->elapsed && items) with->elapsed = 0;
    else if (with->facts > (size_t)items) with->facts--;
    else if (with->rate) with->rate = 0;
    else if (with->bar) with->bar = 0;
    else if (with->elapsed) with->elapsed = 0;
    else if (with->facts) with->facts--;
    else return 0;
    return 1;
}

/* Write the bar, which has `room` columns at most. */
static void put_bar(char bar[BAR + 3], double part, int room)
{
    int wide = room - 2 > BAR ? BAR : room - 2, filled = part >= 1 ? wide : (int)(part * wide);
    bar[0] = bar[wide + 1] = '|';
    memset(bar + 1, ' ', (size_t)wide);
    memset(bar + 1, '#', (size_t)filled);
    bar[wide + 2] = '\0';
}

/* Draw the line. `before` is written in the same call, so that a terminal never shows half a line
 * and half a bar. */
static void draw(sgt_progress *p, const char *before)
{
    char line[512], head[16] = "", bar[BAR + 3] = "", whole[600];
    double part = p->total ? (double)p->done / (double)p->total : 0;
    parts with = {
        .bar = p->terminal && p->total, .elapsed = 1, .rate = 1, .facts = count_facts(p->text)};
    /* 100 % is shown only when all is done */
    if (p->total)
        snprintf(head, sizeof head, "%3d%%",
                 (int)(part >= 1 ? 100 : 100.0 * (double)p->done / (double)p->total));
    /* left: columns that remain for the bar, after head, tail and the blank between them */
    int room = columns() - 1, left;
    do {
        format_tail(p, with, line, sizeof line);
        left = room - (int)(strlen(head) + strlen(line)) - !!p->total;
    } while (p->terminal && left < (with.bar ? LEAST + 2 : 0) && leave_out(&with, p->unit));
    if (with.bar) put_bar(bar, part, left);
    snprintf(whole, sizeof whole, "%s%s%s%s", head, bar, p->total ? " " : "", line);
    if (p->terminal) fprintf(stderr, "%s\r%.*s\033[K", before, room, whole);
    else fprintf(stderr, "%s\n", whole);
    fflush(stderr);
    p->drawn = 1;
    p->drawn_at = p->done;
}

void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts)
{
    if (!p || p->quiet) return;
    pthread_mutex_lock(&p->lock);
    double now = sgt_now(); /* of several threads, none draws before the time of the last */
    p->done = done;
    p->total = total;
    p->from = from < done ? from : done;
    if (facts) snprintf(p->text, sizeof p->text, "%s", facts);
    if (now < p->start) p->start = now; /* the clock was set back */
    if (now < p->last || now - p->last >= (p->terminal ? REDRAW : LOGGED)) {
        p->last = now;
        draw(p, "");
    }
    pthread_mutex_unlock(&p->lock);
}

static void put_line(sgt_progress *p, const char *program, const char *line)
{
    char text[2048], wrapped[2 * sizeof text], above[sizeof wrapped + 16];
    snprintf(text, sizeof text, "%s%s%.1900s", program, *program ? ": " : "", line);
    pthread_mutex_lock(&p->lock);
    int over = p->terminal && p->drawn;
    sgt_wrap(wrapped, sizeof wrapped, text, sgt_columns(STDERR_FILENO));
    snprintf(above, sizeof above, "%s%s\n", over ? "\r\033[K" : "", wrapped);
    if (over) draw(p, above);
    else fputs(above, stderr);
    pthread_mutex_unlock(&p->lock);
}

void sgt_progress_line(sgt_progress *p, const char *line)
{
    if (p && !p->quiet) put_line(p, "", line);
}

static void print_notice(void *ctx, const char *line)
{
    sgt_progress *p = ctx;
    if (!p->quiet) put_line(p, p->program, line);
}

sgt_notice sgt_progress_notice(sgt_progress *p, const char *program)
{
    if (p) p->program = program;
    return (sgt_notice){p ? print_notice : NULL, p};
}

void sgt_progress_keep_last(sgt_progress *p)
{
    if (p) p->keep_last = 1;
}

/* Return whether the last state must still be printed. Without a terminal, it is printed if lines
 * were printed before it, so that the last of them is not 62 %, or if the caller asked for it. */
static int must_draw_last(const sgt_progress *p)
{
    if (p->terminal) return p->drawn || p->done;
    return p->drawn ? p->done != p->drawn_at : p->keep_last && p->done > p->from;
}

void sgt_progress_end(sgt_progress *p)
{
    if (!p) return;
    if (!p->quiet && must_draw_last(p)) {
        draw(p, "");
        if (p->terminal) fputc('\n', stderr);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}
