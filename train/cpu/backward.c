/* backward.c: the backward pass, which computes all gradients from the gradient of the last
 * LayerNorm's output. buf.dx is the gradient of the residual stream; each residual branch adds its
 * gradient to buf.dx. In the first micro-step of a step, matrix products overwrite the gradients of
 * weight matrices, so that these large arrays need not be cleared first. In later micro-steps,
 * matrix products add to these gradients. */
#include <omp.h>
#include <string.h>

#include "train/cpu/cpu_backend.h"
#include "kernels/dropout.h"

/* Backward pass of a LayerNorm with the input x: add the gradient of x to buf.dx, and the gradients
 * of the weight and the bias to `dw` and `db`. Each tile of positions gets its own partial sums of
 * dw and db, which are then added in the order of the tiles, so that the result does not depend on
 * the number of threads. */
static void layernorm(sgt_cpu_backend *c, const float *x, const float *mean, const float *rstd,
                      const float *w, float *dw, float *db)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t C = s->C;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n), at = r * C;
        float *part = c->buf.partial + t * 2 * C;
        memset(part, 0, 2 * C * sizeof *part);
        s->k->layernorm_backward(c->buf.dx + at, part, part + C, c->buf.dln + at, x + at, mean + r,
                                 rstd + r, w, n, C);
    }
    for (size_t t = 0; t < s->tiles; t++) {
        s->k->add(dw, c->buf.partial + t * 2 * C, C);
        s->k->add(db, c->buf.partial + t * 2 * C + C, C);
    }
}

/* Compute the gradient of a bias: add the column sums of the (N, width) array `dout` to the `width`
 * floats at `db`. `dout` is bfloat16 if shape.bf16 is set, otherwise float. Each task sums some of
 * the columns over all N rows. */
static void bias(sgt_cpu_backend *c, float *db, const void *dout, size_t width)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t tasks = (width + SGT_BIAS_COLUMNS - 1) / SGT_BIAS_COLUMNS;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < tasks; t++) {
        size_t at = t * SGT_BIAS_COLUMNS,
               n = width - at < SGT_BIAS_COLUMNS ? width - at : SGT_BIAS_COLUMNS;
        s->k->bias_backward(db + at, (const char *)dout + at * (s->bf16 ? 2 : 4), s->N, n, width,
                            s->bf16);
    }
}

/* Round from[at..at+n-1], gradients of a matrix product's output, to the format in which matrix
 * products read them. If shape.bf16 is set, write them as bfloat16 to the same indexes of
 * buf.packed_dy. Otherwise, if the precision requires rounding, write them to the same indexes of
 * `dy`, which may be the same array as `from`. Otherwise do nothing. */
static void finish(const sgt_cpu_backend *c, float *dy, const float *from, size_t at, size_t n)
{
    const sgt_cpu_shape *s = &c->shape;
    if (s->bf16) s->k->to_bf16(c->buf.packed_dy + at, from + at, n);
    else if (s->rounding) s->k->round_to(dy + at, from + at, n, s->format);
}

/* Backward pass of y = x W + b. From `dy`, which `finish` has already rounded, compute `dx` and the
 * gradients of W and b. `x` is bfloat16 if shape.bf16 is set, otherwise float. */
static void linear(sgt_cpu_backend *c, int which, sgt_cpu_block *l, size_t weight, const void *x,
                   const float *dy, size_t width, float *dx)
{
    const sgt_cpu_linear *g = &c->linear[which];
    const void *out = c->shape.bf16 ? (const void *)c->buf.packed_dy : dy;
    sgt_gemm_run(g->dw[!c->step.fresh], x, out, NULL, c->buf.grads + l->at[weight]);
    l->squares += sgt_gemm_squares(g->dw[!c->step.fresh]);
    bias(c, c->buf.grads + l->at[weight + 1], out, width);
    sgt_gemm_run(g->dx, out, sgt_cpu_weights(c, l->at[weight]), NULL, dx);
}

static void gelu(sgt_cpu_backend *c, const sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t C = s->C;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n);
        for (size_t at = 4 * r * C; at < 4 * (r + n) * C;
             /* process C floats at a time: multiply by GELU's derivative, then round while they are
              * still in the L1 cache */
             at += C) {
            s->k->gelu_backward(c->buf.dwide + at, c->buf.dwide + at, l->fc + at, C,
                                s->o.model.gelu);
            finish(c, c->buf.dwide, c->buf.dwide, at, C);
        }
    }
}

