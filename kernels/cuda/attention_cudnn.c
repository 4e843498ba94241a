/* attention_cudnn.c: describes fused attention to cuDNN as graphs of operations, creates their
 * execution plans, and runs them. */
#include "kernels/cuda/attention_cudnn.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/runtime.h"

#define N(name) SGT_CUDNN_##name

enum {
    OPS = 32, /* maximum number of operations of a graph */
    DESCS = 512,
    /* maximum number of engine configurations (cuDNN's suggestions for a graph) that are tried for
     * each mode of its heuristics */
    OFFERS = 32
};

typedef sgt_cudnn_desc desc;

/* A graph of operations, and the execution plan that runs it. If a call fails, it sets `rc` and
 * *err, and later calls do nothing. Therefore only plan_graph, at the end, must check for
 * errors. */
typedef struct graph {
    const sgt_cudnn_attention_options *o;
    const sgt_cudnn *api;
    sgt_cudnn_handle handle;
    /* ops: the graph's operations; descs: all descriptors that the graph owns */
    desc ops[OPS], descs[DESCS];
    int op_count, desc_count;
    /* name of the object that is being created, for error messages; for example "tensor" */
    const char *making;
    int64_t last_uid; /* id of the newest tensor that exists only inside the graph */
    int rc;
    sgt_error *err;
    desc plan;        /* owned by the graph */
    size_t workspace; /* bytes of device memory per run */
} graph;

struct sgt_cudnn_attention {
    sgt_cudnn_attention_options o;
    const sgt_cudnn *api;
    sgt_cudnn_handle handle;
    graph forward, backward;
    /* Scalars that the graphs read from host memory:
     *   scale   1/sqrt(D), by which scores are multiplied
     *   masked  -inf, which replaces the score of a masked pair of query and key
     *   kept    1, the dropout factor, because nothing is dropped */
    float scale, masked, kept;
    sgt_error failed; /* error of the first call that cuDNN has rejected */
};

/* ---- descriptors ---- */

static int ok(graph *g, int status)
{
    if (g->rc == SGT_OK && status != N(STATUS_SUCCESS))
        g->rc = sgt_cudnn_check(g->api, status, g->making, g->err);
    return g->rc == SGT_OK;
}

static desc make(graph *g, int type, const char *what)
{
    desc d = NULL;
    g->making = what;
    if (g->rc < 0) return NULL;
    assert(g->desc_count < DESCS);
    if (ok(g, g->api->BackendCreateDescriptor(type, &d))) g->descs[g->desc_count++] = d;
    return d;
}

static void set(graph *g, desc d, int name, int type, int64_t count, const void *values)
{
    if (g->rc == SGT_OK) ok(g, g->api->BackendSetAttribute(d, name, type, count, values));
}

static void get(graph *g, desc d, int name, int type, int64_t room, int64_t *count, void *values)
{
    if (g->rc == SGT_OK) ok(g, g->api->BackendGetAttribute(d, name, type, room, count, values));
}

static void set_desc(graph *g, desc d, int name, desc value)
{
    set(g, d, name, N(TYPE_BACKEND_DESCRIPTOR), 1, &value);
}

static void set_int(graph *g, desc d, int name, int type, int value)
{
    set(g, d, name, type, 1, &value);
}

static void finalize(graph *g, desc d)
{
    if (g->rc == SGT_OK) ok(g, g->api->BackendFinalize(d));
}

/* Destroy the newest descriptors of the graph until only `count` are left. A descriptor refers only
 * to older descriptors, so it is safe to destroy the newest first. */
static void destroy(graph *g, int count)
{
    while (g->desc_count > count) g->api->BackendDestroyDescriptor(g->descs[--g->desc_count]);
}

/* ---- tensors: B sequences of H heads; strides are in elements ---- */

/* Ids of tensors. A run gives cuDNN the address of each id's tensor, in device memory or, for
 * scalars, on the host. A tensor that exists only inside the graph has no address: its id here is
 * INSIDE, for which the function `tensor` chooses an id above VIRTUAL. */
