/* attention_cudnn.c: makes and runs cuDNN's plans of fused attention. */
#include "kernels/cuda/attention_cudnn.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/attention_cudnn_graph.h"
#include "kernels/cuda/cudnn_graph.h"
#include "kernels/cuda/runtime.h"

#define N(name) SGT_CUDNN_##name

struct sgt_cudnn_attention {
    sgt_cudnn_attention_options o;
    const sgt_cudnn *api;
    sgt_cudnn_handle handle;
    sgt_cudnn_graph forward_graph, backward_graph;
    sgt_cudnn_plan forward, backward;
    /* scalar inputs of the graphs: 1/sqrt(D), -inf, and 1 (no dropout) */
    float scale, masked, kept;
    int clear_sums;   /* zero dQ's sums before each backward pass */
    sgt_error failed; /* error of the first run that cuDNN refused */
};

/* ---- options ---- */

static const char *type_name(sgt_cuda_type type) { return type == SGT_BF16 ? "bf16" : "fp16"; }

static int check_options(const sgt_cudnn_attention_options *o, sgt_error *err)
{
    if (!o->B || !o->T || !o->H || !o->D)
        return sgt_fail(err, SGT_EUSAGE, "cuDNN: attention over nothing");
    if (!(o->scale > 0 && isfinite(o->scale)))
        return sgt_fail(err, SGT_EUSAGE, "cuDNN: attention scaled by %g", (double)o->scale);
    if (o->type != SGT_BF16 && o->type != SGT_F16)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "cuDNN: fused attention takes bf16 and fp16, not fp32");
    if (o->D % 8 || o->D > 128)
        return sgt_fail(
            err, SGT_EUNSUPPORTED,
            "cuDNN: fused attention takes head sizes that are multiples of 8 to 128, not %zu",
            o->D);
    if (o->T < 2)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "cuDNN: fused attention takes 2 tokens or more, not 1");
    size_t most = (size_t)1 << 62; /* most numbers in (B, H, T, T), and in qkv */
    if (o->T > UINT32_MAX || o->B > most / o->T / o->T / o->H ||
        o->B > most / o->T / o->H / o->D / 3)
        return sgt_fail(err, SGT_EUSAGE, "cuDNN: attention over too much");
    return SGT_OK;
}

/* Refuse options that this version of cuDNN computes wrongly. */
static int check_version(const sgt_cudnn *api, const sgt_cudnn_attention_options *o, sgt_error *err)
{
    if (api->version <= 91500 && o->T % 128)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: fused attention takes a multiple of 128 tokens, not %zu (9.15.1 or "
                        "newer takes any)",
                        api->title, o->T);
    return SGT_OK;
}

/* Plan both graphs: for the handle's device, or if there is no handle, for the device that `json`
 * describes. */