static void attention(sgt_cpu_backend *c, const sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t C = s->C, D = s->D, T = s->T, H = s->H;
#pragma omp parallel for num_threads(s->o.threads) schedule(dynamic)
    for (size_t i = 0; i < s->B * H; i++) {
        size_t row = i / H * T, column = i % H * D, at = row * C + column;
        const float *q = l->qkv + row * 3 * C + column;
        float *dq = c->buf.dwide + row * 3 * C + column;
        float *scratch = c->buf.scratch + (size_t)omp_get_thread_num() * s->scratch_floats;
        sgt_dropout drop = sgt_cpu_head_drop(c, l, i);
        s->k->attention_backward(dq, dq + C, dq + 2 * C, 3 * C, c->buf.dln + at, l->att + at, C,
                                 l->lse + i * T, q, q + C, q + 2 * C, 3 * C, T, D, s->scale,
                                 c->step.dropping > 0 ? &drop : NULL, sgt_cpu_start(c, i / H),
                                 scratch);
    }
}

/* Round the gradients of q, k and v, an (N, 3C) array, to the format that matrix products read. */
static void finish_attention(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t C = s->C;
    if (!s->rounding) return;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n);
        for (size_t at = 3 * r * C; at < 3 * (r + n) * C; at += C)
            finish(c, c->buf.dwide, c->buf.dwide, at, C);
    }
}

/* Return the gradient of the output of a residual branch: buf.dx, the gradient of the residual
 * stream, with the dropout of the branch applied, and then rounded by `finish`. If there is neither
 * dropout nor rounding, return buf.dx itself. Otherwise compute the result in `out` and return
 * `out`. Exception: if shape.bf16 is set, the result is in buf.packed_dy, and the caller must not
 * read `out`. */
static const float *branch(sgt_cpu_backend *c, const sgt_cpu_block *l, uint32_t site, float *out)
{
    const sgt_cpu_shape *s = &c->shape;
    if (!(c->step.dropping > 0) && !s->rounding) return c->buf.dx;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n), C = s->C;
        const float *from = c->step.dropping > 0 ? out : c->buf.dx;
        if (c->step.dropping > 0)
            sgt_cpu_drop(c, l->layer, site, out + r * C, c->buf.dx + r * C, r, n);
        for (size_t at = r * C; at < (r + n) * C; at += C) finish(c, out, from, at, C);
    }
    return out;
}

static void undrop_embeddings(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n), at = r * s->C;
        sgt_cpu_drop(c, 0, SGT_DROP_EMBED, c->buf.dx + at, c->buf.dx + at, r, n);
    }
}

/* Add to the gradients of wte and wpe. Each task computes some of the columns: it adds up their
 * gradients over all positions, in the order of the positions. */
static void embeddings(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t columns = SGT_EMBED_COLUMNS, tasks = (s->C + columns - 1) / columns;
    if (c->step.dropping > 0) undrop_embeddings(c);
    if (c->step.fresh || !s->o.model.untied) c->step.token_squares = 0;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < tasks; t++) {
        size_t c0 = t * columns, c1 = c0 + columns < s->C ? c0 + columns : s->C;
        c->buf.grown[t] = s->k->embed_backward(c->buf.grads, c->buf.grads + s->wpe, c->buf.ids,
                                               c->buf.dx, s->N, s->T, s->C, c0, c1);
    }
    for (size_t t = 0; t < tasks; t++) c->step.token_squares += c->buf.grown[t];
}

static void clear_rows(sgt_cpu_backend *c, float *x)
{
    const sgt_cpu_shape *s = &c->shape;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n);
        memset(x + r * s->C, 0, n * s->C * sizeof *x);
    }
}

/* Clear the gradients that are only ever added to: those of LayerNorms, biases and wpe, and of wte
 * if the head is not tied to it. All other gradients need not be cleared, because a matrix product
 * overwrites them in the first micro-step of a step. */
static void clear_small_gradients(const sgt_model *m, float *grads)
{
    for (size_t i = m->untied ? 0 : 1; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        if (t.dims == 1 || i < 2) memset(grads + t.offset, 0, t.count * sizeof(float));
    }
}

