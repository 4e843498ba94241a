/* forward.c: the forward pass, and the head with its loss, whose backward pass starts where the logits are. */
#include <omp.h>
#include <string.h>

#include "cpu/ranks.h"
#include "cpu_backend.h"
#include "dropout.h"

uint64_t sgt_cpu_load(sgt_cpu_backend *c, const sgt_batch *rows)
{
    size_t T = c->T;
    uint64_t counted = 0;
    if (c->documents) sgt_batch_starts(rows, c->B, T, c->eot, c->start);
    for (size_t b = 0; b < c->B; b++) {
        const uint16_t *row = rows->tokens + b * (T + 1);
        for (size_t t = 0; t < T; t++) {
            int32_t target = rows->targets ? rows->targets[b * T + t] : row[t + 1];
            if (c->ignoring && target == c->ignore) target = -1;
            c->ids[b * T + t] = row[t];
            c->targets[b * T + t] = target;
            counted += target >= 0;
        }
    }
    return counted;
}

/* x (N, width). */
static void round_rows(const sgt_cpu_backend *c, float *x, size_t width)
{
    if (!c->rounding) return;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n);
        sgt_cpu_round(c, x + r * width, n * width);
    }
}

const void *sgt_cpu_operand(const sgt_cpu_backend *c, const float *x)
{
    if (!c->bf16) return x;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, at = sgt_cpu_tile(c, t, &n) * c->C;
        c->k->to_bf16(c->packed + at, x + at, n * c->C);
    }
    return c->packed;
}

const void *sgt_cpu_weights(const sgt_cpu_backend *c, size_t offset)
{
    return (const char *)c->weights + offset * (c->bf16 ? sizeof(uint16_t) : sizeof(float));
}

void sgt_cpu_take_weights(const sgt_cpu_backend *c, size_t offset, size_t count)
{
    if (c->bf16) c->k->to_bf16((uint16_t *)c->weights + offset, c->params + offset, count);
    else if (c->rounding) c->k->round_to((float *)c->weights + offset, c->params + offset, count, c->format);
}

void sgt_cpu_drop(const sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *out, const float *x, size_t first,
                  size_t n)
{
    sgt_dropout d = {.seed = c->seed, .draw = sgt_dropout_draw(c->step, layer, site), .rate = c->dropping};
    for (size_t t = first % c->T, rows; n; t = 0, n -= rows, first += rows) {
        rows = n < c->T - t ? n : c->T - t;
        d.first = sgt_dropout_element(sgt_cpu_step_row(c, first / c->T), t, 0, c->T, c->C);
        c->k->dropout(out, x, rows * c->C, &d);
        out += rows * c->C;
        x += rows * c->C;
    }
}

static void embed(sgt_cpu_backend *c)
{
    const float *wpe = c->params + c->wpe;
    const int32_t first = 0;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n), C = c->C;
        float *x = c->x0 + r * C;
        for (size_t i = r; i < r + n; i++) {
            const float *token = sgt_cpu_token(c, c->ids[i], c->x0 + i * C, c->dx + i * C, c->dln + i * C);
            c->k->embed(c->x0 + i * C, &first, token, wpe, i, 1, c->T, C);
        }
        if (c->dropping > 0) sgt_cpu_drop(c, 0, SGT_DROP_EMBED, x, x, r, n);
    }
}

/* Whether products alone read it, and as bfloat16: the head reads lnf as float32 too. */
static int is_packed(const sgt_cpu_backend *c, const void *operand)
{
    return c->bf16 && operand != c->lnf;
}

/* Where row i of C numbers of an operand is computed: where it is kept, or in scratch that stays in the first-level
 * cache; and the row once it is complete, as products take it. */
static float *row_at(const sgt_cpu_backend *c, void *operand, size_t i)
{
    if (is_packed(c, operand)) return c->scratch + (size_t)omp_get_thread_num() * c->scratch_floats;
    return (float *)operand + i * c->C;
}

static void keep_row(const sgt_cpu_backend *c, void *operand, size_t i, float *row)
{
    if (is_packed(c, operand)) c->k->to_bf16((uint16_t *)operand + i * c->C, row, c->C);
    else if (!c->bf16) sgt_cpu_round(c, row, c->C); /* packing lnf rounds it */
}

void sgt_cpu_layernorm(sgt_cpu_backend *c, void *ln, float *mean, float *rstd, const float *x, const float *w,
                       const float *b)
{
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n);
        for (size_t i = r; i < r + n; i++) {
            float *row = row_at(c, ln, i);
            c->k->layernorm(row, mean + i, rstd + i, x + i * c->C, w, b, 1, c->C, c->model.eps);
            keep_row(c, ln, i, row);
        }
    }
}