enum uid { INSIDE, Q, K, V, O, LSE, DO, DQ, DK, DV, DELTA, DQ_SUMS, SCALE, MASKED, KEPT, UIDS };
enum { VIRTUAL = 1000 }; /* ids above VIRTUAL belong to tensors that exist only inside the graph */

enum form {
    PACKED,            /* q, k or v: one third of the array qkv (B, T, 3, H, D) */
    PACKED_TRANSPOSED, /* the same memory as PACKED, but described as (B, H, D, T) */
    JOINED,            /* out or dout (B, T, H, D) */
    PRODUCT,           /* dout * out */
    ROWS,              /* one element per query (B, H, T) */
    PAIRS,             /* array (B, H, T, T): one element for each query and key */
    PAIRS_TRANSPOSED,  /* the same array as PAIRS, with the strides of its transpose */
    /* sums of dQ (B, H, T, D) in the order in which cuDNN's engines write them from tensor cores
     * (F16x16) */
    SUMS,
    SCALAR /* one element in host memory */
};

static desc tensor(graph *g, enum uid uid, enum form form, int type)
{
    const int64_t B = (int64_t)g->o->B, T = (int64_t)g->o->T, H = (int64_t)g->o->H,
                  D = (int64_t)g->o->D, row = H * D, head = T * T;
    const struct {
        int64_t dim[4], stride[4];
    } forms[] = {[PACKED] = {{B, H, T, D}, {T * 3 * row, D, 3 * row, 1}},
                 [PACKED_TRANSPOSED] = {{B, H, D, T}, {T * 3 * row, D, 1, 3 * row}},
                 [JOINED] = {{B, H, T, D}, {T * row, D, row, 1}},
                 [PRODUCT] = {{B, H, T, D}, {T * row, T * D, row, 1}},
                 [ROWS] = {{B, H, T, 1}, {H * T, T, 1, 1}},
                 [PAIRS] = {{B, H, T, T}, {H * head, head, T, 1}},
                 [PAIRS_TRANSPOSED] = {{B, H, T, T}, {H * head, head, 1, T}},
                 [SUMS] = {{B, H, T, D}, {T * row, T * D, D, 1}},
                 [SCALAR] = {{1, 1, 1, 1}, {1, 1, 1, 1}}};
    const int64_t align = 16, id = uid ? uid : ++g->last_uid;
    const _Bool yes = 1;
    desc d = make(g, N(BACKEND_TENSOR_DESCRIPTOR), "tensor");
    set_int(g, d, N(ATTR_TENSOR_DATA_TYPE), N(TYPE_DATA_TYPE), type);
    set(g, d, N(ATTR_TENSOR_DIMENSIONS), N(TYPE_INT64), 4, forms[form].dim);
    set(g, d, N(ATTR_TENSOR_STRIDES), N(TYPE_INT64), 4, forms[form].stride);
    set(g, d, N(ATTR_TENSOR_UNIQUE_ID), N(TYPE_INT64), 1, &id);
    set(g, d, N(ATTR_TENSOR_BYTE_ALIGNMENT), N(TYPE_INT64), 1, &align);
    if (!uid) set(g, d, N(ATTR_TENSOR_IS_VIRTUAL), N(TYPE_BOOLEAN), 1, &yes);
    if (form == SCALAR) set(g, d, N(ATTR_TENSOR_IS_BY_VALUE), N(TYPE_BOOLEAN), 1, &yes);
    if (form == SUMS)
        set_int(g, d, N(ATTR_TENSOR_REORDERING_MODE), N(TYPE_TENSOR_REORDERING_MODE),
                N(TENSOR_REORDERING_F16x16));
    finalize(g, d);
    return d;
}

/* Return the descriptor of a tensor in the 16-bit type of q, k, v and their gradients. */
static desc half(graph *g, enum uid uid, enum form form)
{
    return tensor(g, uid, form, g->o->type == SGT_BF16 ? N(DATA_BFLOAT16) : N(DATA_HALF));
}

static desc inside(graph *g, enum form form) { return tensor(g, INSIDE, form, N(DATA_FLOAT)); }

static desc scalar(graph *g, enum uid uid) { return tensor(g, uid, SCALAR, N(DATA_FLOAT)); }

