/* trace.c: adds CUPTI's records of the traced steps to the trace, and gives matrix products their
 * names in it. The host waits for the device before the first traced step, so that the trace shows
 * no work of earlier steps, and again after the last traced step. In between, steps run as they do
 * without a trace. */
#include <stdio.h>
#include <string.h>

#include "train/cuda/cuda_backend.h"
#include "train/log/trace.h"
#include "train/cuda/self_check.h"

/* Successive kernels on one stream within the same named range, such as "h.3 forward". The trace
 * shows the range as a bar on a separate track, below the track of the stream. */
typedef struct span {
    sgt_trace *trace;
    /* range of the latest kernels on the stream; the range's name is NULL if they are in no
     * range */
    sgt_trace_event range;
    uint32_t device, stream;
} span;

static void end_range(const span *x)
{
    if (x->range.name) sgt_trace_span(x->trace, &x->range);
}

/* Add a kernel to the trace, and extend the bar of its range (a named part of a step). The kernels
 * of a stream arrive in order of their start times. Bars on a track must not overlap, but a kernel
 * may start before the previous kernel ends. If these two are in different ranges, end the previous
 * range's bar at the start of the new kernel. */
static void show(void *ctx, const sgt_cupti_kernel *k)
{
    span *x = ctx;
    char track[64];
    const char *range = k->range ? sgt_trace_name(x->trace, k->range) : NULL;
    int n = snprintf(track, sizeof track, "GPU %u, stream %u", k->device, k->stream);
    sgt_trace_span(x->trace,
                   &(sgt_trace_event){.name = sgt_trace_name(x->trace, k->name),
                                      .category = k->category,
                                      .start = k->start,
                                      .end = k->end,
                                      .track = sgt_trace_track(x->trace, SGT_TRACE_DEVICE, track)});
    int same = k->device == x->device && k->stream == x->stream;
    if (same && range == x->range.name) {
        if (k->end > x->range.end) x->range.end = k->end;
        return;
    }
    if (same && k->start < x->range.end) x->range.end = k->start;
    end_range(x);
    snprintf(track + n, sizeof track - (size_t)n, ", by range");
    *x = (span){.trace = x->trace, .device = k->device, .stream = k->stream};
    x->range =
        (sgt_trace_event){.name = range, .category = "range", .start = k->start, .end = k->end};
    if (range) x->range.track = sgt_trace_track(x->trace, SGT_TRACE_DEVICE, track);
}

static int finish(const sgt_cuda_backend *c, sgt_error *err)
{
    int rc = sgt_cuda_finish(c->queue.copies, err);
    return rc == SGT_OK ? sgt_cuda_finish(c->queue.compute, err) : rc;
}

/* Return CUPTI's error *why with "--profile", the option that needs CUPTI, added to the message. */
static int name_option(int rc, const sgt_error *why, sgt_error *err)
{
    return rc < 0 ? sgt_fail(err, rc, "--profile: %s", why->text) : rc;
}

static int begin(void *ctx, sgt_error *err)
{
    sgt_cuda_backend *c = ctx;
    sgt_error why;
    int rc = finish(c, err);
    return rc == SGT_OK ? name_option(sgt_cupti_begin(c->cupti, &why), &why, err) : rc;
}

static int end(void *ctx, sgt_error *err)
{
    sgt_cuda_backend *c = ctx;
    sgt_error why;
    span x = {.trace = c->o.trace};
    int rc = finish(c, err);
    if (rc < 0) return rc;
    rc = sgt_cupti_end(c->cupti, show, &x, &why);
    end_range(&x);
    if (rc != SGT_EIO) return name_option(rc, &why, err);
    sgt_say(&c->o.notice, "--profile: %s: these events are missing from the trace", why.text);
    return SGT_OK;
}

int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err)
{
    /* without CUPTI, the trace shows only work of the host */
    if (!c->o.trace || sgt_verdict_out(c->o.verdicts, SGT_CHECK_CUPTI)) return SGT_OK;
    sgt_error why;
    int rc = name_option(sgt_cupti_open(&c->cupti, &why), &why, err);
    if (rc == SGT_OK) sgt_trace_watch(c->o.trace, &(sgt_trace_watcher){begin, end, c});
    return rc;
}

void sgt_cuda_trace_close(sgt_cuda_backend *c)
{
    if (c->cupti) sgt_trace_watch(c->o.trace, &(sgt_trace_watcher){0});
    sgt_cupti_close(c->cupti);
    c->cupti = NULL;
}

void sgt_cuda_push_layer(const char *pass, size_t layer)
{
    char name[48];
    snprintf(name, sizeof name, "h.%zu %s", layer, pass);
    sgt_cupti_push(name);
}

void sgt_cuda_product(const sgt_cuda_backend *c, const sgt_cuda_planned *p, void *d, const void *a,
                      const void *b, void *bias, void *aux)
{
    sgt_cupti_push_label(p->name);
    sgt_cupti_work(sgt_cuda_gemm_flops(p->gemm), 0);
    sgt_cuda_gemm_run(p->gemm, c->queue.compute, d, a, b, bias, aux);
    sgt_cupti_pop();
}
