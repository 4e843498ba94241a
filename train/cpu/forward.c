/* forward.c: the forward pass, and the head with the loss. The backward pass of the head is also
 * here, because it must run while the logits of a chunk of rows are in memory. */
#include <omp.h>
#include <string.h>

#include "train/cpu/cpu_backend.h"
#include "kernels/dropout.h"

uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *rows)
{
    const sgt_cpu_shape *s = &c->shape;
    uint64_t counted = 0;
    if (s->o.documents) sgt_batch_starts(rows, s->B, s->T, s->o.eot, c->buf.start);
    for (size_t i = 0; i < s->N; i++) {
        int32_t target = rows->targets[i];
        if (s->o.ignoring && target == s->o.ignore) target = -1;
        c->buf.ids[i] = rows->inputs[i];
        c->buf.targets[i] = target;
        counted += target >= 0;
    }
    return counted;
}

/* Round the (N, width) array x in place, if the precision requires it. */
static void round_rows(const sgt_cpu_shape *s, float *x, size_t width)
{
    if (!s->rounding) return;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n);
        sgt_cpu_round(s, x + r * width, n * width);
    }
}

/* Return the index of this rank's row b among all rows of the step (of all micro-steps and
 * ranks). */
static uint64_t step_row(const sgt_cpu_backend *c, size_t b)
{
    return c->step.row + b * c->shape.ranks;
}

void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out,
                  const float *x, size_t first, size_t n)
{
    const sgt_cpu_shape *s = &c->shape;
    sgt_dropout d = {.seed = s->o.seed,
                     .draw = sgt_dropout_draw(c->step.number, layer, site),
                     .rate = c->step.dropping};
    for (size_t t = first % s->T, rows; n; t = 0, n -= rows, first += rows) {
        rows = n < s->T - t ? n : s->T - t;
        d.first = sgt_dropout_element(step_row(c, first / s->T), t, 0, s->T, s->C);
        s->k->dropout(out, x, rows * s->C, &d);
        out += rows * s->C;
        x += rows * s->C;
    }
}

static void embed(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    const float *wpe = c->buf.params + s->wpe;
    const int32_t first = 0;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n), C = s->C;
        float *x = c->buf.x0 + r * C;
        for (size_t i = r; i < r + n; i++) {
            const float *token = sgt_cpu_token(c, c->buf.ids[i], c->buf.x0 + i * C,
                                               c->buf.dx + i * C, c->buf.dln + i * C);
            s->k->embed(c->buf.x0 + i * C, &first, token, wpe, i, 1, s->T, C);
        }
        if (c->step.dropping > 0) sgt_cpu_drop(c, 0, SGT_DROP_EMBED, x, x, r, n);
    }
}

/* Return 1 if `operand`, an operand of matrix products, is stored as bfloat16, otherwise 0. If
 * shape.bf16 is set, all operands are bfloat16 except buf.lnf, because the head also reads buf.lnf
 * as float32. */
static int is_packed(const sgt_cpu_backend *c, const void *operand)
{
    return c->shape.bf16 && operand != c->buf.lnf;
}

/* Return the address to which the caller must write row i of an operand, as C floats. If the
 * operand is float32, this is the row itself. If the operand is bfloat16, it is the thread's
 * scratch memory, which stays in the L1 cache. When the row is complete, the caller calls keep_row,
 * which rounds the row and stores it in the operand. */
static float *row_at(const sgt_cpu_backend *c, void *operand, size_t i)
{
    const sgt_cpu_shape *s = &c->shape;
    if (is_packed(c, operand))
        return c->buf.scratch + (size_t)omp_get_thread_num() * s->scratch_floats;
    return (float *)operand + i * s->C;
}

static void keep_row(const sgt_cpu_backend *c, void *operand, size_t i, float *row)
{
    const sgt_cpu_shape *s = &c->shape;
    if (is_packed(c, operand)) s->k->to_bf16((uint16_t *)operand + i * s->C, row, s->C);
    /* buf.lnf is not rounded here, because sgt_cpu_operand makes a bfloat16 copy of it */
    else if (!s->bf16) sgt_cpu_round(s, row, s->C);
}

