/* progress.c: the bar. */
#include "tools/cli/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/cli/talk.h"

#define REDRAW .2 /* seconds on a terminal */
#define LOGGED 10. /* seconds elsewhere */
#define BAR 20 /* columns, or as many as a narrow terminal leaves, but no fewer than LEAST */
#define LEAST 4

struct sgt_progress {
    pthread_mutex_t lock; /* lines come from other threads than updates */
    sgt_progress_unit unit;
    const char *name;
    int terminal, quiet, drawn;
    double start, last;
    uint64_t done, total, from;
    char text[256];
    const char *program; /* of the notice */
};

sgt_progress *sgt_progress_new(const char *unit_name, sgt_progress_unit unit, int quiet)
{
    sgt_progress *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    pthread_mutex_init(&p->lock, NULL);
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

/* "84.1 MiB/200.0 MiB [00:03<00:04, 25.0 MB/s] text"; without a total there is nothing to be left. */
static void facts(const sgt_progress *p, char *line, size_t n)
{
    char size[80], elapsed[32], left[40] = "", rate[48];
    double seconds = sgt_now() - p->start, speed = seconds > 0 ? (double)(p->done - p->from) / seconds : 0;
    if (p->total) snprintf(left, sizeof left, "<--:--");
    if (speed > 0 && p->total >= p->done && p->total) {
        left[0] = '<';
        sgt_format_time(left + 1, sizeof left - 1, (double)(p->total - p->done) / speed);
    }
    amount(p, size, sizeof size);
    sgt_format_time(elapsed, sizeof elapsed, seconds);
    if (p->unit == SGT_PROGRESS_BYTES) sgt_format_rate(rate, sizeof rate, speed, "B/s");
    else snprintf(rate, sizeof rate, "%.3g %s/s", speed, p->name);
    snprintf(line, n, "%s [%s%s, %s]%s%s", size, elapsed, left, rate, *p->text ? " " : "", p->text);
}

/* `before` goes out in the same write: what a terminal shows is never half a line and half a bar. */
static void draw(sgt_progress *p, const char *before)
{
    char line[512], head[16] = "", bar[BAR + 3] = "";
    double part = p->total ? (double)p->done / (double)p->total : 0;
    facts(p, line, sizeof line);
    if (p->total) snprintf(head, sizeof head, "%3d%%", (int)(part >= 1 ? 100 : part * 100)); /* 100 is done */
    if (p->terminal) {
        int room = columns() - 1, wide = room - (int)(strlen(head) + strlen(line)) - 3;
        wide = wide > BAR ? BAR : wide < LEAST ? LEAST : wide;
        int filled = part >= 1 ? wide : (int)(part * wide);
        if (p->total) {
            bar[0] = bar[wide + 1] = '|';
            memset(bar + 1, ' ', (size_t)wide);
            memset(bar + 1, '#', (size_t)filled);
        }
        int used = (int)(strlen(head) + strlen(bar)) + !!p->total; /* at most 4 + 22 + 1, of at least 39 */
        fprintf(stderr, "%s\r%s%s%s%.*s\033[K", before, head, bar, p->total ? " " : "", room - used, line);
    } else {
        fprintf(stderr, "%s%s%s\n", head, p->total ? " " : "", line);
    }
    fflush(stderr);
    p->drawn = 1;
}

void sgt_progress_update(sgt_progress *p, uint64_t done, uint64_t total, uint64_t from, const char *text)
{
    if (!p || p->quiet) return;
    double now = sgt_now();
    pthread_mutex_lock(&p->lock);
    p->done = done;
    p->total = total;
    p->from = from < done ? from : done;
    if (text) snprintf(p->text, sizeof p->text, "%s", text);
    if (now - p->last >= (p->terminal ? REDRAW : LOGGED)) {
        p->last = now;
        draw(p, "");
    }
    pthread_mutex_unlock(&p->lock);
}

static void put_line(sgt_progress *p, const char *program, const char *line)
{
    char above[2048];
    pthread_mutex_lock(&p->lock);
    int over = p->terminal && p->drawn;
    snprintf(above, sizeof above, "%s%s%s%.1900s%s\n", over ? "\r" : "", program, *program ? ": " : "", line,
             over ? "\033[K" : "");
    if (over) draw(p, above);
    else fputs(above, stderr);
    pthread_mutex_unlock(&p->lock);
}

void sgt_progress_line(sgt_progress *p, const char *line)
{
    if (p && !p->quiet) put_line(p, "", line);
}

static void say(void *ctx, const char *line)
{
    sgt_progress *p = ctx;
    if (!p->quiet) put_line(p, p->program, line);
}

sgt_notice sgt_progress_notice(sgt_progress *p, const char *program)
{
    if (p) p->program = program;
    return (sgt_notice){p ? say : NULL, p};
}

void sgt_progress_end(sgt_progress *p)
{
    if (!p) return;
    if (!p->quiet && p->terminal && (p->drawn || p->done)) {
        draw(p, "");
        fputc('\n', stderr);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}
