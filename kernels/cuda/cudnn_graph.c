/* cudnn_graph.c: creates descriptors of tensors and operations, and chooses a plan. */
#include "kernels/cuda/cudnn_graph.h"

#include <string.h>

#define N(name) SGT_CUDNN_##name

enum { OFFERS = 32 }; /* maximum number of engine configurations tried per heuristics mode */

static int ok(sgt_cudnn_graph *g, int status, const char *what)
{
    if (g->rc == SGT_OK && status != N(STATUS_SUCCESS))
        g->rc = sgt_cudnn_check(g->api, status, what, g->err);
    return g->rc == SGT_OK;
}

static sgt_cudnn_desc make(sgt_cudnn_graph *g, int type, const char *what)
{
    sgt_cudnn_desc d = NULL;
    if (g->rc < 0) return NULL;
    if (g->desc_count == SGT_CUDNN_DESCS) {
        g->rc = sgt_fail(g->err, SGT_EUNSUPPORTED, "cuDNN: %s: the graph has too many parts", what);
        return NULL;
    }
    if (ok(g, g->api->BackendCreateDescriptor(type, &d), what)) g->descs[g->desc_count++] = d;
    return d;
}

static void set(sgt_cudnn_graph *g, sgt_cudnn_desc d, int name, int type, int64_t count,
                const void *values, const char *what)
{
    if (g->rc == SGT_OK) ok(g, g->api->BackendSetAttribute(d, name, type, count, values), what);
}

static void get(sgt_cudnn_graph *g, sgt_cudnn_desc d, int name, int type, int64_t room,
                int64_t *count, void *values, const char *what)
{
    if (g->rc == SGT_OK)
        ok(g, g->api->BackendGetAttribute(d, name, type, room, count, values), what);
}

static void set_desc(sgt_cudnn_graph *g, sgt_cudnn_desc d, int name, sgt_cudnn_desc value,
                     const char *what)
{
    set(g, d, name, N(TYPE_BACKEND_DESCRIPTOR), 1, &value, what);
}

static void set_int(sgt_cudnn_graph *g, sgt_cudnn_desc d, int name, int type, int value,
                    const char *what)
{
    set(g, d, name, type, 1, &value, what);
}

static void finalize(sgt_cudnn_graph *g, sgt_cudnn_desc d, const char *what)
{
    if (g->rc == SGT_OK) ok(g, g->api->BackendFinalize(d), what);
}

void sgt_cudnn_graph_init(sgt_cudnn_graph *g, const sgt_cudnn *api, sgt_cudnn_handle handle,
                          sgt_error *err)
{
    memset(g, 0, sizeof *g);
    g->api = api;
    g->handle = handle;
    g->err = err;
    g->last_uid = 1000; /* the caller's uids are 1000 or less */
}

void sgt_cudnn_graph_clear(sgt_cudnn_graph *g)
{
    /* destroy descriptors before those that they refer to */
    while (g->desc_count) g->api->BackendDestroyDescriptor(g->descs[--g->desc_count]);
    memset(g, 0, sizeof *g);
}

sgt_cudnn_desc sgt_cudnn_tensor(sgt_cudnn_graph *g, const sgt_cudnn_place *p)
{
    static const char what[] = "tensor";
    sgt_cudnn_desc d = make(g, N(BACKEND_TENSOR_DESCRIPTOR), what);
    int64_t align = 16, uid = p->kind == SGT_CUDNN_VIRTUAL ? ++g->last_uid : p->uid;
    _Bool yes = 1;
    set_int(g, d, N(ATTR_TENSOR_DATA_TYPE), N(TYPE_DATA_TYPE), p->type, what);
    set(g, d, N(ATTR_TENSOR_DIMENSIONS), N(TYPE_INT64), 4, p->dim, what);
    set(g, d, N(ATTR_TENSOR_STRIDES), N(TYPE_INT64), 4, p->stride, what);
    set(g, d, N(ATTR_TENSOR_UNIQUE_ID), N(TYPE_INT64), 1, &uid, what);
    set(g, d, N(ATTR_TENSOR_BYTE_ALIGNMENT), N(TYPE_INT64), 1, &align, what);
    if (p->kind == SGT_CUDNN_VIRTUAL)
        set(g, d, N(ATTR_TENSOR_IS_VIRTUAL), N(TYPE_BOOLEAN), 1, &yes, what);
    if (p->kind == SGT_CUDNN_SCALAR)
        set(g, d, N(ATTR_TENSOR_IS_BY_VALUE), N(TYPE_BOOLEAN), 1, &yes, what);
    if (p->reordering)
        set_int(g, d, N(ATTR_TENSOR_REORDERING_MODE), N(TYPE_TENSOR_REORDERING_MODE), p->reordering,
                what);
    finalize(g, d, what);
    return d;
}