void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x,
                       const float *w, const float *b)
{
    const sgt_cpu_shape *s = &c->shape;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n);
        for (size_t i = r; i < r + n; i++) {
            float *row = row_at(c, ln, i);
            s->k->layernorm(row, mean + i, rstd + i, x + i * s->C, w, b, 1, s->C, s->o.model.eps);
            keep_row(c, ln, i, row);
        }
    }
}

/* Compute attention. Each task computes one head of one row, whatever the number of threads. */
static void attention(sgt_cpu_backend *c, sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
    size_t C = s->C, D = s->D, T = s->T, H = s->H;
#pragma omp parallel for num_threads(s->o.threads) schedule(dynamic)
    for (size_t i = 0; i < s->B * H; i++) {
        size_t row = i / H * T, column = i % H * D;
        const float *q = l->qkv + row * 3 * C + column;
        float *scratch = c->buf.scratch + (size_t)omp_get_thread_num() * s->scratch_floats;
        sgt_dropout drop = sgt_cpu_head_drop(c, l, i);
        s->k->attention(l->att + row * C + column, C, l->lse + i * T, q, q + C, q + 2 * C, 3 * C, T,
                        D, s->scale, c->step.dropping > 0 ? &drop : NULL, sgt_cpu_start(c, i / H),
                        scratch);
    }
}

sgt_dropout sgt_cpu_head_drop(const sgt_cpu_backend *c, const sgt_cpu_block *l, size_t i)
{
    const sgt_cpu_shape *s = &c->shape;
    return (sgt_dropout){
        .seed = s->o.seed,
        .draw = sgt_dropout_draw(c->step.number, l->layer, SGT_DROP_ATTENTION),
        .first = sgt_dropout_attention_element(step_row(c, i / s->H), i % s->H, 0, 0, s->H, s->T),
        .rate = c->step.dropping,
    };
}

/* Compute sum = x + dropout(y), and write the LayerNorm of `sum` to `ln`, the input of the next
 * matrix product. This overwrites y. */
static void residual(sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *sum, void *ln,
                     float *mean, float *rstd, const float *x, float *y, const float *w,
                     const float *b)
{
    const sgt_cpu_shape *s = &c->shape;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n), C = s->C;
        if (c->step.dropping > 0) sgt_cpu_drop(c, layer, site, y + r * C, y + r * C, r, n);
        for (size_t i = r; i < r + n; i++) {
            float *row = row_at(c, ln, i);
            s->k->residual_layernorm(sum + i * C, row, mean + i, rstd + i, x + i * C, y + i * C, w,
                                     b, 1, C, s->o.model.eps);
            keep_row(c, ln, i, row);
        }
    }
}

void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l)
{
    const sgt_cpu_shape *s = &c->shape;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, r = sgt_cpu_tile(s, t, &n);
        for (size_t i = 4 * r; i < 4 * (r + n); i++) { /* (N, 4C) seen as (4N, C) */
            float *fc = l->fc + i * s->C, *row = row_at(c, l->gelu, i);
            sgt_cpu_round(s, fc, s->C);
            s->k->gelu(row, fc, s->C, s->o.model.gelu);
            keep_row(c, l->gelu, i, row);
        }
    }
}

/* Compute y = x W + b, for one of the four weight matrices W of a block. Tensor `weight` of the
 * block is W, and tensor weight + 1 is b. x is bfloat16 if shape.bf16 is set, otherwise float. */
static void linear(sgt_cpu_backend *c, int which, const sgt_cpu_block *l, size_t weight,
                   const void *x, float *y)
{
    sgt_cpu_settle_to(c, l, weight + 1);
    sgt_gemm_run_beside(c->linear[which].forward, x, sgt_cpu_weights(c, l->at[weight]),
                        c->buf.params + l->at[weight + 1], y, &c->update.pending);
}

