/* attention_cudnn.c: describes fused attention to cuDNN, creates the execution plans, and runs
 * them. */
#include "kernels/cuda/attention_cudnn.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    sgt_error failed; /* error of the first run that cuDNN refused */
};

/* ---- the graphs: operation graphs that cuDNN recognizes as fused attention.
 *
 * cuDNN recognizes a graph by its operations, their types and the strides of their tensors. The
 * graphs here follow, operation for operation, those that cuDNN's own frontend builds for attention
 * with a causal mask. ---- */

/* Unique ids of the tensors that have memory, or a value on the host. */
enum uid { Q = 1, K, V, O, LSE, DO, DQ, DK, DV, DELTA, DQ_SUMS, SCALE, MASKED, KEPT, UIDS };

/* ---- tensors: B sequences of H heads; strides are in numbers ---- */

typedef struct shape {
    sgt_cudnn_graph *g;
    int64_t B, T, H, D;
    int type; /* a 16-bit type */
} shape;

static shape shape_of(sgt_cudnn_graph *g, const sgt_cudnn_attention_options *o)
{
    return (shape){.g = g,
                   .B = (int64_t)o->B,
                   .T = (int64_t)o->T,
                   .H = (int64_t)o->H,
                   .D = (int64_t)o->D,
                   .type = o->type == SGT_BF16 ? N(DATA_BFLOAT16) : N(DATA_HALF)};
}

/* Describe q, k or v, a third of qkv (B, T, 3, H, D). */
static sgt_cudnn_desc packed(const shape *s, enum uid uid)
{
    int64_t row = 3 * s->H * s->D;
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.uid = uid,
                                                     .type = s->type,
                                                     .dim = {s->B, s->H, s->T, s->D},
                                                     .stride = {s->T * row, s->D, row, 1}});
}

/* Describe q, k or v with each head transposed, as (D, T). */
static sgt_cudnn_desc packed_transposed(const shape *s, enum uid uid)
{
    int64_t row = 3 * s->H * s->D;
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.uid = uid,
                                                     .type = s->type,
                                                     .dim = {s->B, s->H, s->D, s->T},
                                                     .stride = {s->T * row, s->D, 1, row}});
}

/* Describe out or dout (B, T, H, D). */
static sgt_cudnn_desc joined(const shape *s, enum uid uid)
{
    int64_t row = s->H * s->D;
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.uid = uid,
                                                     .type = s->type,
                                                     .dim = {s->B, s->H, s->T, s->D},
                                                     .stride = {s->T * row, s->D, row, 1}});
}

/* Describe one float per row, (B, H, T). It is in memory, or only inside the graph if uid is 0. */
static sgt_cudnn_desc rows(const shape *s, int uid)
{
    return sgt_cudnn_tensor(s->g,
                            &(sgt_cudnn_place){.uid = uid,
                                               .kind = uid ? SGT_CUDNN_MEMORY : SGT_CUDNN_VIRTUAL,
                                               .type = N(DATA_FLOAT),
                                               .dim = {s->B, s->H, s->T, 1},
                                               .stride = {s->H * s->T, s->T, 1, 1}});
}

/* Describe one number per query and key, (B, H, T, T), which exists only inside the graph. */
static sgt_cudnn_desc pairs(const shape *s, int type)
{
    int64_t head = s->T * s->T;
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.kind = SGT_CUDNN_VIRTUAL,
                                                     .type = type,
                                                     .dim = {s->B, s->H, s->T, s->T},
                                                     .stride = {s->H * head, head, s->T, 1}});
}

/* Describe one number per key and query: each matrix (T, T) of pairs(), transposed. */
static sgt_cudnn_desc pairs_transposed(const shape *s, int type)
{
    int64_t head = s->T * s->T;
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.kind = SGT_CUDNN_VIRTUAL,
                                                     .type = type,
                                                     .dim = {s->B, s->H, s->T, s->T},
                                                     .stride = {s->H * head, head, 1, s->T}});
}

/* Describe rows of D floats, (B, H, T, D), with the given strides, which exist only inside the
 * graph. */
static sgt_cudnn_desc wide(const shape *s, int64_t b, int64_t h, int64_t t)
{
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.kind = SGT_CUDNN_VIRTUAL,
                                                     .type = N(DATA_FLOAT),
                                                     .dim = {s->B, s->H, s->T, s->D},
                                                     .stride = {b, h, t, 1}});
}

/* Describe the sums of dQ, (B, H, T, D) float in memory, in the order in which the tensor cores of
 * cuDNN's engines write them. */
static sgt_cudnn_desc dq_sums(const shape *s)
{
    return sgt_cudnn_tensor(s->g,
                            &(sgt_cudnn_place){.uid = DQ_SUMS,
                                               .type = N(DATA_FLOAT),
                                               .dim = {s->B, s->H, s->T, s->D},
                                               .stride = {s->H * s->T * s->D, s->T * s->D, s->D, 1},
                                               .reordering = N(TENSOR_REORDERING_F16x16)});
}