/* ---- operations: one descriptor for the function, another for its operands ---- */

static void add(sgt_cudnn_graph *g, sgt_cudnn_desc op, const char *what)
{
    finalize(g, op, what);
    if (g->rc < 0) return;
    if (g->op_count < SGT_CUDNN_OPS) g->ops[g->op_count++] = op;
    else
        g->rc = sgt_fail(g->err, SGT_EUNSUPPORTED, "cuDNN: %s: the graph has too many operations",
                         what);
}

void sgt_cudnn_matmul(sgt_cudnn_graph *g, sgt_cudnn_desc a, sgt_cudnn_desc b, sgt_cudnn_desc c)
{
    static const char what[] = "matrix product";
    sgt_cudnn_desc how = make(g, N(BACKEND_MATMUL_DESCRIPTOR), what);
    set_int(g, how, N(ATTR_MATMUL_COMP_TYPE), N(TYPE_DATA_TYPE), N(DATA_FLOAT), what);
    finalize(g, how, what);
    sgt_cudnn_desc op = make(g, N(BACKEND_OPERATION_MATMUL_DESCRIPTOR), what);
    set_desc(g, op, N(ATTR_OPERATION_MATMUL_ADESC), a, what);
    set_desc(g, op, N(ATTR_OPERATION_MATMUL_BDESC), b, what);
    set_desc(g, op, N(ATTR_OPERATION_MATMUL_CDESC), c, what);
    set_desc(g, op, N(ATTR_OPERATION_MATMUL_DESC), how, what);
    add(g, op, what);
}

/* Add the operation y = f(x), f(x, b) or f(x, b, t). b and t may be NULL; a negative axis means
 * none. `math` is the type of the arithmetic. */
static void pointwise(sgt_cudnn_graph *g, int mode, int math, int64_t axis, sgt_cudnn_desc x,
                      sgt_cudnn_desc b, sgt_cudnn_desc t, sgt_cudnn_desc y)
{
    static const char what[] = "pointwise operation";
    sgt_cudnn_desc how = make(g, N(BACKEND_POINTWISE_DESCRIPTOR), what);
    set_int(g, how, N(ATTR_POINTWISE_MODE), N(TYPE_POINTWISE_MODE), mode, what);
    set_int(g, how, N(ATTR_POINTWISE_MATH_PREC), N(TYPE_DATA_TYPE), math, what);
    if (axis >= 0) set(g, how, N(ATTR_POINTWISE_AXIS), N(TYPE_INT64), 1, &axis, what);
    finalize(g, how, what);
    sgt_cudnn_desc op = make(g, N(BACKEND_OPERATION_POINTWISE_DESCRIPTOR), what);
    set_desc(g, op, N(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), how, what);
    set_desc(g, op, N(ATTR_OPERATION_POINTWISE_XDESC), x, what);
    if (b) set_desc(g, op, N(ATTR_OPERATION_POINTWISE_BDESC), b, what);
    if (t) set_desc(g, op, N(ATTR_OPERATION_POINTWISE_TDESC), t, what);
    set_desc(g, op, N(ATTR_OPERATION_POINTWISE_YDESC), y, what);
    add(g, op, what);
}

void sgt_cudnn_unary(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc y)
{
    pointwise(g, mode, N(DATA_FLOAT), -1, x, NULL, NULL, y);
}

void sgt_cudnn_binary(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc b,
                      sgt_cudnn_desc y)
{
    pointwise(g, mode, N(DATA_FLOAT), -1, x, b, NULL, y);
}