/* ---- operations: each has a descriptor of the function and a descriptor of the operands ---- */

/* An operand of an operation: the name of an attribute, and the tensor or function x to which the
 * attribute is set. If x is NULL, add_operation does not set the attribute. */
typedef struct operand {
    int name;
    desc x;
} operand;

static void add_operation(graph *g, int type, const char *what, const operand *operands,
                          size_t count)
{
    desc op = make(g, type, what);
    for (size_t i = 0; i < count; i++)
        if (operands[i].x) set_desc(g, op, operands[i].name, operands[i].x);
    finalize(g, op);
    assert(g->op_count < OPS);
    g->ops[g->op_count++] = op;
}

/* Add the matrix product c = a b to the graph. This function and the next functions return the
 * tensor that holds the result of the operation that they add. */
static desc matmul(graph *g, desc a, desc b, desc c)
{
    desc how = make(g, N(BACKEND_MATMUL_DESCRIPTOR), "matrix product");
    set_int(g, how, N(ATTR_MATMUL_COMP_TYPE), N(TYPE_DATA_TYPE), N(DATA_FLOAT));
    finalize(g, how);
    add_operation(g, N(BACKEND_OPERATION_MATMUL_DESCRIPTOR), "matrix product",
                  (operand[]){{N(ATTR_OPERATION_MATMUL_ADESC), a},
                              {N(ATTR_OPERATION_MATMUL_BDESC), b},
                              {N(ATTR_OPERATION_MATMUL_CDESC), c},
                              {N(ATTR_OPERATION_MATMUL_DESC), how}},
                  4);
    return c;
}

/* Add the element-wise operation y = f(x), f(x, b) or f(x, b, t) to the graph. `mode` names f. b
 * and t are NULL if f does not take them. `axis` is negative if f needs no axis. `math` is the type
 * in which f is computed. */
static desc pointwise(graph *g, int mode, int math, int64_t axis, desc x, desc b, desc t, desc y)
{
    desc how = make(g, N(BACKEND_POINTWISE_DESCRIPTOR), "pointwise operation");
    set_int(g, how, N(ATTR_POINTWISE_MODE), N(TYPE_POINTWISE_MODE), mode);
    set_int(g, how, N(ATTR_POINTWISE_MATH_PREC), N(TYPE_DATA_TYPE), math);
    if (axis >= 0) set(g, how, N(ATTR_POINTWISE_AXIS), N(TYPE_INT64), 1, &axis);
    finalize(g, how);
    add_operation(g, N(BACKEND_OPERATION_POINTWISE_DESCRIPTOR), "pointwise operation",
                  (operand[]){{N(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), how},
                              {N(ATTR_OPERATION_POINTWISE_XDESC), x},
                              {N(ATTR_OPERATION_POINTWISE_BDESC), b},
                              {N(ATTR_OPERATION_POINTWISE_TDESC), t},
                              {N(ATTR_OPERATION_POINTWISE_YDESC), y}},
                  5);
    return y;
}

static desc apply(graph *g, int mode, desc x, desc b, desc y)
{
    return pointwise(g, mode, N(DATA_FLOAT), -1, x, b, NULL, y);
}

static desc over_pairs(graph *g, int mode, desc x, desc b)
{
    return apply(g, mode, x, b, inside(g, PAIRS));
}

/* Return x reduced along each row. */
static desc reduce(graph *g, int mode, desc x)
{
    desc how = make(g, N(BACKEND_REDUCTION_DESCRIPTOR), "reduction");
    set_int(g, how, N(ATTR_REDUCTION_OPERATOR), N(TYPE_REDUCTION_OPERATOR_TYPE), mode);
    set_int(g, how, N(ATTR_REDUCTION_COMP_TYPE), N(TYPE_DATA_TYPE), N(DATA_FLOAT));
    finalize(g, how);
    desc y = inside(g, ROWS);
    add_operation(g, N(BACKEND_OPERATION_REDUCTION_DESCRIPTOR), "reduction",
                  (operand[]){{N(ATTR_OPERATION_REDUCTION_XDESC), x},
                              {N(ATTR_OPERATION_REDUCTION_YDESC), y},
                              {N(ATTR_OPERATION_REDUCTION_DESC), how}},
                  3);
    return y;
}