/* All heads of all rows: one task each, whatever the number of threads. */
static void attention(sgt_cpu_backend *c, sgt_cpu_block *l)
{
    size_t C = c->C, D = c->D, T = c->T, H = c->H;
#pragma omp parallel for num_threads(c->threads) schedule(dynamic)
    for (size_t i = 0; i < c->B * H; i++) {
        size_t row = i / H * T, column = i % H * D;
        const float *q = l->qkv + row * 3 * C + column;
        float *scratch = c->scratch + (size_t)omp_get_thread_num() * c->scratch_floats;
        sgt_dropout drop = sgt_cpu_head_drop(c, l, i);
        c->k->attention(l->att + row * C + column, C, l->lse + i * T, q, q + C, q + 2 * C, 3 * C, T, D, c->scale,
                        c->dropping > 0 ? &drop : NULL, sgt_cpu_start(c, i / H), scratch);
    }
}

sgt_dropout sgt_cpu_head_drop(const sgt_cpu_backend *c, const sgt_cpu_block *l, size_t i)
{
    return (sgt_dropout){
        .seed = c->seed,
        .draw = sgt_dropout_draw(c->step, l->layer, SGT_DROP_ATTENTION),
        .first = sgt_dropout_attention_element(sgt_cpu_step_row(c, i / c->H), i % c->H, 0, 0, c->H, c->T),
        .rate = c->dropping,
    };
}

/* sum = x + dropout(y) and its LayerNorm, which the next product reads. y is not kept. */
static void residual(sgt_cpu_backend *c, uint32_t layer, uint32_t site, float *sum, void *ln, float *mean,
                     float *rstd, const float *x, float *y, const float *w, const float *b)
{
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n), C = c->C;
        if (c->dropping > 0) sgt_cpu_drop(c, layer, site, y + r * C, y + r * C, r, n);
        for (size_t i = r; i < r + n; i++) {
            float *row = row_at(c, ln, i);
            c->k->residual_layernorm(sum + i * C, row, mean + i, rstd + i, x + i * C, y + i * C, w, b, 1, C,
                                     c->model.eps);
            keep_row(c, ln, i, row);
        }
    }
}

void sgt_cpu_gelu(sgt_cpu_backend *c, sgt_cpu_block *l)
{
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (size_t t = 0; t < c->tiles; t++) {
        size_t n, r = sgt_cpu_tile(c, t, &n);
        for (size_t i = 4 * r; i < 4 * (r + n); i++) { /* (N, 4C) is (4N, C) */
            float *fc = l->fc + i * c->C, *row = row_at(c, l->gelu, i);
            sgt_cpu_round(c, fc, c->C);
            c->k->gelu(row, fc, c->C, c->model.gelu);
            keep_row(c, l->gelu, i, row);
        }
    }
}

/* y = x W + b for one of a block's four weights, whose bias is the next tensor; x as products take it. */
static void linear(sgt_cpu_backend *c, int which, const sgt_cpu_block *l, size_t weight, const void *x, float *y)
{
    sgt_cpu_settle_to(c, l, weight + 1);
    sgt_gemm_run_beside(c->linear[which].forward, x, sgt_cpu_weights(c, l->at[weight]), c->params + l->at[weight + 1],
                        y, &c->pending);
}

void sgt_cpu_block_inside(sgt_cpu_backend *c, sgt_cpu_block *l, const float *x)
{
    const float *p = c->params;
    linear(c, SGT_LINEAR_QKV, l, SGT_QKV_W, l->ln1, l->qkv);
    if (!c->attention_rounds) round_rows(c, l->qkv, 3 * c->C);
    attention(c, l);
    round_rows(c, l->att, c->C);
    linear(c, SGT_LINEAR_PROJ, l, SGT_PROJ_W, sgt_cpu_operand(c, l->att), c->dln);
    sgt_cpu_settle_to(c, l, SGT_LN2_B);
    residual(c, l->layer, SGT_DROP_PROJ, l->mid, l->ln2, l->mean2, l->rstd2, x, c->dln, p + l->at[SGT_LN2_W],
             p + l->at[SGT_LN2_B]);
    linear(c, SGT_LINEAR_FC, l, SGT_FC_W, l->ln2, l->fc);
    sgt_cpu_gelu(c, l);
}