void sgt_cudnn_index(sgt_cudnn_graph *g, int64_t axis, sgt_cudnn_desc x, sgt_cudnn_desc y)
{
    pointwise(g, N(POINTWISE_GEN_INDEX), N(DATA_INT32), axis, x, NULL, NULL, y);
}

void sgt_cudnn_compare(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc b,
                       sgt_cudnn_desc y)
{
    pointwise(g, mode, N(DATA_BOOLEAN), -1, x, b, NULL, y);
}

void sgt_cudnn_select(sgt_cudnn_graph *g, sgt_cudnn_desc x, sgt_cudnn_desc b, sgt_cudnn_desc where,
                      sgt_cudnn_desc y)
{
    pointwise(g, N(POINTWISE_BINARY_SELECT), N(DATA_FLOAT), -1, x, b, where, y);
}

void sgt_cudnn_reduce(sgt_cudnn_graph *g, int mode, sgt_cudnn_desc x, sgt_cudnn_desc y)
{
    static const char what[] = "reduction";
    sgt_cudnn_desc how = make(g, N(BACKEND_REDUCTION_DESCRIPTOR), what);
    set_int(g, how, N(ATTR_REDUCTION_OPERATOR), N(TYPE_REDUCTION_OPERATOR_TYPE), mode, what);
    set_int(g, how, N(ATTR_REDUCTION_COMP_TYPE), N(TYPE_DATA_TYPE), N(DATA_FLOAT), what);
    finalize(g, how, what);
    sgt_cudnn_desc op = make(g, N(BACKEND_OPERATION_REDUCTION_DESCRIPTOR), what);
    set_desc(g, op, N(ATTR_OPERATION_REDUCTION_XDESC), x, what);
    set_desc(g, op, N(ATTR_OPERATION_REDUCTION_YDESC), y, what);
    set_desc(g, op, N(ATTR_OPERATION_REDUCTION_DESC), how, what);
    add(g, op, what);
}

void sgt_cudnn_reshape(sgt_cudnn_graph *g, sgt_cudnn_desc x, sgt_cudnn_desc y)
{
    static const char what[] = "reshape";
    sgt_cudnn_desc op = make(g, N(BACKEND_OPERATION_RESHAPE_DESCRIPTOR), what);
    set_desc(g, op, N(ATTR_OPERATION_RESHAPE_XDESC), x, what);
    set_desc(g, op, N(ATTR_OPERATION_RESHAPE_YDESC), y, what);
    add(g, op, what);
}

/* ---- the plan ---- */

/* Get the engine configurations that one mode of the heuristics offers, and return their number. A
 * mode may offer none; that is not an error. */
static int offers(sgt_cudnn_graph *g, sgt_cudnn_desc graph, int mode, sgt_cudnn_desc config[OFFERS])
{
    static const char what[] = "heuristics";
    int64_t count = 0;
    sgt_cudnn_desc heuristics = make(g, N(BACKEND_ENGINEHEUR_DESCRIPTOR), what);
    set_desc(g, heuristics, N(ATTR_ENGINEHEUR_OPERATION_GRAPH), graph, what);
    set_int(g, heuristics, N(ATTR_ENGINEHEUR_MODE), N(TYPE_HEUR_MODE), mode, what);
    if (g->rc < 0 || g->api->BackendFinalize(heuristics) != N(STATUS_SUCCESS)) return 0;
    for (int i = 0; i < OFFERS; i++) config[i] = make(g, N(BACKEND_ENGINECFG_DESCRIPTOR), what);
    if (g->rc < 0 || g->api->BackendGetAttribute(heuristics, N(ATTR_ENGINEHEUR_RESULTS),
                                                 N(TYPE_BACKEND_DESCRIPTOR), OFFERS, &count,
                                                 config) != N(STATUS_SUCCESS))
        return 0;
    return (int)(count < OFFERS ? count : OFFERS);
}

/* Return whether an engine gives the same bits each time, that is, does not declare itself
 * nondeterministic. Attention's engines never declare themselves nondeterministic. If deterministic
 * results are requested, the graph describes dQ so that they sum in a fixed order. */
