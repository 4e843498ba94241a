/* progress.c: the bar. */
#include "tools/cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/talk.h"

#define REDRAW .2 /* seconds on a terminal */
#define LOGGED 10. /* seconds elsewhere */

struct sgt_progress {
    sgt_progress_unit unit;
    const char *name;
    int terminal, quiet, drawn;
    double start, last;
    uint64_t done, total, from;
    char text[256];
};

sgt_progress *sgt_progress_new(const char *unit_name, sgt_progress_unit unit, int quiet)
{
    sgt_progress *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->unit = unit;
    p->name = unit_name;
    p->quiet = quiet;
    p->terminal = isatty(STDERR_FILENO);
    p->start = p->last = sgt_now();
    return p;
}

static int columns(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40 ? w.ws_col : 80;
}

static void amount(const sgt_progress *p, char *buf, size_t n)
{
    char a[32], b[32];
    if (p->unit == SGT_PROGRESS_BYTES) {
        sgt_format_bytes(a, sizeof a, p->done);
        sgt_format_bytes(b, sizeof b, p->total);
    } else {
        sgt_format_count(a, sizeof a, p->done);
        sgt_format_count(b, sizeof b, p->total);
    }
    if (p->total) snprintf(buf, n, "%s/%s", a, b);
    else snprintf(buf, n, "%s", a);
}

static void draw(sgt_progress *p)
{
    char line[512], size[80], elapsed[32], left[32] = "--:--", rate[48], bar[21];
    double seconds = sgt_now() - p->start, speed = seconds > 0 ? (double)(p->done - p->from) / seconds : 0;
    double part = p->total ? (double)p->done / (double)p->total : 0;
    if (speed > 0 && p->total >= p->done) sgt_format_time(left, sizeof left, (double)(p->total - p->done) / speed);
    int filled = part >= 1 ? 20 : (int)(part * 20);
    for (int i = 0; i < 20; i++) bar[i] = i < filled ? '#' : ' ';
    bar[20] = 0;
    amount(p, size, sizeof size);
    sgt_format_time(elapsed, sizeof elapsed, seconds);
    if (p->unit == SGT_PROGRESS_BYTES) sgt_format_rate(rate, sizeof rate, speed, "B/s");
    else snprintf(rate, sizeof rate, "%.3g %s/s", speed, p->name);
    if (p->terminal) {
        snprintf(line, sizeof line, "%3.0f%%|%s| %s [%s<%s, %s] %s", part * 100, bar, size, elapsed, left, rate,
                 p->text);
        fprintf(stderr, "\r%.*s\033[K", columns() - 1, line);
    } else {
        fprintf(stderr, "%3.0f%% %s [%s<%s, %s] %s\n", part * 100, size, elapsed, left, rate, p->text);
    }
    fflush(stderr);
    p->drawn = 1;
}

void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from, const char *text)
{
    if (!p || p->quiet) return;
    double now = sgt_now();
    p->done = done;
    p->total = total;
    p->from = from < done ? from : done;
    if (text) snprintf(p->text, sizeof p->text, "%s", text);
    if (now - p->last < (p->terminal ? REDRAW : LOGGED)) return;
    p->last = now;
    draw(p);
}

void sgt_progress_line(sgt_progress *p, const char *line)
{
    if (!p || p->quiet) return;
    fprintf(stderr, "%s%s\n", p->terminal && p->drawn ? "\r\033[K" : "", line);
}

void sgt_progress_end(sgt_progress *p)
{
    if (p && !p->quiet && p->terminal && (p->drawn || p->done)) {
        draw(p);
        fputc('\n', stderr);
    }
    free(p);
}
