/* backward.c: from the gradient at the last LayerNorm back to every parameter. c->dx is the gradient of the
 * residual stream: each branch adds its own to it. Weight gradients are written by a step's first micro-step and added
 * to by the others, so that the large ones are never cleared. */
#include <omp.h>
#include <string.h>

#include "cpu/ranks.h"
#include "cpu_backend.h"
#include "dropout.h"

/* dx += through the LayerNorm; dw, db += sums over tiles in their order. */
static void layernorm(sgt_cpu_backend *c, const float *x, const float *mean, const float *rstd, const float *w,
                      float *dw, float *db)
{
    size_t C = c->C;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n), at = r * C;
        float *part = c->partial + t * 2 * C;
        memset(part, 0, 2 * C * sizeof *part);
        c->k->layernorm_backward(c->dx + at, part, part + C, c->dln + at, x + at, mean + r, rstd + r, w, n, C);
    }
    for (size_t t = 0; t < c->tiles; t++) {
        c->k->add(dw, c->partial + t * 2 * C, C);
        c->k->add(db, c->partial + t * 2 * C + C, C);
    }
}

/* db += the column sums of dout (N, width), as products take it: each task sums whole columns. */
static void bias(sgt_cpu_backend *c, float *db, const void *dout, size_t width)
{
    size_t tasks = (width + SGT_BIAS_COLUMNS - 1) / SGT_BIAS_COLUMNS;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < tasks; t++) {
        size_t at = t * SGT_BIAS_COLUMNS, n = width - at < SGT_BIAS_COLUMNS ? width - at : SGT_BIAS_COLUMNS;
        if (c->bf16) c->k->bias_backward_bf16(db + at, (const uint16_t *)dout + at, c->N, n, width);
        else c->k->bias_backward(db + at, (const float *)dout + at, c->N, n, width);
    }
}

/* n numbers of a product's output gradient, `at` from its first on, once they are complete in `from`: rounded into dy,
 * which may be `from`, or in bf16 packed. */
static void finish(const sgt_cpu_backend *c, float *dy, const float *from, size_t at, size_t n)
{
    if (c->bf16) c->k->to_bf16(c->packed_dy + at, from + at, n);
    else if (c->rounding) c->k->round_to(dy + at, from + at, n, c->format);
}

/* y = x W + b: dy, which `finish` has seen, to W's and b's gradients, and to dx; x as products take it. */
static void linear(sgt_cpu_backend *c, int which, sgt_cpu_block *l, size_t weight, const void *x, const float *dy,
                   size_t width, float *dx)
{
    const sgt_cpu_linear *g = &c->linear[which];
    const void *out = c->bf16 ? (const void *)c->packed_dy : dy;
    sgt_gemm_run(g->dw[!c->fresh], x, out, NULL, c->grads + l->at[weight]);
    l->squares += sgt_gemm_squares(g->dw[!c->fresh]);
    bias(c, c->grads + l->at[weight + 1], out, width);
    sgt_gemm_run(g->dx, out, sgt_cpu_weights(c, l->at[weight]), NULL, dx);
}

static void gelu(sgt_cpu_backend *c, const sgt_cpu_block *l)
{
    size_t C = c->C;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n);
        for (size_t at = 4 * r * C; at < 4 * (r + n) * C; at += C) { /* what stays in the first-level cache */
            c->k->gelu_backward(c->dwide + at, c->dwide + at, l->fc + at, C, c->model.gelu);
            finish(c, c->dwide, c->dwide, at, C);
        }
    }
}

static void attention(sgt_cpu_backend *c, const sgt_cpu_block *l)
{
    size_t C = c->C, D = c->D, T = c->T, H = c->H;
#pragma omp parallel for num_threads(c->threads) schedule(dynamic)
    for (size_t i = 0; i < c->B * H; i++) {
        size_t row = i / H * T, column = i % H * D, at = row * C + column;
        const float *q = l->qkv + row * 3 * C + column;
        float *dq = c->dwide + row * 3 * C + column;
        float *scratch = c->scratch + (size_t)omp_get_thread_num() * c->scratch_floats;
        sgt_dropout drop = sgt_cpu_head_drop(c, l, i);
        c->k->attention_backward(dq, dq + C, dq + 2 * C, 3 * C, c->dln + at, l->att + at, C, l->lse + i * T, q, q + C,
                                 q + 2 * C, 3 * C, T, D, c->scale, c->dropping > 0 ? &drop : NULL,
                                 sgt_cpu_start(c, i / H), scratch);
    }
}

/* dq, dk and dv of all heads (N, 3C). */
static void finish_attention(sgt_cpu_backend *c)
{
    size_t C = c->C;
    if (!c->rounding) return;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n);
        for (size_t at = 3 * r * C; at < 3 * (r + n) * C; at += C) finish(c, c->dwide, c->dwide, at, C);
    }
}

/* The residual stream's gradient as a branch's output gets it: dropped where that was, and finished. It stands in `out`
 * then, but in bf16, where nobody looks for it. */
static const float *branch(sgt_cpu_backend *c, const sgt_cpu_block *l, uint32_t site, float *out)
{
    if (!(c->dropping > 0) && !c->rounding) return c->dx;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n), C = c->C;
        const float *from = c->dropping > 0 ? out : c->dx;
        if (c->dropping > 0) sgt_cpu_drop(c, l->layer, site, out + r * C, c->dx + r * C, r, n);
        for (size_t at = r * C; at < (r + n) * C; at += C) finish(c, out, from, at, C);
    }
    return out;
}