static sgt_cudnn_desc scalar(const shape *s, enum uid uid)
{
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.uid = uid,
                                                     .kind = SGT_CUDNN_SCALAR,
                                                     .type = N(DATA_FLOAT),
                                                     .dim = {1, 1, 1, 1},
                                                     .stride = {1, 1, 1, 1}});
}

/* ---- operations whose result exists only inside the graph ---- */

static sgt_cudnn_desc over_pairs(const shape *s, int mode, sgt_cudnn_desc x, sgt_cudnn_desc b)
{
    sgt_cudnn_desc y = pairs(s, N(DATA_FLOAT));
    sgt_cudnn_binary(s->g, mode, x, b, y);
    return y;
}

/* Return x if query >= key, else -inf. */
static sgt_cudnn_desc causal(const shape *s, sgt_cudnn_desc x)
{
    sgt_cudnn_desc query = pairs(s, N(DATA_INT32)), key = pairs(s, N(DATA_INT32));
    sgt_cudnn_desc seen = pairs(s, N(DATA_BOOLEAN)), y = pairs(s, N(DATA_FLOAT)),
                   masked = scalar(s, MASKED);
    sgt_cudnn_index(s->g, 3, x, key);
    sgt_cudnn_index(s->g, 2, x, query);
    sgt_cudnn_compare(s->g, N(POINTWISE_CMP_GE), query, key, seen);
    sgt_cudnn_select(s->g, x, masked, seen, y);
    return y;
}

static sgt_cudnn_desc exponential(const shape *s, sgt_cudnn_desc x)
{
    sgt_cudnn_desc y = pairs(s, N(DATA_FLOAT));
    sgt_cudnn_unary(s->g, N(POINTWISE_EXP), x, y);
    return y;
}

static sgt_cudnn_desc transposed(const shape *s, sgt_cudnn_desc x)
{
    sgt_cudnn_desc y = pairs_transposed(s, s->type);
    sgt_cudnn_reshape(s->g, x, y);
    return y;
}

/* ---- the two graphs ---- */

/* Describe out = softmax(causal(scale Q K')) V, and lse, the logarithm of the sum of exponentials
 * of each row. The probabilities are rounded to 16 bits before they are multiplied by V. */
static void describe_forward(sgt_cudnn_graph *g, const sgt_cudnn_attention_options *o)
{
    const shape sizes = shape_of(g, o), *s = &sizes;
    sgt_cudnn_desc q = packed(s, Q), kt = packed_transposed(s, K), v = packed(s, V);
    sgt_cudnn_desc scale = scalar(s, SCALE), x = pairs(s, N(DATA_FLOAT));
    sgt_cudnn_matmul(g, q, kt, x);
    x = over_pairs(s, N(POINTWISE_MUL), x, scale);
    x = causal(s, x);
    sgt_cudnn_desc max = rows(s, 0), sum = rows(s, 0), log_sum = rows(s, 0), p = pairs(s, s->type);
    sgt_cudnn_reduce(g, N(REDUCE_TENSOR_MAX), x, max);
    x = over_pairs(s, N(POINTWISE_SUB), x, max);
    x = exponential(s, x);
    sgt_cudnn_reduce(g, N(REDUCE_TENSOR_ADD), x, sum);
    sgt_cudnn_unary(g, N(POINTWISE_LOG), sum, log_sum);
    sgt_cudnn_binary(g, N(POINTWISE_ADD), max, log_sum, rows(s, LSE));
    sgt_cudnn_binary(g, N(POINTWISE_DIV), x, sum, p);
    sgt_cudnn_matmul(g, p, v, joined(s, O));
}

/* Describe delta_i = dout_i.out_i, which cuDNN stores in the caller's workspace. The graph that
 * cuDNN recognizes multiplies delta by a factor for dropout, which is 1 here. */
static sgt_cudnn_desc describe_delta(const shape *s, sgt_cudnn_desc dout)
{
    sgt_cudnn_graph *g = s->g;
    sgt_cudnn_desc both = wide(s, s->H * s->T * s->D, s->T * s->D, s->H * s->D), sum = rows(s, 0);
    sgt_cudnn_desc delta = rows(s, DELTA);
    sgt_cudnn_binary(g, N(POINTWISE_MUL), dout, joined(s, O), both);
    sgt_cudnn_reduce(g, N(REDUCE_TENSOR_ADD), both, sum);
    sgt_cudnn_binary(g, N(POINTWISE_MUL), sum, scalar(s, KEPT), delta);
    return delta;
}

/* Describe dQ = dS K. If deterministic, dQ is written at once, in a fixed order, from a dS in the
 * engine's workspace. Otherwise blocks of keys add to dQ's sums in any order, as floats in the
 * caller's workspace. */
static void describe_dq(const shape *s, sgt_cudnn_desc ds, sgt_cudnn_desc kt, int deterministic)
{
    sgt_cudnn_graph *g = s->g;
    int64_t row = 3 * s->H * s->D;
    sgt_cudnn_desc k = wide(s, s->T * row, s->D, row), dq = packed(s, DQ);
    sgt_cudnn_reshape(g, kt, k);
    if (deterministic) {
        sgt_cudnn_matmul(g, ds, k, dq);
        return;
    }
    sgt_cudnn_desc sums = dq_sums(s);
    sgt_cudnn_matmul(g, ds, k, sums);
    sgt_cudnn_unary(g, N(POINTWISE_IDENTITY), sums, dq);
}

