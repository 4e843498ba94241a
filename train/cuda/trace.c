/* trace.c: adds CUPTI's records of the traced steps to the trace, and names products. The host waits
 * for the device before the first traced step, so that the trace contains no work of the step before
 * it, and after the last. Between these waits, steps run as usual. */
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
    sgt_trace_span(t, &e);
}

static int finish(const sgt_cuda_backend *c, sgt_error *err)
{
    int rc = sgt_cuda_finish(c->queue.copies, err);
    return rc == SGT_OK ? sgt_cuda_finish(c->queue.compute, err) : rc;
}

/* Add the option to CUPTI's message. */
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
    sgt_cupti_counts counts;
    int rc = finish(c, err);
    if (rc == SGT_OK)
        rc = name_option(sgt_cupti_end(c->cupti, show, c->o.trace, &counts, &why), &why, err);
    if (rc == SGT_OK && counts.lost)
        sgt_say(&c->o.notice, "trace: CUPTI lost %llu records", (unsigned long long)counts.lost);
    return rc;
}

int sgt_cuda_trace_open(sgt_cuda_backend *c, sgt_error *err)
{
    /* without CUPTI, the trace has only the host's part */
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

/* Return what a product computes. Products of the same shape share a plan, and the first name. */
static const char *name_of(const sgt_cuda_backend *c, const sgt_cuda_gemm *p)
{
    static const char *const names[SGT_CUDA_LINEARS][3] = {
        [SGT_CUDA_QKV] = {"qkv forward", "qkv dX", "qkv dW"},
        [SGT_CUDA_PROJ] = {"proj forward", "proj dX", "proj dW"},
        [SGT_CUDA_FC] = {"fc forward", "fc dX", "fc dW"},
        [SGT_CUDA_FCPROJ] = {"fcproj forward", "fcproj dX", "fcproj dW"},
        [SGT_CUDA_HEAD] = {"head forward", "head dX", "head dW"}};
    for (int i = 0; i < SGT_CUDA_LINEARS; i++) {
        const sgt_cuda_linear *l = &c->plan.linear[i];
        if (p == l->forward) return names[i][0];
        if (p == l->dx) return names[i][1];
        if (p == l->dw) return names[i][2];
    }
    if (p == c->plan.fc_gelu) return names[SGT_CUDA_FC][0];
    return p == c->plan.dgelu ? names[SGT_CUDA_FCPROJ][1] : "attention products";
}

void sgt_cuda_push_product(const sgt_cuda_backend *c, const sgt_cuda_gemm *p)
{
    sgt_cupti_push_label(name_of(c, p));
    sgt_cupti_work(sgt_cuda_gemm_flops(p), 0);
}

void sgt_cuda_product(const sgt_cuda_backend *c, const sgt_cuda_gemm *p, void *d, const void *a,
                      const void *b, void *bias, void *aux)
{
    sgt_cuda_push_product(c, p);
    sgt_cuda_gemm_run(p, c->queue.compute, d, a, b, bias, aux);
    sgt_cupti_pop();
}