static void undrop_embeddings(sgt_cpu_backend *c)
{
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n), at = r * c->C;
        sgt_cpu_drop(c, 0, SGT_DROP_EMBED, c->dx + at, c->dx + at, r, n);
    }
}

/* Each task adds its own columns for all positions in their order. */
static void embeddings(sgt_cpu_backend *c)
{
    size_t columns = SGT_EMBED_COLUMNS, tasks = (c->C + columns - 1) / columns;
    if (c->dropping > 0) undrop_embeddings(c);
    if (c->fresh || !c->model.untied) c->token_squares = 0;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < tasks; t++) {
        size_t c0 = t * columns, c1 = c0 + columns < c->C ? c0 + columns : c->C;
        c->grown[t] =
            c->k->embed_backward(c->grads, c->grads + c->wpe, c->ids, c->dx, c->N, c->T, c->C, c0, c1);
    }
    for (size_t t = 0; t < tasks; t++) c->token_squares += c->grown[t];
}

static void clear_rows(sgt_cpu_backend *c, float *x)
{
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n);
        memset(x + r * c->C, 0, n * c->C * sizeof *x);
    }
}

/* What is only ever added to starts a step at zero: LayerNorms, biases, wpe, and wte where the head has a weight of its
 * own; the matrices' first product writes them. */
static void clear_small_gradients(sgt_cpu_backend *c)
{
    size_t tensors = sgt_model_tensors(&c->model);
    for (size_t i = c->model.untied ? 0 : 1; i < tensors; i++) {
        sgt_tensor t;
        sgt_model_tensor(&c->model, i, &t);
        if (t.dims == 1 || i < 2) memset(c->grads + t.offset, 0, t.count * sizeof(float));
    }
}

/* What the forward pass did not leave of a block: computed again, by the same calls, to the same bits. What blocks
 * share is still there for the last of them. c->dln and c->dwide hold nothing yet. */
static void recompute(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x)
{
    const float *p = c->params;
    if (l->recompute == SGT_RECOMPUTE_NONE || l == c->share_last) return;
    uint64_t from = sgt_trace_begin(c->trace);
    sgt_cpu_layernorm(c, l->ln1, l->mean1, l->rstd1, x, p + l->at[SGT_LN1_W], p + l->at[SGT_LN1_B]);
    if (l->recompute == SGT_RECOMPUTE_BLOCK) {
        sgt_cpu_block_inside(c, l, x);
    } else {
        sgt_cpu_layernorm(c, l->ln2, l->mean2, l->rstd2, l->mid, p + l->at[SGT_LN2_W], p + l->at[SGT_LN2_B]);
        sgt_cpu_gelu(c, l);
    }
    sgt_trace_end_layer(c->trace, from, "recompute", l->layer);
}

static void block(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x)
{
    const float *p = c->params;
    float *g = c->grads;
    l->squares = 0;
    const float *dy = branch(c, l, SGT_DROP_FCPROJ, c->dln);
    linear(c, SGT_LINEAR_FCPROJ, l, SGT_FCPROJ_W, l->gelu, dy, c->C, c->dwide);
    gelu(c, l);
    linear(c, SGT_LINEAR_FC, l, SGT_FC_W, l->ln2, c->dwide, 4 * c->C, c->dln);
    sgt_cpu_ranks_mid_block(c);
    layernorm(c, l->mid, l->mean2, l->rstd2, p + l->at[SGT_LN2_W], g + l->at[SGT_LN2_W], g + l->at[SGT_LN2_B]);
    dy = branch(c, l, SGT_DROP_PROJ, c->dwide);
    linear(c, SGT_LINEAR_PROJ, l, SGT_PROJ_W, sgt_cpu_operand(c, l->att), dy, c->C, c->dln);
    attention(c, l);
    finish_attention(c);
    linear(c, SGT_LINEAR_QKV, l, SGT_QKV_W, l->ln1, c->dwide, 3 * c->C, c->dln);
    layernorm(c, x, l->mean1, l->rstd1, p + l->at[SGT_LN1_W], g + l->at[SGT_LN1_W], g + l->at[SGT_LN1_B]);
}

void sgt_cpu_backward(sgt_cpu_backend *c)
{
    const float *p = c->params;
    float *g = c->grads;
    unsigned L = c->model.layers;
    sgt_cpu_part_ends(c, sgt_part_head(L));
    if (c->fresh) clear_small_gradients(c);
    clear_rows(c, c->dx);
    layernorm(c, c->blocks[c->model.layers - 1].out, c->meanf, c->rstdf, p + c->lnf_w, g + c->lnf_w, g + c->lnf_b);
    sgt_cpu_ranks_ready(c);
    for (size_t i = c->model.layers; i-- > 0;) {
        const float *x = i ? c->blocks[i - 1].out : c->x0;
        uint64_t from = sgt_trace_begin(c->trace);
        recompute(c, c->blocks + i, x);
        block(c, c->blocks + i, x);
        sgt_cpu_ranks_ready(c);
        sgt_cpu_part_ends(c, sgt_part_backward(L, (unsigned)i));
        sgt_trace_end_layer(c->trace, from, "backward", i);
    }
    uint64_t from = sgt_trace_begin(c->trace);
    embeddings(c);
    sgt_cpu_ranks_ready(c);
    sgt_cpu_part_ends(c, sgt_part_embeddings(L));
    sgt_trace_end(c->trace, from, SGT_TRACE_LOOP, "backward", "embeddings backward");
}