/* Return x with the layout of y. */
static desc reshape(graph *g, desc x, desc y)
{
    add_operation(
        g, N(BACKEND_OPERATION_RESHAPE_DESCRIPTOR), "reshape",
        (operand[]){{N(ATTR_OPERATION_RESHAPE_XDESC), x}, {N(ATTR_OPERATION_RESHAPE_YDESC), y}}, 2);
    return y;
}

/* Apply the causal mask to the scores x: return a tensor that is x where the query's index is at
 * least the key's, else -inf. */
static desc causal(graph *g, desc x)
{
    desc query = tensor(g, INSIDE, PAIRS, N(DATA_INT32)),
         key = tensor(g, INSIDE, PAIRS, N(DATA_INT32)),
         seen = tensor(g, INSIDE, PAIRS, N(DATA_BOOLEAN)), y = inside(g, PAIRS);
    pointwise(g, N(POINTWISE_GEN_INDEX), N(DATA_INT32), 3, x, NULL, NULL, key);
    pointwise(g, N(POINTWISE_GEN_INDEX), N(DATA_INT32), 2, x, NULL, NULL, query);
    pointwise(g, N(POINTWISE_CMP_GE), N(DATA_BOOLEAN), -1, query, key, NULL, seen);
    return pointwise(g, N(POINTWISE_BINARY_SELECT), N(DATA_FLOAT), -1, x, scalar(g, MASKED), seen,
                     y);
}

/* ---- the two graphs ----
 *
 * cuDNN recognizes a graph as fused attention by its operations, their types and the strides of
 * their tensors. The graphs here follow, operation for operation, those that cuDNN's own frontend
 * builds for attention with a causal mask. */

/* Describe out = softmax(causal(scale Q K')) V and lse, which is, for each row of scores, the
 * logarithm of the sum of exponentials. The probabilities are rounded to 16 bits before they are
 * multiplied by V. */
static void describe_forward(graph *g)
{
    desc q = half(g, Q, PACKED), kt = half(g, K, PACKED_TRANSPOSED), v = half(g, V, PACKED);
    desc scale = scalar(g, SCALE), x = matmul(g, q, kt, inside(g, PAIRS));
    x = causal(g, over_pairs(g, N(POINTWISE_MUL), x, scale));
    desc max = reduce(g, N(REDUCE_TENSOR_MAX), x);
    x = over_pairs(g, N(POINTWISE_EXP), over_pairs(g, N(POINTWISE_SUB), x, max), NULL);
    desc sum = reduce(g, N(REDUCE_TENSOR_ADD), x),
         log_sum = apply(g, N(POINTWISE_LOG), sum, NULL, inside(g, ROWS));
    apply(g, N(POINTWISE_ADD), max, log_sum, tensor(g, LSE, ROWS, N(DATA_FLOAT)));
    desc p = apply(g, N(POINTWISE_DIV), x, sum, half(g, INSIDE, PAIRS));
    matmul(g, p, v, half(g, O, JOINED));
}

/* Describe delta_i = dout_i.out_i. cuDNN stores delta in the caller's workspace. The graph
 * multiplies delta by a dropout factor of 1, because cuDNN recognizes only a graph with this
 * factor. */
static desc describe_delta(graph *g, desc dout)
{
    desc both = apply(g, N(POINTWISE_MUL), dout, half(g, O, JOINED), inside(g, PRODUCT));
    desc sum = reduce(g, N(REDUCE_TENSOR_ADD), both);
    return apply(g, N(POINTWISE_MUL), sum, scalar(g, KEPT), tensor(g, DELTA, ROWS, N(DATA_FLOAT)));
}

/* Describe dQ = dS K. If results must be deterministic, the graph writes dQ directly. cuDNN then
 * stores all of dS in its workspace, and computes each element of dQ as one sum in a fixed order.
 * Otherwise, the contributions of blocks of keys are added in any order to float sums (DQ_SUMS) in
 * the caller's workspace, and these sums are converted to dQ at the end. */
