/* attention_cudnn_graph.c: the operation graphs that cuDNN recognizes as fused attention.
 *
 * cuDNN recognizes a graph by its shape: which operations, in which types, on which strides. The
 * graphs here follow, operation for operation, those that cuDNN's own frontend makes of attention
 * with a causal mask. */
#include "kernels/cuda/attention_cudnn_graph.h"

#define N(name) SGT_CUDNN_##name

/* ---- tensors: B sequences of H heads, strides in numbers ---- */

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

/* Describe one float per row, (B, H, T): in memory, or if uid is 0, only inside the graph. */
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

/* Describe one number per key and query: the matrices (T, T) of pairs, transposed. */
static sgt_cudnn_desc pairs_transposed(const shape *s, int type)
{
    int64_t head = s->T * s->T;
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.kind = SGT_CUDNN_VIRTUAL,
                                                     .type = type,
                                                     .dim = {s->B, s->H, s->T, s->T},
                                                     .stride = {s->H * head, head, 1, s->T}});
}

/* Describe rows of D floats, (B, H, T, D), with the given strides, only inside the graph. */
static sgt_cudnn_desc wide(const shape *s, int64_t b, int64_t h, int64_t t)
{
    return sgt_cudnn_tensor(s->g, &(sgt_cudnn_place){.kind = SGT_CUDNN_VIRTUAL,
                                                     .type = N(DATA_FLOAT),
                                                     .dim = {s->B, s->H, s->T, s->D},
                                                     .stride = {b, h, t, 1}});
}

/* Describe dQ's sums, (B, H, T, D) float in memory, in the order in which the engines' tensor cores
 * write them. */
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

/* Return x where query >= key, else -inf. */
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

/* Describe out = softmax(causal(scale Q K')) V, and the logarithm of the sum of exponentials of
 * each row (lse). The probabilities have 16 bits when they are multiplied with V. */
void sgt_cudnn_attention_describe_forward(sgt_cudnn_graph *g, const sgt_cudnn_attention_options *o)
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

/* Describe delta_i = dout_i.out_i, which cuDNN keeps in the caller's workspace. The graph that
 * cuDNN recognizes multiplies it by a factor for dropout, which is 1 here. */
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

/* Describe dQ = dS K. If deterministic, it is written at once, in a fixed order, from a dS in the
 * engine's workspace. Otherwise blocks of keys add to it, in any order, as floats in the caller's
 * workspace. */
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

/* Describe the gradients, with * between elements and ' for a transpose:
 *   P = exp(causal(scale Q K' - lse))
 *   dV = P' dout    dS = scale P*(dout V' - delta)    dQ = dS K    dK = dS' Q */
void sgt_cudnn_attention_describe_backward(sgt_cudnn_graph *g, const sgt_cudnn_attention_options *o)
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
