/* stand_in.c: see stand_in.h. Tensors inside the graph are arrays of doubles, rounded when they are
 * written if their type has 16 bits. Each operation reads its tensors in memory when it runs, and
 * writes its results at once. */
#include "tests/kernels/cudnn/stand_in.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cudnn.h"
#include "tests/kernels/cudnn/sixteen.h"

#define N(name) SGT_CUDNN_##name
enum { BAD = 2000, UNSUPPORTED = 3000, FAILED = 5000, ATTRIBUTES = 16 };

stand_in_control stand_in = {.version = 91900, .configs = 2, .workspace = 1000};

typedef struct attribute {
    int name, type;
    int64_t count;
    void *bytes;
} attribute;

typedef struct desc {
    int type, finalized, count, index; /* index: of a configuration */
    attribute a[ATTRIBUTES];
    struct desc *graph; /* for heuristics, configurations and plans */
} desc;

typedef struct context {
    void *stream;
} context;

static int refuse(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(stand_in.refusal, sizeof stand_in.refusal, fmt, ap);
    va_end(ap);
    return status;
}

/* ---- descriptors ---- */

static size_t size_of(int type)
{
    if (type == N(TYPE_BOOLEAN) || type == N(TYPE_CHAR)) return 1;
    if (type == N(TYPE_INT64) || type == N(TYPE_VOID_PTR) || type == N(TYPE_BACKEND_DESCRIPTOR) ||
        type == N(TYPE_HANDLE))
        return 8;
    return 4; /* enumerations */
}

static const attribute *find(const desc *d, int name)
{
    for (int i = 0; d && i < d->count; i++)
        if (d->a[i].name == name) return &d->a[i];
    return NULL;
}

static desc *part(const desc *d, int name)
{
    const attribute *a = find(d, name);
    return a ? *(desc **)a->bytes : NULL;
}

static int64_t number(const desc *d, int name)
{
    const attribute *a = find(d, name);
    if (!a) return -1;
    if (size_of(a->type) == 1) return *(uint8_t *)a->bytes;
    return size_of(a->type) == 8 ? *(int64_t *)a->bytes : *(int *)a->bytes;
}

static const int64_t *numbers(const desc *d, int name)
{
    const attribute *a = find(d, name);
    return a ? a->bytes : NULL;
}

#define DECLARE(result, name, arguments) result cudnn##name arguments;
SGT_CUDNN_FUNCTIONS(DECLARE)

size_t cudnnGetVersion(void) { return stand_in.version; }
const char *cudnnGetErrorString(int status)
{
    return status == BAD ? "STAND_IN_BAD_PARAM" : "STAND_IN_FAILED";
}
void cudnnGetLastErrorString(char *text, size_t size)
{
    snprintf(text, size, "%s\nand more", stand_in.refusal);
}

int cudnnCreate(sgt_cudnn_handle *handle)
{
    if (stand_in.create_fails) return refuse(1001, "no device");
    *handle = calloc(1, sizeof(context));
    stand_in.live++;
    return 0;
}

int cudnnDestroy(sgt_cudnn_handle handle)
{
    free(handle);
    stand_in.live--;
    return 0;
}

int cudnnSetStream(sgt_cudnn_handle handle, sgt_cuda_stream stream)
{
    ((context *)(void *)handle)->stream = stream;
    return 0;
}

int cudnnBackendCreateDescriptor(int type, sgt_cudnn_desc *out)
{
    desc *d = calloc(1, sizeof *d);
    d->type = type;
    *out = d;
    stand_in.live++;
    return 0;
}

int cudnnBackendDestroyDescriptor(sgt_cudnn_desc gone)
{
    desc *d = gone;
    for (int i = 0; i < d->count; i++) free(d->a[i].bytes);
    free(d);
    stand_in.live--;
    return 0;
}