void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x)
{
    const sgt_cpu_shape *s = &c->shape;
    const float *p = c->buf.params;
    linear(c, SGT_LINEAR_QKV, l, SGT_QKV_W, l->ln1, l->qkv);
    if (!s->attention_rounds) round_rows(s, l->qkv, 3 * s->C);
    attention(c, l);
    round_rows(s, l->att, s->C);
    linear(c, SGT_LINEAR_PROJ, l, SGT_PROJ_W, sgt_cpu_operand(c, l->att), c->buf.dln);
    sgt_cpu_settle_to(c, l, SGT_LN2_B);
    residual(c, l->layer, SGT_DROP_PROJ, l->mid, l->ln2, l->mean2, l->rstd2, x, c->buf.dln,
             p + l->at[SGT_LN2_W], p + l->at[SGT_LN2_B]);
    linear(c, SGT_LINEAR_FC, l, SGT_FC_W, l->ln2, l->fc);
    sgt_cpu_gelu(c, l);
}

void sgt_cpu_forward(sgt_cpu_backend *c)
{
    const sgt_cpu_shape *s = &c->shape;
    const float *p = c->buf.params;
    sgt_cpu_block *first = c->blocks;
    uint64_t from = sgt_trace_begin(c->report.trace);
    embed(c);
    sgt_cpu_layernorm(c, first->ln1, first->mean1, first->rstd1, c->buf.x0,
                      p + first->at[SGT_LN1_W], p + first->at[SGT_LN1_B]);
    sgt_cpu_part_ends(c, 0);
    sgt_trace_end(c->report.trace, from, SGT_TRACE_LOOP, "forward", "embeddings forward");
    for (size_t i = 0; i < s->o.model.layers; i++) {
        sgt_cpu_block *l = c->blocks + i;
        from = sgt_trace_begin(c->report.trace);
        sgt_cpu_block_inside(c, l, i ? l[-1].out : c->buf.x0);
        linear(c, SGT_LINEAR_FCPROJ, l, SGT_FCPROJ_W, l->gelu, c->buf.dln);
        if (i + 1 < s->o.model.layers) {
            sgt_cpu_settle_to(c, l + 1, SGT_LN1_B);
            residual(c, l->layer, SGT_DROP_FCPROJ, l->out, l[1].ln1, l[1].mean1, l[1].rstd1, l->mid,
                     c->buf.dln, p + l[1].at[SGT_LN1_W], p + l[1].at[SGT_LN1_B]);
        } else {
            sgt_cpu_settle(c);
            residual(c, l->layer, SGT_DROP_FCPROJ, l->out, c->buf.lnf, c->buf.meanf, c->buf.rstdf,
                     l->mid, c->buf.dln, p + s->lnf_w, p + s->lnf_b);
        }
        sgt_cpu_part_ends(c, sgt_part_forward((unsigned)i));
        sgt_trace_end_layer(c->report.trace, from, "forward", i);
    }
}

/* Return 1 if no logit is larger than the logit of the target, otherwise 0. */
static int is_greedy(const float *logits, size_t V, int32_t target)
{
    float max = logits[0];
    for (size_t v = 1; v < V; v++) max = logits[v] > max ? logits[v] : max;
    return logits[target] >= max;
}

/* Compute softmax and loss from n rows of logits. If scale > 0, replace the logits with the
 * gradient of the loss, multiplied by `scale`. Each row is one task, because it is long: V floats,
 * which is 200 kB with GPT-2's vocabulary. */
static void classify(sgt_cpu_backend *c, size_t first, size_t n, double scale)
{
    const sgt_cpu_shape *s = &c->shape;
#pragma omp parallel for num_threads(s->o.threads) schedule(dynamic)
    for (size_t r = 0; r < n; r++) {
        float *logits = c->buf.logits + r * s->ldv;
        int32_t target = c->buf.targets[first + r];
        if (c->step.greedy && target >= 0)
            c->step.greedy[first + r] = (uint8_t)is_greedy(logits, s->V, target);
        s->k->cross_entropy(logits, c->buf.loss + first + r, c->buf.targets + first + r, 1, s->V,
                            s->ldv, (float)scale);
        if (scale > 0 && s->bf16) s->k->to_bf16(c->buf.packed_logits + r * s->ldv, logits, s->V);
        else if (scale > 0) sgt_cpu_round(s, logits, s->V);
    }
}