static void describe_dq(graph *g, desc ds, desc kt)
{
    desc k = reshape(g, kt, inside(g, PACKED)), dq = half(g, DQ, PACKED);
    if (g->o->deterministic) matmul(g, ds, k, dq);
    else
        apply(g, N(POINTWISE_IDENTITY), matmul(g, ds, k, tensor(g, DQ_SUMS, SUMS, N(DATA_FLOAT))),
              NULL, dq);
}

/* Describe the gradients. In these formulas, * multiplies element by element, and X' is the
 * transpose of X:
 *   P = exp(causal(scale Q K' - lse))
 *   dV = P' dout    dS = scale P*(dout V' - delta)    dQ = dS K    dK = dS' Q */
static void describe_backward(graph *g)
{
    desc q = half(g, Q, PACKED), kt = half(g, K, PACKED_TRANSPOSED),
         vt = half(g, V, PACKED_TRANSPOSED), dout = half(g, DO, JOINED), scale = scalar(g, SCALE);
    desc delta = describe_delta(g, dout), x = matmul(g, q, kt, inside(g, PAIRS));
    x = over_pairs(g, N(POINTWISE_MUL), x, scale);
    x = over_pairs(g, N(POINTWISE_SUB), x, tensor(g, LSE, ROWS, N(DATA_FLOAT)));
    desc p = over_pairs(g, N(POINTWISE_EXP), causal(g, x), NULL);
    matmul(g, reshape(g, p, half(g, INSIDE, PAIRS_TRANSPOSED)), dout, half(g, DV, PACKED));
    x = matmul(g, dout, vt, inside(g, PAIRS));
    x = over_pairs(g, N(POINTWISE_SUB), x, delta);
    x = over_pairs(g, N(POINTWISE_MUL), x, p);
    desc ds = over_pairs(g, N(POINTWISE_MUL), x, scale),
         dst = reshape(g, ds, half(g, INSIDE, PAIRS_TRANSPOSED));
    matmul(g, dst, q, half(g, DK, PACKED));
    describe_dq(g, ds, kt);
}

/* ---- the plan ---- */

/* Get the engine configurations that one mode of the heuristics offers, and return their number. It
 * is not an error if the mode offers none. */
static int offers(graph *g, desc operations, int mode, desc config[OFFERS])
{
    int64_t count = 0;
    desc heuristics = make(g, N(BACKEND_ENGINEHEUR_DESCRIPTOR), "heuristics");
    set_desc(g, heuristics, N(ATTR_ENGINEHEUR_OPERATION_GRAPH), operations);
    set_int(g, heuristics, N(ATTR_ENGINEHEUR_MODE), N(TYPE_HEUR_MODE), mode);
    if (g->rc < 0 || g->api->BackendFinalize(heuristics) != N(STATUS_SUCCESS)) return 0;
    for (int i = 0; i < OFFERS; i++)
        config[i] = make(g, N(BACKEND_ENGINECFG_DESCRIPTOR), "heuristics");
    if (g->rc < 0 || g->api->BackendGetAttribute(heuristics, N(ATTR_ENGINEHEUR_RESULTS),
                                                 N(TYPE_BACKEND_DESCRIPTOR), OFFERS, &count,
                                                 config) != N(STATUS_SUCCESS))
        return 0;
    return (int)(count < OFFERS ? count : OFFERS);
}

/* Return 0 if the engine declares that its results can differ from run to run, else 1. cuDNN's
 * attention engines never declare this, so none of them is rejected. Their dQ is deterministic
 * nevertheless, because describe_dq describes a graph that sums dQ in a fixed order. */
static int reproducible(graph *g, desc config)
{
    int notes[N(NUMERICAL_NOTE_TYPE_COUNT) + 16];
    int64_t count = 0, room = sizeof notes / sizeof *notes;
    desc engine = make(g, N(BACKEND_ENGINE_DESCRIPTOR), "numerical notes");
    get(g, config, N(ATTR_ENGINECFG_ENGINE), N(TYPE_BACKEND_DESCRIPTOR), 1, &count, &engine);
    get(g, engine, N(ATTR_ENGINE_NUMERICAL_NOTE), N(TYPE_NUMERICAL_NOTE), room, &count, notes);
    if (g->rc < 0) return 0;
    for (int64_t i = 0; i < count && i < room; i++)
        if (notes[i] == N(NUMERICAL_NOTE_NONDETERMINISTIC)) return 0;
    return 1;
}