static int plan_both(sgt_cudnn_attention *a, const char *json, sgt_error *err)
{
    const sgt_cudnn_attention_options *o = &a->o;
    char what[128];
    int rc = check_version(a->api, o, err);
    if (rc < 0) return rc;
    const char *pass = "forward";
    for (int i = 0; i < 2; i++, pass = "backward") {
        sgt_cudnn_graph *g = i ? &a->backward_graph : &a->forward_graph;
        sgt_cudnn_graph_init(g, a->api, a->handle, json, err);
        if (i) sgt_cudnn_attention_describe_backward(g, o);
        else sgt_cudnn_attention_describe_forward(g, o);
        snprintf(what, sizeof what, "attention %s: %s, head size %zu, B %zu, T %zu, H %zu%s", pass,
                 type_name(o->type), o->D, o->B, o->T, o->H,
                 o->deterministic ? ", deterministic" : "");
        rc = sgt_cudnn_graph_plan(g, what, o->deterministic, i ? &a->backward : &a->forward);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

static int prepare(sgt_cudnn_attention **out, const sgt_cudnn_attention_options *o, sgt_error *err)
{
    int rc = check_options(o, err);
    if (rc < 0) return rc;
    const sgt_cudnn *api;
    if ((rc = sgt_cudnn_load(&api, err)) < 0) return rc;
    sgt_cudnn_attention *a = calloc(1, sizeof *a);
    if (!a) return sgt_fail_memory(err, "cuDNN");
    a->o = *o;
    a->api = api;
    a->scale = o->scale;
    a->masked = -INFINITY;
    a->kept = 1;
    a->clear_sums = 1;
    *out = a;
    return SGT_OK;
}

int sgt_cudnn_attention_open(sgt_cudnn_attention **out, const sgt_cudnn_attention_options *o,
                             sgt_error *err)
{
    sgt_cudnn_attention *a = NULL;
    int rc = prepare(&a, o, err);
    if (rc < 0) return rc;
    rc = sgt_cudnn_check(a->api, a->api->Create(&a->handle), "no handle", err);
    if (rc == SGT_OK) rc = plan_both(a, NULL, err);
    if (rc < 0) {
        sgt_cudnn_attention_close(a);
        return rc;
    }
    *out = a;
    return SGT_OK;
}

int sgt_cudnn_attention_survey(sgt_cudnn_attention_offer *out, const sgt_cudnn_attention_options *o,
                               const char *device_json, sgt_error *err)
{
    sgt_cudnn_attention *a = NULL;
    int rc = prepare(&a, o, err);
    if (rc < 0) return rc;
    rc = plan_both(a, device_json, err);
    *out = (sgt_cudnn_attention_offer){.forward = a->forward.offered,
                                       .backward = a->backward.offered,
                                       .workspace =
                                           rc == SGT_OK ? sgt_cudnn_attention_workspace(a) : 0};
    sgt_cudnn_attention_close(a);
    return rc;
}

void sgt_cudnn_attention_close(sgt_cudnn_attention *a)
{
    if (!a) return;
    sgt_cudnn_graph_clear(&a->forward_graph);
    sgt_cudnn_graph_clear(&a->backward_graph);
    if (a->handle) a->api->Destroy(a->handle);
    free(a);
}

/* ---- workspace: backward's sums first, then the engine's own memory ---- */

static size_t round_up(size_t n) { return (n + 255) / 256 * 256; }

static size_t delta_bytes(const sgt_cudnn_attention_options *o)
{
    return round_up(o->B * o->H * o->T * sizeof(float));
}

static size_t dq_bytes(const sgt_cudnn_attention_options *o)
{
    return o->deterministic ? 0 : round_up(o->B * o->H * o->T * o->D * sizeof(float));
}

size_t sgt_cudnn_attention_workspace(const sgt_cudnn_attention *a)
{
    size_t forward = round_up(a->forward.workspace);
    size_t backward = delta_bytes(&a->o) + dq_bytes(&a->o) + round_up(a->backward.workspace);
    return forward > backward ? forward : backward;
}

/* ---- runs ---- */

typedef struct pack {
    int64_t uid[UIDS]; /* each id at most once */
    void *at[UIDS];
    int count;
} pack;

static void put(pack *p, enum uid uid, const void *at)
{
    assert(p->count < UIDS);
    p->uid[p->count] = uid;
    /* cuDNN takes no const pointers, but does not write to a graph's inputs */
    p->at[p->count++] = (void *)at;
}

static void put_common(pack *p, sgt_cudnn_attention *a, const void *qkv)
{
    size_t third = a->o.H * a->o.D * 2; /* bytes from q to k, and from k to v */
    put(p, Q, qkv);
    put(p, K, (const char *)qkv + third);
    put(p, V, (const char *)qkv + 2 * third);
    put(p, SCALE, &a->scale);
    put(p, MASKED, &a->masked);
}

static int execute(sgt_cudnn_attention *a, sgt_cudnn_desc d, sgt_cuda_stream s,
                   const sgt_cudnn_plan *plan, const pack *p, void *workspace)
{
    const sgt_cudnn *api = a->api;
    int status = api->BackendSetAttribute(d, N(ATTR_VARIANT_PACK_UNIQUE_IDS), N(TYPE_INT64),
                                          p->count, p->uid);
    if (!status)
        status = api->BackendSetAttribute(d, N(ATTR_VARIANT_PACK_DATA_POINTERS), N(TYPE_VOID_PTR),
                                          p->count, p->at);
    if (!status)
        status = api->BackendSetAttribute(d, N(ATTR_VARIANT_PACK_WORKSPACE), N(TYPE_VOID_PTR), 1,
                                          &workspace);
    if (!status) status = api->BackendFinalize(d);
    if (!status) status = api->SetStream(a->handle, s);
    if (!status) status = api->BackendExecute(a->handle, plan->plan, d);
    return status;
}

/* Run a plan. A variant pack cannot be changed once it is finalized, so each run makes a new one,
 * which takes 0.3 us and only host memory. */
static void run(sgt_cudnn_attention *a, const char *what, sgt_cuda_stream s,
                const sgt_cudnn_plan *plan, const pack *p, void *workspace)
{
    sgt_cudnn_desc d = NULL;
    if (a->failed.code) return;
    int status = a->api->BackendCreateDescriptor(N(BACKEND_VARIANT_PACK_DESCRIPTOR), &d);
    if (!status) {
        status = execute(a, d, s, plan, p, workspace);
        a->api->BackendDestroyDescriptor(d);
    }
    sgt_cuda_count_launch();
    if (!status) {
        sgt_cuda_launched(s, "cuDNN: %s (%zu x %zu x %zu x %zu)", what, a->o.B, a->o.T, a->o.H,
                          a->o.D);
        return;
    }
    sgt_cudnn_check(a->api, status, what, &a->failed);
    sgt_cuda_note_failure(a->failed.text, status);
}

void sgt_cudnn_attention_forward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *out, float *lse,
                                 const void *qkv, void *workspace)
{
    pack p = {.count = 0};
    put_common(&p, a, qkv);
    put(&p, O, out);
    put(&p, LSE, lse);
    run(a, "attention forward", s, &a->forward, &p, workspace);
}

void sgt_cudnn_attention_backward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *dqkv,
                                  const void *dout, const void *out, const float *lse,
                                  const void *qkv, void *workspace)
{
    size_t third = a->o.H * a->o.D * 2;
    char *sums = workspace;
    pack p = {.count = 0};
    put_common(&p, a, qkv);
    put(&p, O, out);
    put(&p, LSE, lse);
    put(&p, DO, dout);
    put(&p, DQ, dqkv);
    put(&p, DK, (char *)dqkv + third);
    put(&p, DV, (char *)dqkv + 2 * third);
    put(&p, KEPT, &a->kept);
    put(&p, DELTA, sums);
    sums += delta_bytes(&a->o);
    if (!a->o.deterministic) {
        if (a->clear_sums) sgt_cuda_zero(s, sums, dq_bytes(&a->o));
        put(&p, DQ_SUMS, sums);
    }
    sums += dq_bytes(&a->o);
    run(a, "attention backward", s, &a->backward, &p, sums);
}

int sgt_cudnn_attention_clear_sums(sgt_cudnn_attention *a, int clear)
{
    a->clear_sums = clear || a->api->version < SGT_CUDNN_CLEARS;
    return a->clear_sums;
}

void *sgt_cudnn_attention_sums(const sgt_cudnn_attention *a, void *workspace, size_t *bytes)
{
    *bytes = dq_bytes(&a->o);
    return *bytes ? (char *)workspace + delta_bytes(&a->o) : NULL;
}

const char *sgt_cudnn_attention_failed(const sgt_cudnn_attention *a)
{
    return a->failed.code ? a->failed.text : NULL;
}
