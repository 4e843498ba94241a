/* progress.c: draws the progress bar. */
#include "tools/cli/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "tools/cli/talk.h"

#define REDRAW .2  /* seconds between redraws of the line if stderr is a terminal */
#define LOGGED 10. /* seconds between printed lines if stderr is not a terminal */
/* Maximum (BAR) and minimum (LEAST) width in columns of the bar, without the | at its ends. If
 * there is less room than LEAST, other elements of the line are omitted, or no bar is drawn. */
#define BAR 20
#define LEAST 4

struct sgt_progress {
    /* lock for all fields, because several threads can print lines and update the progress at the
     * same time */
    pthread_mutex_t lock;
    const char *unit;
    int terminal, quiet, drawn;
    /* 1 if sgt_progress_end must print the last state even if no line was printed before, otherwise
     * 0 (sgt_progress_keep_last) */
    int keep_last;
    double start, last;
    /* done, total, from: arguments of the last sgt_progress_update. drawn_at: value of `done` when
     * the line was last drawn. */
    uint64_t done, total, from, drawn_at;
    char facts[256];
    const char *program; /* name of the program, printed at the start of each notice */
};

sgt_progress *sgt_progress_new(const char *unit, int quiet)
{
    sgt_progress *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->unit = unit;
    p->quiet = quiet;
    p->terminal = sgt_can_redraw();
    p->start = p->last = sgt_now();
    return p;
}

static size_t count_facts(const char *text)
{
    size_t n = *text != '\0';
    for (; *text; text++) n += *text == '\t';
    return n;
}

/* Write the text to the right of the bar, such as "84.1/200 MB [00:03<00:04, 25.0 MB/s] facts", to
 * the n bytes at `line`. Omit the total and the remaining time if the total is unknown, the rate if
 * `less` is at least 1, and the elapsed time if `less` is at least 2. facts: number of the caller's
 * texts to show. */
static void format_tail(const sgt_progress *p, size_t less, size_t facts, char *line, size_t n)
{
    char *(*format)(char *, size_t, uint64_t) =
        strcmp(p->unit, "B") == 0 ? sgt_format_bytes : sgt_format_count;
    char done[32], total[32] = "/", elapsed[32], left[32] = "<", rate[80] = ", ", per[32],
                   time[160];
    double seconds = sgt_now() - p->start, ahead = -1;
    double speed = seconds > 0 ? (double)(p->done - p->from) / seconds : 0;
    if (speed > 0 && p->total >= p->done) ahead = (double)(p->total - p->done) / speed;
    format(done, sizeof done, p->done);
    format(total + 1, sizeof total - 1, p->total);
    sgt_format_time(elapsed, sizeof elapsed, seconds);
    sgt_format_time(left + 1, sizeof left - 1, ahead);
    snprintf(per, sizeof per, "%s/s", p->unit);
    sgt_format_rate(rate + 2, sizeof rate - 2, speed, per);
    if (!p->total) *total = *left = '\0';
    if (less > 0) *rate = '\0';
    if (less < 2) snprintf(time, sizeof time, "[%s%s%s]", elapsed, left, rate);
    else snprintf(time, sizeof time, "%s", left);
    size_t at = (size_t)snprintf(line, n, "%s%s%s%s%s", done, total, *time ? " " : "", time,
                                 facts ? " " : "");
    for (const char *c = p->facts; *c && facts && at + 3 < n; c++) {
        if (*c != '\t') line[at++] = *c;
        else if (--facts) line[at++] = ',', line[at++] = ' ';
    }
    line[at < n ? at : n - 1] = '\0';
}

/* Write a progress bar of at most `room` columns to `bar`. part: fraction of the work that is
 * done. */
static void put_bar(char bar[BAR + 3], double part, int room)
{
    int wide = room - 2 > BAR ? BAR : room - 2, filled = (int)(part < 1 ? part * wide : wide);
    bar[0] = bar[wide + 1] = '|';
    memset(bar + 1, ' ', (size_t)wide);
    memset(bar + 1, '#', (size_t)filled);
    bar[wide + 2] = '\0';
}

/* Draw the progress line, and print the text `before` above it. Both are written by one system
 * call, because the line could disappear from the terminal for a moment between two calls. */
static void draw(sgt_progress *p, const char *before)
{
    char tail[512], head[16] = "", bar[BAR + 3] = "", line[600];
    double part = p->total ? (double)p->done / (double)p->total : 0;
    size_t all = count_facts(p->facts), less = 0;
    int columns = sgt_columns(STDERR_FILENO), room = (columns ? columns : 80) - 1, left, has_bar;
    /* show 100 % only when all is done */
    if (p->total) snprintf(head, sizeof head, "%3d%%", (int)(part >= 1 ? 100 : 100 * part));
    do {
        /* less: number of elements that are omitted from the line, which grows until the line fits.
         * Elements are omitted in this order: the rate, the elapsed time, the facts from the last
         * to the second, the bar, and the first fact. */
        size_t gone = less < 2 ? 0 : less - 2, facts = gone < all ? all - gone : all && gone == all;
        has_bar = p->terminal && p->total && (!gone || gone < all);
        format_tail(p, less, facts, tail, sizeof tail);
        /* number of columns that `head`, `tail` and a space leave for the bar */
        left = room - (int)(strlen(head) + strlen(tail)) - !!p->total;
    } while (p->terminal && left < (has_bar ? LEAST + 2 : 0) && less++ < 3 + all);
    if (has_bar) put_bar(bar, part, left);
    snprintf(line, sizeof line, "%s%s%s%s", head, bar, p->total ? " " : "", tail);
    if (p->terminal) fprintf(stderr, "%s\r%.*s\033[K", before, room, line);
    else fprintf(stderr, "%s\n", line);
    fflush(stderr);
    p->drawn = 1;
    p->drawn_at = p->done;
}

void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from,
                         const char *facts)
{
    if (!p || p->quiet) return;
    pthread_mutex_lock(&p->lock);
    /* Read the clock while holding the lock. Otherwise, a thread could draw an older time after
     * another thread has drawn a newer one. */
    double now = sgt_now();
    if (facts) snprintf(p->facts, sizeof p->facts, "%s", facts);
    /* Restart the clock in two cases: as long as the total is unknown and no work is done, so that
     * preparations do not lower the rate; and if the clock has been set back. */
    if (now < p->start || (!p->total && done == from)) p->start = p->last = now;
    p->done = done;
    p->total = total;
    p->from = from < done ? from : done;
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

/* Return 1 if sgt_progress_end must print the last state, otherwise 0. On a terminal, the last
 * state is printed if anything was drawn or done. Otherwise, it is printed if lines were printed
 * before, because a log should not end at, say, 62 %, or if sgt_progress_keep_last was called. */
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