/* Try to create an execution plan from an engine configuration. Return 1 on success. If the engine
 * rejects the graph, which is possible although the heuristics suggested it, return 0 with the
 * reason in *err. */
static int try_config(graph *g, desc config, sgt_error *err)
{
    int64_t count = 0, bytes = 0;
    int first = g->desc_count;
    sgt_error *kept = g->err;
    /* a configuration that fails must not set the error of the graph, because another configuration
     * may work */
    g->err = err;
    g->plan = make(g, N(BACKEND_EXECUTION_PLAN_DESCRIPTOR), "execution plan");
    set(g, g->plan, N(ATTR_EXECUTION_PLAN_HANDLE), N(TYPE_HANDLE), 1, &g->handle);
    set_desc(g, g->plan, N(ATTR_EXECUTION_PLAN_ENGINE_CONFIG), config);
    finalize(g, g->plan);
    get(g, g->plan, N(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), N(TYPE_INT64), 1, &count, &bytes);
    g->err = kept;
    g->workspace = (size_t)bytes;
    if (g->rc == SGT_OK) return 1;
    destroy(g, first);
    g->rc = SGT_OK;
    return 0;
}

/* Try the engine configurations in the order of cuDNN's heuristics, and choose the first from which
 * an execution plan can be created. If results must be deterministic, skip engines that declare
 * themselves nondeterministic. `what` names the computation in error messages. */
static int plan_graph(graph *g, const char *what)
{
    static const int modes[] = {N(HEUR_MODE_A), N(HEUR_MODE_FALLBACK)};
    desc config[OFFERS], d = make(g, N(BACKEND_OPERATIONGRAPH_DESCRIPTOR), "operation graph");
    sgt_error last = {.text = "none can be used"};
    int found = 0, offered = 0;
    set(g, d, N(ATTR_OPERATIONGRAPH_OPS), N(TYPE_BACKEND_DESCRIPTOR), g->op_count, g->ops);
    set(g, d, N(ATTR_OPERATIONGRAPH_HANDLE), N(TYPE_HANDLE), 1, &g->handle);
    finalize(g, d);
    for (size_t m = 0; m < sizeof modes / sizeof *modes && !found && g->rc == SGT_OK; m++) {
        int n = offers(g, d, modes[m], config);
        for (int i = 0; i < n && !found; i++) {
            if (g->o->deterministic && !reproducible(g, config[i])) continue;
            offered++;
            found = try_config(g, config[i], &last);
        }
    }
    if (g->rc == SGT_OK && !found)
        g->rc = sgt_fail(g->err, SGT_EUNSUPPORTED,
                         "cuDNN: no execution plan for %s (%d engine configurations offered; %s)",
                         what, offered, last.text);
    return g->rc;
}

/* ---- options ---- */

static int check_options(const sgt_cudnn_attention_options *o, sgt_error *err)
{
    if (o->type != SGT_BF16 && o->type != SGT_F16)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "cuDNN: fused attention needs bf16 or fp16, not fp32");
    if (o->D % 8 || o->D > 128)
        return sgt_fail(
            err, SGT_EUNSUPPORTED,
            "cuDNN: fused attention needs a head size that is a multiple of 8, up to 128, not %zu",
            o->D);
    if (o->T < 2)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "cuDNN: fused attention needs at least 2 tokens in a row, not 1");
    return SGT_OK;
}

/* Reject options for which this version of cuDNN computes wrong results. */
static int check_version(const sgt_cudnn *api, const sgt_cudnn_attention_options *o, sgt_error *err)
{
    if (api->version <= 91500 && o->T % 128)
        return sgt_fail(err, SGT_EUNSUPPORTED,
                        "%s: fused attention needs a multiple of 128 tokens in a row, not %zu "
                        "(cuDNN 9.15.1 takes any)",
                        api->title, o->T);
    return SGT_OK;
}