void sgt_cpu_forward(sgt_cpu_backend *c)
{
    const float *p = c->params;
    sgt_cpu_block *first = c->blocks;
    uint64_t from = sgt_trace_begin(c->trace);
    embed(c);
    sgt_cpu_ranks_embedded(c);
    sgt_cpu_layernorm(c, first->ln1, first->mean1, first->rstd1, c->x0, p + first->at[SGT_LN1_W],
                      p + first->at[SGT_LN1_B]);
    sgt_cpu_part_ends(c, 0);
    sgt_trace_end(c->trace, from, SGT_TRACE_LOOP, "forward", "embeddings forward");
    for (size_t i = 0; i < c->model.layers; i++) {
        sgt_cpu_block *l = c->blocks + i;
        from = sgt_trace_begin(c->trace);
        sgt_cpu_block_inside(c, l, i ? l[-1].out : c->x0);
        linear(c, SGT_LINEAR_FCPROJ, l, SGT_FCPROJ_W, l->gelu, c->dln);
        if (i + 1 < c->model.layers) {
            sgt_cpu_settle_to(c, l + 1, SGT_LN1_B);
            residual(c, l->layer, SGT_DROP_FCPROJ, l->out, l[1].ln1, l[1].mean1, l[1].rstd1, l->mid, c->dln,
                     p + l[1].at[SGT_LN1_W], p + l[1].at[SGT_LN1_B]);
        } else {
            sgt_cpu_settle(c);
            residual(c, l->layer, SGT_DROP_FCPROJ, l->out, c->lnf, c->meanf, c->rstdf, l->mid, c->dln, p + c->lnf_w,
                     p + c->lnf_b);
        }
        sgt_cpu_part_ends(c, sgt_part_forward((unsigned)i));
        sgt_trace_end_layer(c->trace, from, "forward", i);
    }
}

/* Whether no logit is above the target's. */
static int is_greedy(const float *logits, size_t V, int32_t target)
{
    float max = logits[0];
    for (size_t v = 1; v < V; v++) max = logits[v] > max ? logits[v] : max;
    return logits[target] >= max;
}

/* Softmax and loss of n rows of logits, in place; few rows a task, for a row is 200 kB. */
static void classify(sgt_cpu_backend *c, size_t first, size_t n, double scale)
{
#pragma omp parallel for num_threads(c->threads) schedule(dynamic)
    for (size_t r = 0; r < n; r++) {
        float *logits = c->logits + r * c->ldv;
        int32_t target = c->targets[first + r];
        if (c->greedy && target >= 0) c->greedy[first + r] = (uint8_t)is_greedy(logits, c->V, target);
        c->k->cross_entropy(logits, c->loss + first + r, c->targets + first + r, 1, c->V, c->ldv, (float)scale);
        if (scale > 0 && c->bf16) c->k->to_bf16(c->packed_logits + r * c->ldv, logits, c->V);
        else if (scale > 0) sgt_cpu_round(c, logits, c->V);
    }
}

/* Rows first .. first + n - 1 where sgt_head_run cannot be taken: logits, loss, their gradient in place, and both
 * products with it while it is still in cache. As sgt_head_run returns. */
static double head_rows(sgt_cpu_backend *c, const char *x, const void *w, size_t first, size_t n, double scale, int add)
{
    const void *dlogits = c->bf16 ? (void *)c->packed_logits : c->logits;
    const sgt_cpu_linear *g = &c->linear[n == c->head_rows ? SGT_LINEAR_HEAD : SGT_LINEAR_HEAD_LAST];
    sgt_gemm_run(g->forward, x, w, NULL, c->logits);
    classify(c, first, n, scale);
    if (!(scale > 0)) return 0;
    sgt_gemm_run(g->dx, dlogits, w, NULL, c->dln + first * c->C);
    sgt_gemm_run(g->dw[add], dlogits, x, NULL, c->grads + c->head_w);
    return sgt_gemm_squares(g->dw[add]);
}

/* A chunk of rows at a time, so that the (N, V) logits never exist. */
double sgt_cpu_head(sgt_cpu_backend *c, double scale)
{
    const void *w = sgt_cpu_weights(c, c->head_w);
    const char *lnf = sgt_cpu_operand(c, c->lnf);
    size_t row_bytes = c->C * (c->bf16 ? sizeof(uint16_t) : sizeof(float));
    for (size_t first = 0; first < c->N; first += c->head_rows) {
        size_t n = c->N - first < c->head_rows ? c->N - first : c->head_rows, at = first * c->C;
        const char *x = lnf + first * row_bytes;
        int add = !(c->fresh && first == 0);
        c->head.greedy = c->greedy ? c->greedy + first : NULL;
        c->head_squares =
            c->own_head ? sgt_head_run(&c->head, n, x, c->lnf + at, w, c->targets + first, scale, c->loss + first,
                                       c->dln + at, c->grads + c->head_w, add)
                        : head_rows(c, x, w, first, n, scale, add);
    }
    double sum = 0;
    for (size_t i = 0; i < c->N; i++) sum += (double)c->loss[i];
    return sum;
}