/* Recompute the activations of a block that the forward pass did not keep. The function makes the
 * same calls as the forward pass, so the results are bit-identical. It may overwrite buf.dln and
 * buf.dwide.
 *
 * For share_last, the last block that recomputes, do nothing. All such blocks store their
 * activations in the same memory, and at the beginning of the backward pass this memory still
 * contains the activations of share_last. */
static void recompute(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x)
{
    const float *p = c->buf.params;
    if (l->recompute == SGT_RECOMPUTE_NONE || l == c->share_last) return;
    uint64_t from = sgt_trace_begin(c->report.trace);
    sgt_cpu_layernorm(c, l->ln1, l->mean1, l->rstd1, x, p + l->at[SGT_LN1_W], p + l->at[SGT_LN1_B]);
    if (l->recompute == SGT_RECOMPUTE_BLOCK) {
        sgt_cpu_block_inside(c, l, x);
    } else {
        sgt_cpu_layernorm(c, l->ln2, l->mean2, l->rstd2, l->mid, p + l->at[SGT_LN2_W],
                          p + l->at[SGT_LN2_B]);
        sgt_cpu_gelu(c, l);
    }
    sgt_trace_end_layer(c->report.trace, from, "recompute", l->layer);
}

static void block(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x)
{
    const sgt_cpu_shape *s = &c->shape;
    const float *p = c->buf.params;
    float *g = c->buf.grads;
    l->squares = 0;
    const float *dy = branch(c, l, SGT_DROP_FCPROJ, c->buf.dln);
    linear(c, SGT_LINEAR_FCPROJ, l, SGT_FCPROJ_W, l->gelu, dy, s->C, c->buf.dwide);
    gelu(c, l);
    linear(c, SGT_LINEAR_FC, l, SGT_FC_W, l->ln2, c->buf.dwide, 4 * s->C, c->buf.dln);
    layernorm(c, l->mid, l->mean2, l->rstd2, p + l->at[SGT_LN2_W], g + l->at[SGT_LN2_W],
              g + l->at[SGT_LN2_B]);
    dy = branch(c, l, SGT_DROP_PROJ, c->buf.dwide);
    linear(c, SGT_LINEAR_PROJ, l, SGT_PROJ_W, sgt_cpu_operand(c, l->att), dy, s->C, c->buf.dln);
    attention(c, l);
    finish_attention(c);
    linear(c, SGT_LINEAR_QKV, l, SGT_QKV_W, l->ln1, c->buf.dwide, 3 * s->C, c->buf.dln);
    layernorm(c, x, l->mean1, l->rstd1, p + l->at[SGT_LN1_W], g + l->at[SGT_LN1_W],
              g + l->at[SGT_LN1_B]);
}

void sgt_cpu_backward(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    const float *p = c->buf.params;
    float *g = c->buf.grads;
    unsigned L = s->o.model.layers;
    sgt_cpu_part_ends(c, sgt_part_head(L));
    if (c->step.fresh) clear_small_gradients(&c->shape.o.model, g);
    clear_rows(c, c->buf.dx);
    layernorm(c, c->blocks[s->o.model.layers - 1].out, c->buf.meanf, c->buf.rstdf, p + s->lnf_w,
              g + s->lnf_w, g + s->lnf_b);
    sgt_cpu_ranks_ready(c);
    for (size_t i = s->o.model.layers; i-- > 0;) {
        const float *x = i ? c->blocks[i - 1].out : c->buf.x0;
        uint64_t from = sgt_trace_begin(c->report.trace);
        recompute(c, c->blocks + i, x);
        block(c, c->blocks + i, x);
        sgt_cpu_ranks_ready(c);
        sgt_cpu_part_ends(c, sgt_part_backward(L, (unsigned)i));
        sgt_trace_end_layer(c->report.trace, from, "backward", i);
    }
    uint64_t from = sgt_trace_begin(c->report.trace);
    embeddings(c);
    sgt_cpu_ranks_ready(c);
    sgt_cpu_part_ends(c, sgt_part_embeddings(L));
    sgt_trace_end(c->report.trace, from, SGT_TRACE_LOOP, "backward", "embeddings backward");
}