static int plan_both(sgt_cudnn_attention *a, sgt_error *err)
{
    const sgt_cudnn_attention_options *o = &a->o;
    char what[128];
    int rc = check_version(a->api, o, err);
    if (rc < 0) return rc;
    for (int i = 0; i < 2; i++) {
        graph *g = i ? &a->backward : &a->forward;
        *g = (graph){.o = o, .api = a->api, .handle = a->handle, .last_uid = VIRTUAL, .err = err};
        (i ? describe_backward : describe_forward)(g);
        snprintf(what, sizeof what, "attention %s: %s, head size %zu, B %zu, T %zu, H %zu%s",
                 i ? "backward" : "forward", o->type == SGT_BF16 ? "bf16" : "fp16", o->D, o->B,
                 o->T, o->H, o->deterministic ? ", deterministic" : "");
        rc = plan_graph(g, what);
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
    destroy(&a->forward, 0);
    destroy(&a->backward, 0);
    if (a->handle) a->api->Destroy(a->handle);
    free(a);
}

/* ---- workspace: the backward pass's delta and sums of dQ, then the engine's own memory ---- */

static size_t round_up(size_t n) { return (n + 255) / 256 * 256; }

static size_t delta_bytes(const sgt_cudnn_attention_options *o)
{
    return round_up(o->B * o->H * o->T * sizeof(float));
}

static size_t dq_bytes(const sgt_cudnn_attention_options *o)
{
    return o->deterministic ? 0 : round_up(o->B * o->H * o->T * o->D * sizeof(float));
}

const char *sgt_cudnn_attention_library(const sgt_cudnn_attention *a) { return a->api->title; }

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
    /* The cast is safe, because cuDNN does not write to a graph's inputs. Its interface has no
     * const pointers. */
    p->at[p->count++] = (void *)at;
}

static void put_common(pack *p, sgt_cudnn_attention *a, const void *qkv, const void *out,
                       const float *lse)
{
    size_t third = a->o.H * a->o.D * 2; /* bytes from q to k, and from k to v */
    put(p, Q, qkv);
    put(p, K, (const char *)qkv + third);
    put(p, V, (const char *)qkv + 2 * third);
    put(p, O, out);
    put(p, LSE, lse);
    put(p, SCALE, &a->scale);
    put(p, MASKED, &a->masked);
}

static int execute(sgt_cudnn_attention *a, desc d, sgt_cuda_stream s, const graph *g, const pack *p,
                   void *workspace)
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
    if (!status) status = api->BackendExecute(a->handle, g->plan, d);
    return status;
}

/* Run a plan. The addresses of a run's tensors are in a descriptor, the variant pack. Create a new
 * variant pack for each run, because a finalized variant pack cannot be changed. This takes 0.3 us
 * and no device memory. */
static void run(sgt_cudnn_attention *a, const char *what, sgt_cuda_stream s, const graph *g,
                const pack *p, void *workspace)
{
    desc d = NULL;
    if (a->failed.code) return;
    int status = a->api->BackendCreateDescriptor(N(BACKEND_VARIANT_PACK_DESCRIPTOR), &d);
    if (!status) {
        status = execute(a, d, s, g, p, workspace);
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
    put_common(&p, a, qkv, out, lse);
    run(a, "attention forward", s, &a->forward, &p, workspace);
}

void sgt_cudnn_attention_clear(const sgt_cudnn_attention *a, sgt_cuda_stream s, void *workspace)
{
    sgt_cuda_zero(s, (char *)workspace + delta_bytes(&a->o), dq_bytes(&a->o));
}

void sgt_cudnn_attention_backward(sgt_cudnn_attention *a, sgt_cuda_stream s, void *dqkv,
                                  const void *dout, const void *out, const float *lse,
                                  const void *qkv, void *workspace)
{
    size_t third = a->o.H * a->o.D * 2;
    char *sums = workspace;
    pack p = {.count = 0};
    put_common(&p, a, qkv, out, lse);
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