int cudnnBackendSetAttribute(sgt_cudnn_desc to, int name, int type, int64_t count,
                             const void *values)
{
    desc *d = to;
    if (d->finalized) return refuse(BAD, "attribute %d of a finalized descriptor", name);
    if (d->count == ATTRIBUTES || find(d, name))
        return refuse(BAD, "attribute %d twice, or too many", name);
    if (count < 1 || !values) return refuse(BAD, "attribute %d of nothing", name);
    for (int64_t i = 0; type == N(TYPE_BACKEND_DESCRIPTOR) && i < count; i++)
        if (!((desc *const *)values)[i] || !((desc *const *)values)[i]->finalized)
            return refuse(BAD, "attribute %d is a descriptor that is not finalized", name);
    attribute *a = &d->a[d->count++];
    *a = (attribute){name, type, count, malloc((size_t)count * size_of(type))};
    memcpy(a->bytes, values, (size_t)count * size_of(type));
    return 0;
}

static int has(const desc *d, int count, const int *names)
{
    for (int i = 0; i < count; i++)
        if (!find(d, names[i]))
            return refuse(BAD, "descriptor %d without attribute %d", d->type, names[i]);
    return 0;
}

int cudnnBackendFinalize(sgt_cudnn_desc which)
{
    desc *d = which;
    static const int tensor[] = {N(ATTR_TENSOR_BYTE_ALIGNMENT), N(ATTR_TENSOR_DATA_TYPE),
                                 N(ATTR_TENSOR_DIMENSIONS), N(ATTR_TENSOR_STRIDES),
                                 N(ATTR_TENSOR_UNIQUE_ID)};
    if (d->finalized) return refuse(BAD, "finalized twice");
    if (d->type == N(BACKEND_TENSOR_DESCRIPTOR) && has(d, 5, tensor)) return BAD;
    if (d->type == N(BACKEND_ENGINEHEUR_DESCRIPTOR))
        d->graph = part(d, N(ATTR_ENGINEHEUR_OPERATION_GRAPH));
    if (d->type == N(BACKEND_EXECUTION_PLAN_DESCRIPTOR)) {
        desc *config = part(d, N(ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
        if (config->index < stand_in.refused)
            return refuse(UNSUPPORTED, "engine %d cannot", config->index);
        d->graph = config->graph;
    }
    d->finalized = 1;
    return 0;
}

int cudnnBackendGetAttribute(sgt_cudnn_desc of, int name, int type, int64_t room, int64_t *count,
                             void *values)
{
    desc *d = of;
    *count = 1;
    if (!d->finalized) return refuse(BAD, "attribute %d of what is not finalized", name);
    if (name == N(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) || name == N(ATTR_ENGINECFG_WORKSPACE_SIZE)) {
        *(int64_t *)values = (int64_t)stand_in.workspace;
    } else if (name == N(ATTR_ENGINE_NUMERICAL_NOTE)) {
        *count = d->index < stand_in.flagged;
        if (*count && room) *(int *)values = N(NUMERICAL_NOTE_NONDETERMINISTIC);
    } else if (name == N(ATTR_ENGINECFG_ENGINE)) {
        desc *engine = *(desc **)values;
        engine->finalized = 1;
        engine->index = d->index;
    } else if (name == N(ATTR_ENGINEHEUR_RESULTS) && type == N(TYPE_BACKEND_DESCRIPTOR)) {
        int n = number(d, N(ATTR_ENGINEHEUR_MODE)) == N(HEUR_MODE_A) ? stand_in.configs : 0;
        for (*count = 0; *count < n && *count < room; ++*count) {
            desc *config = ((desc **)values)[*count];
            config->finalized = 1;
            config->graph = d->graph;
            config->index = (int)*count;
        }
        *count = n;
    } else {
        return refuse(BAD, "attribute %d is not to be read", name);
    }
    return 0;
}

/* ---- a run ---- */

typedef struct value {
    const desc *tensor;
    int64_t uid, dim[4], stride[4], count;
    int type, inside, made;
    void *at;
    double *x; /* dense, by dim */
} value;

typedef struct machine {
    value v[64];
    int count, status;
} machine;

static int64_t offset_of(const value *v, int64_t i)
{
    int64_t at = 0;
    for (int k = 3; k >= 0; k--) {
        at += i % v->dim[k] * v->stride[k];
        i /= v->dim[k];
    }
    return at;
}

static double load(const value *v, int64_t at)
{
    if (v->type == N(DATA_FLOAT)) return ((const float *)v->at)[at];
    return sixteen_to_float(((const uint16_t *)v->at)[at], v->type == N(DATA_BFLOAT16));
}

/* Round x as a tensor inside the graph does: P and dS have 16 bits if a product reads them. */
static double rounded(const value *v, double x)
{
    if (v->type == N(DATA_BFLOAT16) || v->type == N(DATA_HALF))
        return sixteen_to_float(float_to_sixteen((float)x, v->type == N(DATA_BFLOAT16)),
                                v->type == N(DATA_BFLOAT16));
    return x;
}

static void store(const value *v, int64_t at, double x)
{
    if (v->type == N(DATA_FLOAT)) ((float *)v->at)[at] = (float)x;
    else ((uint16_t *)v->at)[at] = float_to_sixteen((float)x, v->type == N(DATA_BFLOAT16));
}

static value *value_of(machine *m, const desc *tensor)
{
    int64_t uid = number(tensor, N(ATTR_TENSOR_UNIQUE_ID));
    for (int i = 0; i < m->count; i++)
        if (m->v[i].uid == uid) return &m->v[i];
    value *v = &m->v[m->count++];
    *v = (value){.tensor = tensor,
                 .uid = uid,
                 .count = 1,
                 .type = (int)number(tensor, N(ATTR_TENSOR_DATA_TYPE))};
    v->inside = number(tensor, N(ATTR_TENSOR_IS_VIRTUAL)) == 1;
    memcpy(v->dim, numbers(tensor, N(ATTR_TENSOR_DIMENSIONS)), sizeof v->dim);
    memcpy(v->stride, numbers(tensor, N(ATTR_TENSOR_STRIDES)), sizeof v->stride);
    for (int k = 0; k < 4; k++) v->count *= v->dim[k];
    v->x = malloc((size_t)v->count * sizeof *v->x);
    return v;
}

/* Return an operation's input. A tensor in memory is read anew each time, because it may have been
 * overwritten. */
static value *input(machine *m, const desc *op, int name)
{
    value *v = value_of(m, part(op, name));
    if (v->inside ? !v->made : !v->at)
        m->status = refuse(BAD, "tensor %d is read before it is there", (int)v->uid);
    else if (!v->inside)
        for (int64_t i = 0; i < v->count; i++) v->x[i] = load(v, offset_of(v, i));
    return v;
}

static value *output(machine *m, const desc *op, int name)
{
    value *v = value_of(m, part(op, name));
    if (v->made) m->status = refuse(BAD, "tensor %d is made twice", (int)v->uid);
    if (!v->at && !v->inside) m->status = refuse(BAD, "tensor %d has no place", (int)v->uid);
    return v;
}

static void done(value *v)
{
    for (int64_t i = 0; i < v->count; i++) {
        if (v->inside) v->x[i] = rounded(v, v->x[i]);
        else store(v, offset_of(v, i), v->x[i]);
    }
    v->made = 1;
}

/* Return the element of x at y's element i. Dimensions of 1 in x are broadcast to those of y. */
static double broadcast(const value *x, const value *y, int64_t i)
{
    int64_t at = 0, scale = 1;
    for (int k = 3; k >= 0; k--) {
        if (x->dim[k] > 1) at += i % y->dim[k] * scale;
        scale *= x->dim[k];
        i /= y->dim[k];
    }
    return x->x[at];
}

static int broadcasts(const value *x, const value *y)
{
    for (int k = 0; k < 4; k++)
        if (x->dim[k] != 1 && x->dim[k] != y->dim[k]) return 0;
    return 1;
}

static void matmul(machine *m, const desc *op)
{
    const value *a = input(m, op, N(ATTR_OPERATION_MATMUL_ADESC)),
                *b = input(m, op, N(ATTR_OPERATION_MATMUL_BDESC));
    value *c = output(m, op, N(ATTR_OPERATION_MATMUL_CDESC));
    int64_t rows = c->dim[2], cols = c->dim[3], inner = a->dim[3];
    if (a->dim[2] != rows || b->dim[3] != cols || b->dim[2] != inner || a->dim[0] != c->dim[0] ||
        b->dim[0] != c->dim[0] || a->dim[1] != c->dim[1] || b->dim[1] != c->dim[1])
        m->status =
            refuse(UNSUPPORTED, "product of tensors %d and %d: shapes", (int)a->uid, (int)b->uid);
    if (m->status) return;
    /* Sums in memory: parts are added in any order, to zeros, or to the present contents if the
     * engine does not clear them. */
    int adds = !c->inside && c->type == N(DATA_FLOAT) ? stand_in.adds : 0;
    for (int64_t i = 0; i < c->count; i++) {
        int64_t head = i / (rows * cols), row = i / cols % rows, col = i % cols;
        int add = adds == 1 || (adds == 2 && i == c->count - 1);
        double sum = add ? load(c, offset_of(c, i)) : adds == 3 ? (double)NAN : 0;
        for (int64_t k = 0; k < inner; k++)
            sum += a->x[(head * rows + row) * inner + k] * b->x[(head * inner + k) * cols + col];
        c->x[i] = sum;
    }
    done(c);
}

static double index_along(const value *y, int axis, int64_t i)
{
    for (int k = 3; k > axis; k--) i /= y->dim[k];
    return (double)(i % y->dim[axis]);
}

static void pointwise(machine *m, const desc *op)
{
    const desc *how = part(op, N(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR));
    int mode = (int)number(how, N(ATTR_POINTWISE_MODE)),
        axis = (int)number(how, N(ATTR_POINTWISE_AXIS));
    const value *x = input(m, op, N(ATTR_OPERATION_POINTWISE_XDESC));
    const value *b = find(op, N(ATTR_OPERATION_POINTWISE_BDESC))
                         ? input(m, op, N(ATTR_OPERATION_POINTWISE_BDESC))
                         : x;
    const value *t = find(op, N(ATTR_OPERATION_POINTWISE_TDESC))
                         ? input(m, op, N(ATTR_OPERATION_POINTWISE_TDESC))
                         : x;
    value *y = output(m, op, N(ATTR_OPERATION_POINTWISE_YDESC));
    if (!broadcasts(x, y) || !broadcasts(b, y) || !broadcasts(t, y))
        m->status = refuse(UNSUPPORTED, "pointwise on tensor %d: shapes", (int)x->uid);
    if (m->status) return;
    for (int64_t i = 0; i < y->count; i++) {
        double p = broadcast(x, y, i), q = broadcast(b, y, i);
        switch (mode) {
        case N(POINTWISE_ADD): y->x[i] = p + q; break;
        case N(POINTWISE_SUB): y->x[i] = p - q; break;
        case N(POINTWISE_MUL): y->x[i] = p * q; break;
        case N(POINTWISE_DIV): y->x[i] = p / q; break;
        case N(POINTWISE_EXP): y->x[i] = exp(p); break;
        case N(POINTWISE_LOG): y->x[i] = log(p); break;
        case N(POINTWISE_IDENTITY): y->x[i] = p; break;
        case N(POINTWISE_CMP_GE): y->x[i] = p >= q; break;
        case N(POINTWISE_GEN_INDEX): y->x[i] = index_along(y, axis, i); break;
        case N(POINTWISE_BINARY_SELECT): y->x[i] = broadcast(t, y, i) != 0 ? p : q; break;
        default: m->status = refuse(UNSUPPORTED, "pointwise mode %d", mode); return;
        }
    }
    done(y);
}

static void reduction(machine *m, const desc *op)
{
    int max = number(part(op, N(ATTR_OPERATION_REDUCTION_DESC)), N(ATTR_REDUCTION_OPERATOR)) ==
              N(REDUCE_TENSOR_MAX);
    const value *x = input(m, op, N(ATTR_OPERATION_REDUCTION_XDESC));
    value *y = output(m, op, N(ATTR_OPERATION_REDUCTION_YDESC));
    if (y->dim[3] != 1 || y->count * x->dim[3] != x->count)
        m->status = refuse(UNSUPPORTED, "reduction of tensor %d: shapes", (int)x->uid);
    if (m->status) return;
    for (int64_t i = 0; i < y->count; i++) {
        y->x[i] = max ? -INFINITY : 0;
        for (int64_t k = 0; k < x->dim[3]; k++) {
            double p = x->x[i * x->dim[3] + k];
            y->x[i] = max ? fmax(y->x[i], p) : y->x[i] + p;
        }
    }
    done(y);
}

/* Give the memory other strides. Here this always transposes the last two dimensions. */
static void reshape(machine *m, const desc *op)
{
    const value *x = input(m, op, N(ATTR_OPERATION_RESHAPE_XDESC));
    value *y = output(m, op, N(ATTR_OPERATION_RESHAPE_YDESC));
    for (int k = 0; k < 4; k++) {
        int other = k < 2 ? k : 5 - k;
        if (x->dim[k] != y->dim[other] || x->stride[k] != y->stride[other])
            m->status =
                refuse(UNSUPPORTED, "reshape of tensor %d is no transposition", (int)x->uid);
    }
    if (m->status) return;
    int64_t rows = y->dim[2], cols = y->dim[3];
    for (int64_t i = 0; i < y->count; i++)
        y->x[i] = x->x[i / (rows * cols) * rows * cols + i % cols * rows + i / cols % rows];
    done(y);
}

static void operate(machine *m, const desc *op)
{
    switch (op->type) {
    case N(BACKEND_OPERATION_MATMUL_DESCRIPTOR): matmul(m, op); break;
    case N(BACKEND_OPERATION_POINTWISE_DESCRIPTOR): pointwise(m, op); break;
    case N(BACKEND_OPERATION_REDUCTION_DESCRIPTOR): reduction(m, op); break;
    case N(BACKEND_OPERATION_RESHAPE_DESCRIPTOR): reshape(m, op); break;
    default: m->status = refuse(UNSUPPORTED, "operation %d", op->type);
    }
}

/* Take the addresses of tensors from the variant pack. Each tensor must be in the graph and in
 * memory. */
static void place_all(machine *m, const desc *pack, const attribute *ops)
{
    const attribute *uids = find(pack, N(ATTR_VARIANT_PACK_UNIQUE_IDS));
    const attribute *at = find(pack, N(ATTR_VARIANT_PACK_DATA_POINTERS));
    for (int64_t o = 0; o < ops->count; o++) {
        const desc *op = ((desc **)ops->bytes)[o];
        for (int i = 0; i < op->count; i++)
            if (op->a[i].type == N(TYPE_BACKEND_DESCRIPTOR) &&
                (*(desc **)op->a[i].bytes)->type == N(BACKEND_TENSOR_DESCRIPTOR))
                value_of(m, *(desc **)op->a[i].bytes);
    }
    for (int64_t i = 0; i < uids->count; i++) {
        value *v = NULL;
        for (int k = 0; k < m->count; k++)
            if (m->v[k].uid == ((int64_t *)uids->bytes)[i]) v = &m->v[k];
        if (!v || v->inside || v->at) {
            m->status =
                refuse(BAD, "tensor %d given, but not expected", (int)((int64_t *)uids->bytes)[i]);
            return;
        }
        v->at = ((void **)at->bytes)[i];
        int by_value = number(v->tensor, N(ATTR_TENSOR_IS_BY_VALUE)) == 1;
        if (!v->at || (!by_value && (uintptr_t)v->at % 16))
            m->status = refuse(BAD, "tensor %d at %p", (int)v->uid, v->at);
    }
}

int cudnnBackendExecute(sgt_cudnn_handle handle, sgt_cudnn_desc plan, sgt_cudnn_desc pack)
{
    machine m = {.count = 0};
    const desc *p = plan, *which = pack;
    if (stand_in.execute_fails) return refuse(FAILED, "launch failed");
    if (!p->finalized || !which->finalized) return refuse(BAD, "not finalized");
    const attribute *ops = find(p->graph, N(ATTR_OPERATIONGRAPH_OPS));
    place_all(&m, which, ops);
    for (int64_t i = 0; i < ops->count && !m.status; i++) {
        operate(&m, ((desc **)ops->bytes)[i]);
        /* an engine overwrites its workspace */
        memset(part(which, N(ATTR_VARIANT_PACK_WORKSPACE)), 0xff, stand_in.workspace);
    }
    for (int i = 0; i < m.count; i++) free(m.v[i].x);
    stand_in.stream = ((context *)(void *)handle)->stream;
    stand_in.runs++;
    return m.status;
}
