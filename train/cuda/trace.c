/* trace.c: adds CUPTI's records of the traced steps to the trace. The host waits for the device
 * before the first traced step, so that the trace contains no work of the step before it, and after
 * the last. Between these waits, steps run as usual. */
#include <stdio.h>
#include <string.h>

#include "train/cuda/cuda_backend.h"
#include "train/log/trace.h"
#include "train/cuda/self_check.h"

_Static_assert(SGT_TRACE_ARGS == SGT_CUPTI_ARGS, "a span's arguments fit in an event's");

static void show(void *ctx, const sgt_cupti_span *s)
{
    sgt_trace *t = ctx;
    sgt_trace_event e = {
        .name = sgt_trace_name(t, s->name),
        .category = sgt_trace_name(t, s->category),
        .start = s->start,
        .end = s->end,
        .track = sgt_trace_track(t, s->on_device ? SGT_TRACE_DEVICE : SGT_TRACE_HOST, s->track),
        .flow = s->flow,
        .starts_flow = s->starts_flow};
    for (int i = 0; i < SGT_TRACE_ARGS && s->args[i].key; i++)
        e.args[i] = (sgt_trace_arg){sgt_trace_name(t, s->args[i].key), s->args[i].value};
    sgt_trace_reserve(t, 1);
    sgt_trace_span(t, &e);
}

static int finish(const sgt_cuda_backend *c, sgt_error *err)
{
    int rc = sgt_cuda_finish(c->queue.copies, err);
    return rc == SGT_OK ? sgt_cuda_finish(c->queue.compute, err) : rc;
}

static int begin(void *ctx, sgt_error *err)
{
    sgt_cuda_backend *c = ctx;
    int rc = finish(c, err);
    return rc == SGT_OK ? sgt_cupti_begin(c->cupti, SGT_CUPTI_ALL, err) : rc;
}

static int end(void *ctx, sgt_error *err)
{
    sgt_cuda_backend *c = ctx;
    sgt_cupti_counts counts;
    int rc = finish(c, err);
    if (rc == SGT_OK) rc = sgt_cupti_end(c->cupti, show, c->o.trace, &counts, err);
    if (rc == SGT_OK && counts.lost)
        sgt_say(&c->o.notice, "trace: CUPTI lost %llu records", (unsigned long long)counts.lost);
    return rc;
}

int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err)
{
    /* without CUPTI, the trace has only the host's part */
    if (!c->o.trace || sgt_verdict_out(c->o.verdicts, SGT_CHECK_CUPTI)) return SGT_OK;
    int rc = sgt_cupti_open(&c->cupti, err);
    if (rc == SGT_OK) sgt_trace_watch(c->o.trace, &(sgt_trace_watcher){begin, end, c});
    return rc;
}

void sgt_cuda_trace_close(sgt_cuda_backend *c)
{
    if (c->cupti) sgt_trace_watch(c->o.trace, &(sgt_trace_watcher){0});
    sgt_cupti_close(c->cupti);
    c->cupti = NULL;
}

void sgt_cuda_range(sgt_cuda_backend *c, const char *name) { sgt_cupti_push(c->cupti, name); }

void sgt_cuda_range_layer(sgt_cuda_backend *c, const char *pass, size_t layer)
{
    char name[48];
    snprintf(name, sizeof name, "h.%zu %s", layer, pass);
    sgt_cupti_push(c->cupti, name);
}

void sgt_cuda_range_end(sgt_cuda_backend *c) { sgt_cupti_pop(c->cupti); }