/* Describe the gradients. * multiplies element by element; ' is a transpose:
 *   P = exp(causal(scale Q K' - lse))
 *   dV = P' dout    dS = scale P*(dout V' - delta)    dQ = dS K    dK = dS' Q */
static void describe_backward(sgt_cudnn_graph *g, const sgt_cudnn_attention_options *o)
{
    const shape sizes = shape_of(g, o), *s = &sizes;
    sgt_cudnn_desc q = packed(s, Q), kt = packed_transposed(s, K), vt = packed_transposed(s, V),
                   dout = joined(s, DO);
    sgt_cudnn_desc scale = scalar(s, SCALE);
    sgt_cudnn_desc delta = describe_delta(s, dout);

    sgt_cudnn_desc x = pairs(s, N(DATA_FLOAT));
    sgt_cudnn_matmul(g, q, kt, x);
    x = over_pairs(s, N(POINTWISE_MUL), x, scale);
    x = over_pairs(s, N(POINTWISE_SUB), x, rows(s, LSE));
    x = causal(s, x);
    sgt_cudnn_desc p = exponential(s, x);

    sgt_cudnn_desc pt = transposed(s, p);
    sgt_cudnn_matmul(g, pt, dout, packed(s, DV));

    x = pairs(s, N(DATA_FLOAT));
    sgt_cudnn_matmul(g, dout, vt, x);
    x = over_pairs(s, N(POINTWISE_SUB), x, delta);
    x = over_pairs(s, N(POINTWISE_MUL), x, p);
    sgt_cudnn_desc ds = over_pairs(s, N(POINTWISE_MUL), x, scale);

    sgt_cudnn_desc dst = transposed(s, ds);
    sgt_cudnn_matmul(g, dst, q, packed(s, DK));
    describe_dq(s, ds, kt, o->deterministic);
}

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
    size_t most = (size_t)1 << 62; /* limit on the numbers in (B, H, T, T) and qkv */
    if (o->T > UINT32_MAX || o->B > most / o->T / o->T / o->H ||
        o->B > most / o->T / o->H / o->D / 3)
        return sgt_fail(err, SGT_EUSAGE, "cuDNN: attention over too much");
    return SGT_OK;
}

/* Reject options for which this version of cuDNN computes wrong results. */
static int check_version(const sgt_cudnn *api, const sgt_cudnn_attention_options *o, sgt_error *err)
{
    if (api->version <= 91500 && o->T % 128)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: fused attention takes a multiple of 128 tokens, not %zu (9.15.1 or "
                        "newer takes any)",
                        api->title, o->T);
    return SGT_OK;
}

static int plan_both(sgt_cudnn_attention *a, sgt_error *err)
{
    const sgt_cudnn_attention_options *o = &a->o;
    char what[128];
    int rc = check_version(a->api, o, err);
    if (rc < 0) return rc;
    const char *pass = "forward";
    for (int i = 0; i < 2; i++, pass = "backward") {
        sgt_cudnn_graph *g = i ? &a->backward_graph : &a->forward_graph;
        sgt_cudnn_graph_init(g, a->api, a->handle, err);
        if (i) describe_backward(g, o);
        else describe_forward(g, o);
        snprintf(what, sizeof what, "attention %s: %s, head size %zu, B %zu, T %zu, H %zu%s", pass,
                 type_name(o->type), o->D, o->B, o->T, o->H,
                 o->deterministic ? ", deterministic" : "");
        rc = sgt_cudnn_graph_plan(g, what, o->deterministic, i ? &a->backward : &a->forward);
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

int sgt_cudnn_attention_open(sgt_cudnn_attention **out, const sgt_cudnn_attention_options *o,
                             sgt_error *err)
{
    const sgt_cudnn *api;
    int rc = check_options(o, err);
    if (rc == SGT_OK) rc = sgt_cudnn_load(&api, err);
    if (rc < 0) return rc;
    sgt_cudnn_attention *a = calloc(1, sizeof *a);
    if (!a) return sgt_fail_memory(err, "cuDNN");
    a->o = *o;
    a->api = api;
    a->scale = o->scale;
    a->masked = -INFINITY;
    a->kept = 1;
    rc = sgt_cudnn_check(api, api->Create(&a->handle), "no handle", err);
    if (rc == SGT_OK) rc = plan_both(a, err);
    if (rc == SGT_OK) *out = a;
    else sgt_cudnn_attention_close(a);
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

/* ---- workspace: the sums of the backward pass first, then the engine's own memory ---- */

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
    /* cuDNN's interface has no const pointers, but cuDNN does not write to a graph's inputs */
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

/* Run a plan. A variant pack cannot be changed once it is finalized, so each run creates a new one,
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
    if (!a->o.deterministic) put(&p, DQ_SUMS, sums);
    sums += dq_bytes(&a->o);
    run(a, "attention backward", s, &a->backward, &p, sums);
}