static int reproducible(sgt_cudnn_graph *g, sgt_cudnn_desc config)
{
    static const char what[] = "numerical notes";
    int notes[N(NUMERICAL_NOTE_TYPE_COUNT) + 16];
    int64_t count = 0, room = sizeof notes / sizeof *notes;
    sgt_cudnn_desc engine = make(g, N(BACKEND_ENGINE_DESCRIPTOR), what);
    get(g, config, N(ATTR_ENGINECFG_ENGINE), N(TYPE_BACKEND_DESCRIPTOR), 1, &count, &engine, what);
    get(g, engine, N(ATTR_ENGINE_NUMERICAL_NOTE), N(TYPE_NUMERICAL_NOTE), room, &count, notes,
        what);
    if (g->rc < 0) return 0;
    for (int64_t i = 0; i < count && i < room; i++)
        if (notes[i] == N(NUMERICAL_NOTE_NONDETERMINISTIC)) return 0;
    return 1;
}

/* Try to create a plan from a configuration. Return 0 if its engine cannot run the graph after all,
 * with the reason in *err. */
static int try_config(sgt_cudnn_graph *g, sgt_cudnn_desc config, sgt_cudnn_plan *p, sgt_error *err)
{
    static const char what[] = "execution plan";
    int64_t count = 0, bytes = 0;
    int first = g->desc_count;
    sgt_error *kept = g->err;
    g->err = err; /* if a configuration fails, the graph has not failed */
    sgt_cudnn_desc plan = make(g, N(BACKEND_EXECUTION_PLAN_DESCRIPTOR), what);
    set(g, plan, N(ATTR_EXECUTION_PLAN_HANDLE), N(TYPE_HANDLE), 1, &g->handle, what);
    set_desc(g, plan, N(ATTR_EXECUTION_PLAN_ENGINE_CONFIG), config, what);
    finalize(g, plan, what);
    get(g, plan, N(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), N(TYPE_INT64), 1, &count, &bytes, what);
    g->err = kept;
    if (g->rc == SGT_OK) {
        p->plan = plan;
        p->workspace = (size_t)bytes;
        return 1;
    }
    while (g->desc_count > first) g->api->BackendDestroyDescriptor(g->descs[--g->desc_count]);
    g->rc = SGT_OK;
    return 0;
}

static sgt_cudnn_desc operation_graph(sgt_cudnn_graph *g)
{
    static const char what[] = "operation graph";
    sgt_cudnn_desc d = make(g, N(BACKEND_OPERATIONGRAPH_DESCRIPTOR), what);
    set(g, d, N(ATTR_OPERATIONGRAPH_OPS), N(TYPE_BACKEND_DESCRIPTOR), g->op_count, g->ops, what);
    set(g, d, N(ATTR_OPERATIONGRAPH_HANDLE), N(TYPE_HANDLE), 1, &g->handle, what);
    finalize(g, d, what);
    return d;
}

int sgt_cudnn_graph_plan(sgt_cudnn_graph *g, const char *what, int deterministic, sgt_cudnn_plan *p)
{
    static const int modes[] = {N(HEUR_MODE_A), N(HEUR_MODE_FALLBACK)};
    sgt_cudnn_desc config[OFFERS];
    sgt_error last = {.text = "none that serves"};
    int found = 0, offered = 0;
    memset(p, 0, sizeof *p);
    sgt_cudnn_desc graph = operation_graph(g);
    for (size_t m = 0; m < sizeof modes / sizeof *modes && !found && g->rc == SGT_OK; m++) {
        int n = offers(g, graph, modes[m], config);
        for (int i = 0; i < n; i++) {
            if (deterministic && !reproducible(g, config[i])) continue;
            offered++;
            if (!found) found = try_config(g, config[i], p, &last);
        }
    }
    if (g->rc == SGT_OK && !found)
        g->rc = sgt_fail(g->err, SGT_EUNSUPPORTED,
                         "cuDNN: no execution plan for %s (%d engine configurations offered; %s)",
                         what, offered, last.text);
    return g->rc;
}