/* Compute the head for rows first .. first + n - 1, with planned matrix products (used if own_head
 * is 0). Compute the logits, and from them the losses and the gradients of the logits. While these
 * gradients are still in the cache, compute the gradients of x and of the weight. Return the sum of
 * squares of the weight's gradient, as sgt_head_run does, or 0 if scale is 0. */
static double head_rows(sgt_cpu_backend *c, const char *x, const void *w, size_t first, size_t n,
                        double scale, int add)
{
    const sgt_cpu_shape *s = &c->shape;
    const void *dlogits = s->bf16 ? (void *)c->buf.packed_logits : c->buf.logits;
    const sgt_cpu_linear *g =
        &c->linear[n == s->head_rows ? SGT_LINEAR_HEAD : SGT_LINEAR_HEAD_LAST];
    sgt_gemm_run(g->forward, x, w, NULL, c->buf.logits);
    classify(c, first, n, scale);
    if (!(scale > 0)) return 0;
    sgt_gemm_run(g->dx, dlogits, w, NULL, c->buf.dln + first * s->C);
    sgt_gemm_run(g->dw[add], dlogits, x, NULL, c->buf.grads + s->head_w);
    return sgt_gemm_squares(g->dw[add]);
}

/* The head is computed in chunks of rows, because the logits of all rows would need N * V floats of
 * memory. */
double sgt_cpu_head(sgt_cpu_backend *c, double scale)
{
    const sgt_cpu_shape *s = &c->shape;
    const void *w = sgt_cpu_weights(c, s->head_w);
    const char *lnf = sgt_cpu_operand(c, c->buf.lnf);
    size_t row_bytes = s->C * (s->bf16 ? sizeof(uint16_t) : sizeof(float));
    for (size_t first = 0; first < s->N; first += s->head_rows) {
        size_t n = s->N - first < s->head_rows ? s->N - first : s->head_rows, at = first * s->C;
        const char *x = lnf + first * row_bytes;
        int add = !(c->step.fresh && first == 0);
        c->head.greedy = c->step.greedy ? c->step.greedy + first : NULL;
        c->step.head_squares =
            s->own_head
                ? sgt_head_run(&c->head, n, x, c->buf.lnf + at, w, c->buf.targets + first, scale,
                               c->buf.loss + first, c->buf.dln + at, c->buf.grads + s->head_w, add)
                : head_rows(c, x, w, first, n, scale, add);
    }
    double sum = 0;
    for (size_t i = 0; i < s->N; i++) sum += (double)c->buf.loss[i];
    return sum;
}

/* ---- operands of matrix products ---- */

const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x)
{
    const sgt_cpu_shape *s = &c->shape;
    if (!s->bf16) return x;
#pragma omp parallel for num_threads(s->o.threads) schedule(static)
    for (size_t t = 0; t < s->tiles; t++) {
        size_t n, at = sgt_cpu_tile(s, t, &n) * s->C;
        s->k->to_bf16(c->buf.packed + at, x + at, n * s->C);
    }
    return c->buf.packed;
}

const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset)
{
    return (const char *)c->buf.weights +
           offset * (c->shape.bf16 ? sizeof(uint16_t) : sizeof(float));
}

void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count)
{
    const sgt_cpu_shape *s = &c->shape;
    if (s->bf16) s->k->to_bf16((uint16_t *)c->buf.weights + offset, c->buf.params + offset, count);
    else if (s->rounding)
        s->k->round_to((float *)c->buf.weights + offset, c->buf.params + offset, count, s->format);
}
