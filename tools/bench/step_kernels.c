/* step_kernels.c: makes the table of a step's kernels from CUPTI's spans. Copies and fills have rows
 * too. Rows and the idle time add up to the step, less the time in which two of them ran at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/step.h"

/* Return the row of this name, or NULL if there is no room for it. */
static step_part *row_of(step_result *r, const char *name)
{
    size_t i = 0;
    while (i < r->part_count && strncmp(r->parts[i].name, name, sizeof r->parts[i].name - 1) != 0)
        i++;
    if (i == STEP_PARTS) return NULL;
    if (i == r->part_count)
        snprintf(r->parts[r->part_count++].name, sizeof r->parts->name, "%s", name);
    return &r->parts[i];
}

void bench_step_span(void *spans, const sgt_cupti_span *s)
{
    step_spans *x = spans;
    if (!s->on_device || strcmp(s->category, "range") == 0) return;
    step_part *row = row_of(x->r, s->label ? s->label : s->name);
    if (x->count == x->room) {
        size_t room = x->room ? 2 * x->room : 1024;
        struct step_interval *more = realloc(x->of, room * sizeof *more);
        if (more) x->of = more, x->room = room;
    }
    if (!row || x->count == x->room) {
        x->lost = 1;
        return;
    }
    x->of[x->count++] = (struct step_interval){s->start, s->end};
    row->ms += (double)(s->end - s->start) * 1e-6;
    row->launches++;
    row->bytes += s->bytes;
    row->flops += s->flops;
}

static int by_start(const void *a, const void *b)
{
    const struct step_interval *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int by_ms(const void *a, const void *b)
{
    const step_part *x = a, *y = b;
    return x->ms > y->ms ? -1 : x->ms < y->ms;
}

/* Set *whole to the time from the first start to the last end, and return how much of it is in no
 * interval; both in milliseconds. */
static double idle(const step_spans *x, double *whole)
{
    uint64_t first = x->count ? x->of[0].start : 0, end = first, gaps = 0;
    for (size_t i = 0; i < x->count; i++) {
        if (x->of[i].start > end) gaps += x->of[i].start - end;
        if (x->of[i].end > end) end = x->of[i].end;
    }
    *whole = (double)(end - first) * 1e-6;
    return (double)gaps * 1e-6;
}

int bench_step_kernels(step_spans *x, unsigned steps, sgt_error *err)
{
    step_result *r = x->r;
    if (x->count) qsort(x->of, x->count, sizeof *x->of, by_start);
    r->idle_ms = idle(x, &r->parts_ms) / steps;
    r->parts_ms /= steps;
    for (size_t i = 0; i < r->part_count; i++) {
        step_part *p = &r->parts[i];
        p->ms /= steps;
        p->launches /= steps;
        p->bytes /= steps;
        p->flops /= steps;
    }
    qsort(r->parts, r->part_count, sizeof *r->parts, by_ms);
    free(x->of);
    return x->lost ? sgt_fail(err, SGT_ENOMEM, "no room for a step's kernels") : SGT_OK;
}
